//! Looks for a violation, for the command that seeds faults.
//!
//! `lock-sim find <where> <seconds> <first seed> <histories> [<changed part of a script>…]` runs histories until one
//! violates a rule, for so many seconds and not more than so many seeds. [`place`] explains
//! `<where>`. The last line is the result:
//!
//! * `result: found<tab><where><tab><seed><tab><what was found, and when>`
//! * `result: clean<tab><numbers>`
//! * `result: no script<tab><error>`, if a changed script does not compile

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::history::{Log, run};
use crate::place::{self, Place};
use crate::server::parts;

/// A history takes milliseconds. One that computes for so long has no end. Other programs can take the processor for as long
/// in real time.
const LONGEST: Duration = Duration::from_secs(20);

/// A history that computes nothing, because it waits for itself, ends the search after so much real time.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// The history that runs, with the processor time of the process and the real time at its begin.
static RUNNING: Mutex<Option<(Place, u64, Duration, Instant)>> = Mutex::new(None);

/// Follows the words behind `find`.
///
/// # Errors
///
/// If the words do not name a search.
pub fn find(words: &[&str]) -> Result<(), String> {
    let result = result(words)?;
    println!("result: {result}");
    Ok(())
}

fn result(words: &[&str]) -> Result<String, String> {
    let [places, seconds, first, histories, changed @ ..] = words else {
        return Err("find <where> <seconds> <first seed> <histories> [<script>…]".to_owned());
    };
    let places = place::read(places)?;
    let number = |text: &str| {
        text.parse::<u64>()
            .map_err(|_| format!("{text} is no number"))
    };
    let (limit, first, histories) = (
        Duration::from_secs(number(seconds)?),
        number(first)?,
        number(histories)?,
    );
    for path in changed {
        parts::change(Path::new(path))?;
    }
    std::thread::spawn(watch);
    let start = Instant::now();
    let mut count = 0;
    for seed in first..first.saturating_add(histories) {
        for place in &places {
            if start.elapsed() >= limit {
                return Ok(clean(count, start));
            }
            let Some(plan) = place.plan(seed) else {
                continue;
            };
            *RUNNING.lock().expect("no panic") =
                Some((place.clone(), seed, computed(), Instant::now()));
            count += 1;
            let wrong = match catch_unwind(AssertUnwindSafe(|| run(&plan, Log::No))) {
                Ok(report) => report.violations.first().map(|it| it.rule.to_owned()),
                Err(panic) => match panic.downcast_ref::<parts::NotLua>() {
                    Some(not_lua) => return Ok(format!("no script\t{}", not_lua.0)),
                    None => Some(format!("panic: {}", text_of(&*panic))),
                },
            };
            if let Some(wrong) = wrong {
                let seconds = start.elapsed().as_secs_f64();
                let wrong = wrong.replace(['\n', '\t'], " ");
                return Ok(format!(
                    "found\t{place}\t{seed}\t{wrong}, after {count} histories, {seconds:.1} s"
                ));
            }
        }
    }
    Ok(clean(count, start))
}

/// Ends the search at a history that has no end.
fn watch() {
    loop {
        std::thread::sleep(Duration::from_secs(1));
        let running = RUNNING.lock().expect("no panic").clone();
        if let Some((place, seed, before, begun)) = running
            && (computed().saturating_sub(before) >= LONGEST || begun.elapsed() >= LONGEST_WAIT)
        {
            println!("result: found\t{place}\t{seed}\ta history has no end");
            std::process::exit(0);
        }
    }
}

/// The processor time that this process has used.
fn computed() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

fn clean(count: u64, start: Instant) -> String {
    format!(
        "clean\t{count} histories, {:.1} s",
        start.elapsed().as_secs_f64()
    )
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_default()
}
