//! Measures one key that many tasks take for a millisecond each, against one raw task alone.

use std::time::Duration;

use lock_tests::RedisServer;

use crate::bars::Bars;
use crate::counts::Counts;
use crate::crew::{Crew, Trade};
use crate::record::{Round, of};

const ROUNDS: usize = 3;
const TURN: Duration = Duration::from_secs(2);
const RAW_TURN: Duration = Duration::from_millis(500);
const HOLD: Duration = Duration::from_millis(1);

/// The figures of some processes with some tasks each.
struct Measured {
    name: &'static str,
    processes: u32,
    tasks: u32,
    rounds: Vec<Round>,
    /// The figures for each acquisition.
    scripts: f64,
    trips: f64,
    commands: f64,
}

pub(crate) fn run(server: &RedisServer, short: bool, bars: &mut Bars) {
    let (count, part) = if short { (1, 4) } else { (ROUNDS, 1) };
    let mut raw = Crew::start(server, Trade::Raw, 1, 1);
    let mut raw_rounds = Vec::new();
    let all = [
        ("1 process × 16 tasks", 1, 16),
        ("2 processes × 1 task", 2, 1),
        ("8 processes × 1 task", 8, 1),
        ("2 processes × 8 tasks", 2, 8),
    ]
    .map(|(name, processes, tasks)| {
        let mut kit = Crew::start(server, Trade::Kit, processes, tasks);
        let mut rounds = Vec::new();
        let mut counts = Counts::default();
        for _ in 0..count {
            raw_rounds.push(raw.turn(RAW_TURN / part, HOLD));
            let before = Counts::of(server);
            rounds.push(kit.turn(TURN / part, HOLD));
            counts += Counts::of(server) - before;
        }
        let acquisitions: f64 = rounds.iter().map(Round::all).sum();
        Measured {
            name,
            processes,
            tasks,
            rounds,
            scripts: counts.scripts / acquisitions,
            trips: counts.trips / acquisitions,
            commands: counts.commands / acquisitions,
        }
    });
    print(&raw_rounds, &all);
    judge(&raw_rounds, &all, bars);
}

fn print(raw: &[Round], all: &[Measured]) {
    println!(
        "\n| one key, held for 1 ms | acquisitions/s | × raw alone | × ideal | dead µs, mean | median | most ÷ least | wait p50 ms | p99 ms | p99 ÷ ideal | scripts | trips | commands | changes of process |"
    );
    println!(
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    );
    let raw_rate = of(raw, Round::rate);
    let ideal = |rounds: &[Round]| of(rounds, |round| round.rate() * round.hold() / 1e6);
    println!(
        "| one raw task, alone | {raw_rate:.0} | 1.00 | {:.3} | {:.1} | {:.1} | | | | | 1 | 2 | 4 | |",
        ideal(raw),
        of(raw, Round::dead),
        of(raw, Round::dead_median)
    );
    for it in all {
        let rounds = &it.rounds;
        println!(
            "| {} | {:.0} | {:.2} | {:.3} | {:.1} | {:.1} | {:.3} | {:.2} | {:.2} | {:.2} | {:.3} | {:.3} | {:.2} | {:.1} % |",
            it.name,
            of(rounds, Round::rate),
            of(rounds, Round::rate) / raw_rate,
            ideal(rounds),
            of(rounds, Round::dead),
            of(rounds, Round::dead_median),
            of(rounds, Round::unfairness),
            of(rounds, |round| round.wait(0.5)) / 1e3,
            of(rounds, |round| round.wait(0.99)) / 1e3,
            it.wait(0.99, it.processes * it.tasks - 1),
            it.scripts,
            it.trips,
            it.commands,
            of(rounds, Round::changes) * 100.0
        );
    }
    println!(
        "\nIdeal: no time passes between two holds, and a wait is one hold of each other task. Dead: the \
         time from a release to the next grant. Trips: reads of the server. Commands: including those \
         inside scripts. Trips and commands are for each acquisition, with all other requests of the \
         managers."
    );
}

impl Measured {
    /// Returns a percentile of the waits, in units of so many measured holds.
    fn wait(&self, part: f64, holds: u32) -> f64 {
        of(&self.rounds, |round| {
            round.wait(part) / (round.hold() * f64::from(holds))
        })
    }
}

fn judge(raw: &[Round], all: &[Measured; 4], bars: &mut Bars) {
    let raw = of(raw, Round::rate);
    let [one, two, eight, mixed] = all;
    bars.at_most("1 × 16: dead µs, mean", of(&one.rounds, Round::dead), 10.0);
    bars.at_most("1 × 16: scripts per acquisition", one.scripts, 0.1);
    bars.at_most(
        "1 × 16: most ÷ least served",
        of(&one.rounds, Round::unfairness),
        1.02,
    );
    bars.at_most("1 × 16: p99 wait ÷ 16 holds", one.wait(0.99, 16), 1.1);
    bars.at_least(
        "2 × 1: × raw alone",
        of(&two.rounds, Round::rate) / raw,
        1.0,
    );
    bars.at_least(
        "2 × 1: changes of process",
        of(&two.rounds, Round::changes),
        1.0,
    );
    bars.at_most("2 × 1: p99 wait ÷ hold", two.wait(0.99, 1), 1.5);
    bars.at_most("2 × 1: scripts per acquisition", two.scripts, 2.05);
    bars.at_least(
        "8 × 1: × raw alone",
        of(&eight.rounds, Round::rate) / raw,
        1.0,
    );
    bars.at_most("8 × 1: p99 wait ÷ 7 holds", eight.wait(0.99, 7), 1.3);
    bars.at_most("2 × 8: longest wait ÷ 16 holds", mixed.wait(1.0, 16), 2.0);
}
