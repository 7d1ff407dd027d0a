//! Checks that a lock that is extended or renewed stays with its owner, on both sides.

use std::time::Duration;

use crate::Failure;
use crate::foreign::Answer;
use crate::stage::{Stage, ensure};

/// The ways in which a client makes its lock longer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extension {
    pub(crate) by_hand: bool,
    pub(crate) by_itself: bool,
}

/// The ttl of a renewed lock. Some clients count in whole seconds.
const TTL: Duration = Duration::from_secs(2);
/// The time for which a renewed lock is watched.
const WATCHED: Duration = Duration::from_secs(5);

pub(crate) async fn of_both(stage: &mut Stage) -> Result<Extension, Failure> {
    stage.foreign.expect("take 10000", Answer::Yes).await?;
    let by_hand = match stage.foreign.ask("extend 60000").await? {
        Answer::Yes => {
            ensure(
                stage.rest() > 11_000,
                "the client's extension does not last",
            )?;
            stage.is_busy().await?;
            true
        }
        Answer::None => false,
        Answer::No => return Err("the client cannot extend its lock".to_owned()),
    };
    stage.foreign.expect("release", Answer::Yes).await?;

    let take = format!("take-renewed {}", TTL.as_millis());
    let by_itself = match stage.foreign.ask(&take).await? {
        Answer::Yes => {
            let end = stage.now() + i64::try_from(WATCHED.as_millis()).expect("a few seconds");
            while stage.now() < end {
                stage.is_busy().await?;
            }
            stage.foreign.expect("release", Answer::Yes).await?;
            true
        }
        Answer::None => false,
        Answer::No => return Err("the client does not get a free lock".to_owned()),
    };

    let guard = stage.taken(TTL).await?;
    while guard.held_for() < WATCHED {
        stage.foreign.expect("take 10000", Answer::No).await?;
    }
    ensure(guard.is_valid(), "the kit loses a lock that it renews")?;
    guard.release().await.map_err(|error| error.to_string())?;
    Ok(Extension { by_hand, by_itself })
}
