//! Checks that each side is refused while the other holds the lock, and does not disturb it.

use lock_core::ErrorKind;

use crate::Failure;
use crate::foreign::Answer;
use crate::stage::{LONG, Stage, ensure};

pub(crate) async fn both_ways(stage: &mut Stage) -> Result<(), Failure> {
    let guard = stage.taken(LONG).await?;
    let token = stage.value();
    stage.foreign.expect("take 10000", Answer::No).await?;
    ensure(stage.value() == token, "the client changes the kit's key")?;
    ensure(
        guard.is_valid(),
        "the kit loses its lock to the client's try",
    )?;
    guard.release().await.map_err(|error| error.to_string())?;

    stage.foreign.expect("take 60000", Answer::Yes).await?;
    let (token, expires_at) = (stage.value(), stage.expires_at());
    stage.is_busy().await?;
    let error = stage.request(LONG).acquire().await.err();
    let kind = error.map(|error| error.kind());
    ensure(
        kind == Some(ErrorKind::Busy),
        "the kit is not refused with Busy",
    )?;
    ensure(stage.value() == token, "the kit changes the client's key")?;
    ensure(
        stage.expires_at() == expires_at,
        "the kit changes the client's ttl",
    )?;
    stage.foreign.expect("release", Answer::Yes).await?;
    ensure(stage.is_free(), "the client's release leaves the key")
}
