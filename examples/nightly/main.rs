//! A nightly job that runs on one machine only.
//!
//! All machines start it at the same time, for example by cron. One of them takes the lock and does the work. The
//! others say so and exit.
//!
//! Run it in two terminals with `REDIS_URL=redis://127.0.0.1:6379 cargo run --example nightly`. An argument sets the
//! number of steps of the job.
//!
//! | exit code | meaning |
//! | --- | --- |
//! | 0 | the job is done |
//! | 1 | the job has failed, and another machine may run it |
//! | 69 | Redis did not answer, so the job did not begin |
//! | 70 | the lock was lost, and the job was stopped |
//! | 75 | another machine runs the job, or it was done less than 12 hours ago |
//! | 78 | a setting is wrong: the URL, the rights of its user, the argument |
//! | 130, 143 | Ctrl-C or SIGTERM stopped the job, and its lock was released |

mod outcome;
#[path = "../shutdown.rs"]
mod shutdown;
#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use lock_core::{LockHandle, LockManager};

use crate::outcome::Outcome;

/// The time after which another machine may run the job of one that crashed.
const TTL: Duration = Duration::from_secs(10);
/// The time for which a job that is done is not repeated. The clocks of the machines differ, so one of them may start
/// when another is done already.
const TONIGHT: Duration = Duration::from_secs(12 * 3600);
/// A job that hangs is stopped after this time, so that the next night's job can begin.
const LONGEST: Duration = Duration::from_secs(6 * 3600);
/// The time that the release has at the end. A key that is not released expires after the ttl.
const LAST_RELEASE: Duration = Duration::from_secs(5);

const STEPS: u32 = 20;
const TIME_OF_A_STEP: Duration = Duration::from_millis(200);

#[tokio::main]
async fn main() -> ExitCode {
    // The handlers of the signals are installed before the lock is asked for.
    let stopped = shutdown::requested();
    let outcome = match settings() {
        Ok((locks, steps)) => {
            let outcome = tokio::select! {
                outcome = nightly(&locks, move |lock| count_stock(lock, steps)) => outcome,
                // The other future is dropped: first the job, and then its lock, which the background releases.
                signal = stopped => Outcome::Stopped(signal),
            };
            locks.drain(LAST_RELEASE).await;
            outcome
        }
        Err(wrong) => wrong,
    };
    eprintln!("nightly: {outcome}");
    outcome.exit_code().into()
}

fn settings() -> Result<(LockManager, u32), Outcome> {
    let steps = match std::env::args().nth(1) {
        Some(steps) => steps.parse().map_err(|_| Outcome::WrongArgument)?,
        None => STEPS,
    };
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| {
        eprintln!("nightly: without REDIS_URL the lock excludes no other process");
        "memory:".to_owned()
    });
    // The first request connects. So a SIGTERM during that time is obeyed at once.
    let locks = LockManager::connect_lazy(&url).map_err(Outcome::NoLock)?;
    Ok((locks, steps))
}

/// Runs the job, unless another machine runs it or has done it tonight.
///
/// The job is dropped at its next await when the lock is lost, because another machine may begin then.
async fn nightly<F>(locks: &LockManager, job: impl FnOnce(LockHandle) -> F) -> Outcome
where
    F: Future<Output = io::Result<()>>,
{
    let tonight = locks
        .lock("nightly")
        .ttl(TTL)
        .max_hold(LONGEST)
        .cooldown(TONIGHT);
    // A job that failed has no cooldown, so another machine may run it.
    match tonight.run_with(job).cooldown_if(Result::is_ok).await {
        Ok(Ok(())) => Outcome::Done,
        Ok(Err(error)) => Outcome::Failed(error),
        Err(error) => Outcome::NoLock(error),
    }
}

/// The job. Its database would check the fencing token with every write.
async fn count_stock(lock: LockHandle, steps: u32) -> io::Result<()> {
    let fence = lock.fencing_token();
    for step in 1..=steps {
        let mut out = io::stdout();
        writeln!(out, "step {step} of {steps} under fencing token {fence}")?;
        tokio::time::sleep(TIME_OF_A_STEP).await;
    }
    Ok(())
}
