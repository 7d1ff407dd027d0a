//! Measures the time from a release in one process to the waiter's wake in another.
//!
//! The measure is a script's PUBLISH to a subscriber on plain sockets.

use std::time::Duration;

use lock_tests::RedisServer;

use crate::bars::Bars;
use crate::crew::{Crew, Trade};
use crate::machine::median;

const ROUNDS: usize = 3;
/// A hold long enough for the waiter to be queued and for the machine to fall asleep.
const COLD: (&str, Duration, Duration) = (
    "cold, after 500 ms",
    Duration::from_millis(5_250),
    Duration::from_millis(500),
);
const HOT: (&str, Duration, Duration) = (
    "hot, after 1 ms",
    Duration::from_secs(1),
    Duration::from_millis(1),
);

pub(crate) fn run(server: &RedisServer, short: bool, bars: &mut Bars) {
    let rounds = if short { 1 } else { ROUNDS };
    let mut bare = Crew::start(server, Trade::Ball, 2, 1);
    let mut kit = Crew::start(server, Trade::Kit, 2, 1);
    println!(
        "\n| wake-up in another process | bare PUBLISH µs | kit µs (p50) | × bare | samples |"
    );
    println!("| --- | --- | --- | --- | --- |");
    for (name, turn, hold) in [COLD, HOT] {
        let (mut bare_wakes, mut kit_wakes) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            bare_wakes.extend(bare.turn(turn, hold).wakes());
            kit_wakes.extend(kit.turn(turn, hold).wakes());
        }
        let samples = kit_wakes.len();
        let (bare, kit) = (median(bare_wakes), median(kit_wakes));
        let ratio = kit / bare;
        println!("| {name} | {bare:.0} | {kit:.0} | {ratio:.2} | {samples} |");
        bars.at_most(format!("wake-up {name}: × bare"), ratio, 1.5);
    }
}
