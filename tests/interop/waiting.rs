//! Checks that each side gets the lock after the other has released it.

use std::time::Duration;

use crate::Failure;
use crate::foreign::Answer;
use crate::stage::{LONG, Stage, ensure};

/// How a client waits for a lock of the kit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Waiting {
    AsksAgain,
    /// The client waits for a signal of its own kind, and asks again after its ttl.
    MissesTheRelease,
    /// The client has no call that waits.
    None,
}

/// The clients ask again at least every 400 ms, and the one that is not woken waits for the 10 s of its ttl.
const BETWEEN: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(60);

pub(crate) async fn both_ways(stage: &mut Stage) -> Result<Waiting, Failure> {
    stage.foreign.expect("take 60000", Answer::Yes).await?;
    let before = requests(stage);
    let waiter = tokio::spawn(stage.request(LONG).wait(LONGEST).acquire());
    asked(stage, before).await;
    ensure(!waiter.is_finished(), "the kit does not wait")?;
    stage.foreign.expect("release", Answer::Yes).await?;
    let guard = waiter.await.expect("no panic");
    let guard = guard.map_err(|error| format!("the kit waits in vain: {error}"))?;

    if !stage.client.waits() {
        stage.foreign.expect("wait 10000", Answer::None).await?;
        guard.release().await.map_err(|error| error.to_string())?;
        return Ok(Waiting::None);
    }
    let before = requests(stage);
    stage.foreign.send("wait 10000")?;
    asked(stage, before).await;
    guard.release().await.map_err(|error| error.to_string())?;
    let waiting = match stage.foreign.answer(BETWEEN).await? {
        Some(Answer::Yes) => Waiting::AsksAgain,
        Some(answer) => return Err(format!("the client's wait ends with {answer:?}")),
        None => {
            ensure(
                stage.is_free(),
                "the lock is not free after the kit's release",
            )?;
            let late = stage.foreign.answer(LONGEST).await?;
            ensure(late == Some(Answer::Yes), "the client waits in vain")?;
            Waiting::MissesTheRelease
        }
    };
    stage.foreign.expect("release", Answer::Yes).await?;
    Ok(waiting)
}

/// Waits until a request for a lock has reached the server, after there were so many.
async fn asked(stage: &Stage, before: u64) {
    lock_tests::wait::eventually("a waiter asks", async || requests(stage) > before).await;
}

/// Returns how many commands and scripts that may take a lock the server has run.
fn requests(stage: &Stage) -> u64 {
    let calls = stage.server.commandstats();
    let may_take = ["set", "eval", "evalsha"];
    may_take.iter().filter_map(|name| calls.get(*name)).sum()
}
