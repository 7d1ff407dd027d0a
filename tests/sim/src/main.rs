//! Runs histories for a time, or one seed with its log. README.md explains the commands.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use lock_sim::find;
use lock_sim::history::{Log, run};
use lock_sim::place;
use lock_sim::search::{explain, search};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["seed", topology, seed] => repeat(topology, seed),
        ["for", seconds] => search_for(seconds, "all", None),
        ["for", seconds, places] => search_for(seconds, places, None),
        ["for", seconds, places, seed] => search_for(seconds, places, Some(seed)),
        ["count", seconds, places, seed] => count(seconds, places, seed),
        ["find", words @ ..] => find::find(words),
        _ => Err(
            "write `for <seconds> [<where>] [<first seed>]`, `seed <topology> <seed>` or \
             `count <seconds> <where> <first seed>`"
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

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text} is no number"))
}

/// Runs histories for so many seconds, and stops at a violation.
fn search_for(seconds: &str, places: &str, seed: Option<&str>) -> Result<(), String> {
    let places = place::read(places)?;
    let lasts = Duration::from_secs(number(seconds)?);
    let first = seed.map_or_else(|| Ok(any_seed()), number)?;
    let start = Instant::now();
    let (sum, done) = search(&places, first, |_| match start.elapsed() < lasts {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    });
    let seconds = start.elapsed().as_secs_f64();
    let a_minute = sum.histories as f64 / seconds * 60.0;
    println!("from seed {first}: {seconds:.1} s, {a_minute:.0} histories a minute, {sum:?}");
    done
}

/// Runs histories for so many seconds, and counts the violations of each rule, with three seeds of each.
fn count(seconds: &str, places: &str, seed: &str) -> Result<(), String> {
    let (places, first) = (place::read(places)?, number(seed)?);
    let lasts = Duration::from_secs(number(seconds)?);
    let start = Instant::now();
    let mut rules: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut histories = 0;
    for seed in first.. {
        for place in &places {
            let Some(plan) = place.plan(seed) else {
                continue;
            };
            let report = run(&plan, Log::No);
            histories += 1;
            for violation in &report.violations {
                let weather = plan.weather;
                let shown = format!("{place} {seed} {weather:?} {}", violation.text);
                rules.entry(violation.rule).or_default().push(shown);
            }
        }
        if start.elapsed() >= lasts {
            break;
        }
    }
    println!("{histories} histories");
    for (rule, shown) in &rules {
        println!("{} x {rule}", shown.len());
        shown
            .iter()
            .take(3)
            .for_each(|shown| println!("    {shown}"));
    }
    match rules.is_empty() {
        true => Ok(()),
        false => Err("violations".to_owned()),
    }
}

/// A first seed that no earlier run had.
fn any_seed() -> u64 {
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    time.map_or(0, |time| time.as_secs() << 20)
}

/// Repeats one history, and prints its log.
fn repeat(topology: &str, seed: &str) -> Result<(), String> {
    let seed = number(seed)?;
    let plan = place::read(topology)?[0]
        .plan(seed)
        .ok_or("the seed is about something else")?;
    let report = run(&plan, Log::Yes);
    report.log.iter().for_each(|line| println!("{line}"));
    let calls = report.ledger.calls.iter();
    calls.for_each(|call| println!("{call}"));
    println!("trace {:016x}", report.trace);
    match report.violations.is_empty() {
        true => Ok(()),
        false => Err(explain(&plan, &report)),
    }
}
