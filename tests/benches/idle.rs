//! Measures the cost of many waiters for locks that are not released.

use std::time::Duration;

use lock_tests::{RedisServer, wait};

use crate::bars::Bars;
use crate::counts::Counts;
use crate::crew::{Crew, Trade};
use crate::machine::{cpu_seconds, resident_bytes};

const LIMIT: Duration = Duration::from_secs(30);

struct Crowd {
    name: &'static str,
    keys: u32,
    waiters: u32,
    watched: Duration,
}

const ONE_KEY: Crowd = Crowd {
    name: "1 000 waiters for one key",
    keys: 1,
    waiters: 1_000,
    watched: Duration::from_secs(5),
};
const MANY_KEYS: Crowd = Crowd {
    name: "5 000 keys, a waiter each",
    keys: 5_000,
    waiters: 1,
    // The time is longer than the longest time after which a waiter asks by itself.
    watched: Duration::from_secs(32),
};

struct Cost {
    /// Commands as sent per second: the larger of trips and scripts. Some trips bring several
    /// commands, and some commands are no scripts.
    commands: f64,
    connections: i64,
    megabytes: f64,
}

pub(crate) fn run(server: &RedisServer, bars: &mut Bars) {
    println!(
        "\n| waiters of held locks | trips/s | scripts/s | commands/s, with those in scripts | connections | memory MB | CPU of the process |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    let one = watch(server, &ONE_KEY);
    let many = watch(server, &MANY_KEYS);
    bars.at_most("1 000 waiters: commands/s", one.commands, 1.0);
    bars.at_most("1 000 waiters: connections", one.connections as f64, 2.0);
    bars.at_most("1 000 waiters: MB", one.megabytes, 12.0);
    bars.at_most("5 000 keys: commands/s", many.commands, 200.0);
}

fn watch(server: &RedisServer, crowd: &Crowd) -> Cost {
    let Crowd {
        name,
        keys,
        waiters,
        watched,
    } = crowd;
    let mut holder = Crew::start(server, Trade::Kit, 1, 1);
    holder.tell(&format!("hold idle{keys} {keys}"));
    let others = connections(server);
    let mut waiting = Crew::start(server, Trade::Kit, 1, 1);
    let connections = connections(server) - others;
    let memory = resident_bytes(waiting.pid());
    let keys_before = key_count(server);
    waiting.tell(&format!("wait idle{keys} {keys} {waiters}"));
    // There is a queue for each key.
    let wanted = keys_before + i64::from(*keys);
    let queued = wait::holds_within(LIMIT, || key_count(server) >= wanted);
    assert!(queued, "the waiters are not queued");
    let (before, cpu) = (Counts::of(server), cpu_seconds(waiting.pid()));
    std::thread::sleep(*watched);
    let seconds = watched.as_secs_f64();
    let counts = Counts::of(server) - before;
    let cpu = (cpu_seconds(waiting.pid()) - cpu) / seconds;
    let cost = Cost {
        commands: counts.trips.max(counts.scripts) / seconds,
        connections,
        megabytes: (resident_bytes(waiting.pid()).saturating_sub(memory)) as f64 / 1e6,
    };
    println!(
        "| {name}, {seconds:.0} s | {:.1} | {:.1} | {:.1} | {connections} | {:.1} | {:.1} % of a core |",
        counts.trips / seconds,
        counts.scripts / seconds,
        counts.commands / seconds,
        cost.megabytes,
        cpu * 100.0
    );
    cost
}

fn connections(server: &RedisServer) -> i64 {
    let clients = &server.info("clients")["connected_clients"];
    clients.parse().expect("a number")
}

fn key_count(server: &RedisServer) -> i64 {
    server.cli(&["DBSIZE"]).parse().expect("a number")
}
