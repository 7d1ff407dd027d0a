//! Runs histories for a time, or one seed with its log. README.md explains the commands.

use std::ops::ControlFlow;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use lock_sim::find;
use lock_sim::history::{Log, run};
use lock_sim::plan::{Plan, Topology};
use lock_sim::search::{explain, search};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["seed", topology, seed] => repeat(topology, seed),
        ["for", seconds] => search_for(seconds, "all", None),
        ["for", seconds, topologies] => search_for(seconds, topologies, None),
        ["for", seconds, topologies, seed] => search_for(seconds, topologies, Some(seed)),
        ["find", words @ ..] => find::find(words),
        _ => Err(
            "write `for <seconds> [all|<topology>] [<first seed>]` or `seed <topology> <seed>`"
                .to_owned(),
        ),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            println!("{text}");
            ExitCode::FAILURE
        }
    }
}

fn topologies(name: &str) -> Result<Vec<Topology>, String> {
    if name == "all" {
        return Ok(Topology::ALL.to_vec());
    }
    let mut all = Topology::ALL.into_iter();
    let found = all.find(|topology| format!("{topology:?}").eq_ignore_ascii_case(name));
    let names = || format!("{name} is no topology; write one of {:?}", Topology::ALL);
    found.map(|found| vec![found]).ok_or_else(names)
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text} is no number"))
}

/// Runs histories for so many seconds, and stops at a violation.
fn search_for(seconds: &str, topology: &str, seed: Option<&str>) -> Result<(), String> {
    let topologies = topologies(topology)?;
    let lasts = Duration::from_secs(number(seconds)?);
    let first = seed.map_or_else(|| Ok(any_seed()), number)?;
    let start = Instant::now();
    let (sum, done) = search(&topologies, first, |_| match start.elapsed() < lasts {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    });
    let seconds = start.elapsed().as_secs_f64();
    let a_minute = sum.histories as f64 / seconds * 60.0;
    println!("from seed {first}: {seconds:.1} s, {a_minute:.0} histories a minute, {sum:?}");
    done
}

/// A first seed that no earlier run had.
fn any_seed() -> u64 {
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    time.map_or(0, |time| time.as_secs() << 20)
}

/// Repeats one history, and prints its log.
fn repeat(topology: &str, seed: &str) -> Result<(), String> {
    let topology = topologies(topology)?[0];
    let plan = Plan::of(number(seed)?, topology);
    let report = run(&plan, Log::Yes);
    report.log.iter().for_each(|line| println!("{line}"));
    println!("trace {:016x}", report.trace);
    match report.violations.is_empty() {
        true => Ok(()),
        false => Err(explain(&plan, &report)),
    }
}
