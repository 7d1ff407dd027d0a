//! Runs a random campaign of faults against the promises of README.
//!
//! The faults are of the network, of processes and of servers, in all combinations.
//!
//! Workers are separate processes. A ledger compares their journal with the keys of the servers, and knows
//! nothing else about locks.
//!
//! `LOCK_TESTS_CAMPAIGN` sets the length in seconds. The whole campaign follows from a seed, which it prints.
//! `LOCK_TESTS_CAMPAIGN_SEED=<seed>` repeats it, `<seed>:<round>` repeats one round, and
//! `<seed>:<round>:<fault>,<fault>…` repeats the round with these faults only.

mod calls;
mod fault;
mod journal;
mod ledger;
mod plan;
mod round;
mod stage;
mod twice;
mod watch;
mod work;
mod worker;

use std::env;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use lock_tests::{missing, needs};

use plan::Plan;

const USUAL: Duration = Duration::from_secs(40);
/// The number of rounds at once: one on a single server, and one on another topology.
const LANES: u64 = 2;

/// The rounds to run.
struct Campaign {
    seed: u64,
    only: Option<u64>,
    faults: Option<Vec<usize>>,
    lasts: Duration,
}

impl Campaign {
    fn wanted() -> Campaign {
        let lasts = env::var("LOCK_TESTS_CAMPAIGN").ok();
        let lasts = lasts.map(|it| Duration::from_secs(it.parse().expect("a number of seconds")));
        let seed = env::var("LOCK_TESTS_CAMPAIGN_SEED").unwrap_or_else(|_| any_seed().to_string());
        let mut parts = seed.split(':');
        let number = |text: &str| text.parse().expect("<seed>:<round>:<fault>,<fault>…");
        let seed = number(parts.next().expect("one part at least"));
        let only = parts.next().map(number);
        let faults = parts.next().map(|it| {
            it.split(',')
                .map(|it| it.parse().expect("a fault"))
                .collect()
        });
        Campaign {
            seed,
            only,
            faults,
            lasts: lasts.unwrap_or(USUAL),
        }
    }

    /// Runs every second round, as long as there is time to begin one.
    fn run_lane(&self, lane: u64, failed: &Mutex<Vec<String>>) {
        let start = Instant::now();
        for number in (lane..).step_by(usize::try_from(LANES).expect("few")) {
            let begins = match self.only {
                Some(only) => only == number,
                None => start.elapsed() < self.lasts,
            };
            if begins {
                self.run_round(number, failed);
            }
            if start.elapsed() >= self.lasts || self.only.is_some_and(|only| only <= number) {
                return;
            }
        }
    }

    fn run_round(&self, number: u64, failed: &Mutex<Vec<String>>) {
        let mut plan = Plan::of(self.seed, number);
        if let Some(wanted) = &self.faults {
            plan.faults = wanted.iter().map(|index| plan.faults[*index]).collect();
        }
        println!("{plan}");
        let (account, wrong) = round::run(&plan);
        let (asked, granted) = account.counts();
        println!(
            "round {}:{number}: {asked} asked, {granted} granted, {} wrong",
            self.seed,
            wrong.len()
        );
        if !wrong.is_empty() {
            let told = format!(
                "{plan}{}",
                wrong
                    .iter()
                    .map(|it| format!("  {it}\n"))
                    .collect::<String>()
            );
            println!("{told}");
            failed.lock().expect("no panic").push(told);
        }
    }
}

fn any_seed() -> u64 {
    let time = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970");
    u64::from(time.subsec_nanos()) ^ u64::from(std::process::id())
}

#[test]
fn no_promise_breaks_under_any_combination_of_faults() {
    needs!(redis);
    if let Err(why) = missing::server_clock() {
        missing::not_run(
            &|| (),
            &format!("the clocks of servers cannot be stepped: {why}"),
        );
    }
    let campaign = Campaign::wanted();
    println!("LOCK_TESTS_CAMPAIGN_SEED={}", campaign.seed);
    let failed = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for lane in 0..LANES {
            let (campaign, failed) = (&campaign, &failed);
            scope.spawn(move || campaign.run_lane(lane, failed));
        }
    });
    let failed = failed.into_inner().expect("no panic");
    let again = "LOCK_TESTS_CAMPAIGN_SEED=<seed>:<round> repeats a round";
    assert!(
        failed.is_empty(),
        "seed {}; {again}:\n{}",
        campaign.seed,
        failed.join("\n")
    );
}
