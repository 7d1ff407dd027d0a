//! The worker: it goes on with the lock of a request, and writes the report.

use std::error::Error;
use std::io::{self, Write};
use std::time::Duration;

use lock_core::{FencingToken, LockManager};

use crate::jobs::{Job, Jobs};

/// The time that a report takes. `REPORT_MILLIS` changes it.
const TIME_OF_A_REPORT: Duration = Duration::from_secs(2);

pub(crate) async fn run(locks: LockManager, jobs: Jobs) -> Result<(), Box<dyn Error>> {
    let time = match std::env::var("REPORT_MILLIS") {
        Ok(millis) => Duration::from_millis(millis.parse()?),
        Err(_) => TIME_OF_A_REPORT,
    };
    while let Some(job) = jobs.pop().await? {
        let words = work(&locks, &jobs, job, time).await?;
        writeln!(io::stdout(), "{words}")?;
    }
    Ok(())
}

/// Does one job, and returns its outcome in words.
pub(crate) async fn work(
    locks: &LockManager,
    jobs: &Jobs,
    job: Job,
    time: Duration,
) -> Result<String, Box<dyn Error>> {
    let Job { report, ticket } = &job;
    let ticket = match ticket.parse() {
        Ok(ticket) => ticket,
        Err(error) => return Ok(format!("report {report}: left out, {error}")),
    };
    let guard = match locks.resume(ticket).await {
        Ok(guard) => guard,
        // The job was delivered twice, or too late. Another worker may write this report now.
        Err(error) if error.is_lost() => {
            return Ok(format!("report {report}: no lock, {error}"));
        }
        Err(error) if error.is_unavailable() => {
            // The ticket may still be good. The next attempt tells.
            tokio::time::sleep(Duration::from_secs(1)).await;
            jobs.push(&job).await?;
            return Ok(format!("report {report}: later, {error}"));
        }
        Err(error) => return Err(error.into()),
    };
    let fence = guard.fencing_token();
    writeln!(
        io::stdout(),
        "report {report} begins under fencing token {fence}"
    )?;
    tokio::select! {
        () = write_report(fence, time) => {}
        () = guard.lost() => return Ok(format!("report {report}: the lock was lost, and the work is dropped")),
    }
    guard.release().await?;
    Ok(format!(
        "report {report} is done under fencing token {fence}"
    ))
}

/// Stands for the real work, whose database checks the fencing token with each write.
async fn write_report(_fence: FencingToken, time: Duration) {
    tokio::time::sleep(time).await;
}
