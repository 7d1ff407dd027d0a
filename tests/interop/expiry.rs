//! Checks that the locks of killed processes expire, and that a late release deletes no lock of another owner.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use lock_core::{ErrorKind, Renew};
use lock_tests::wait;

use crate::Failure;
use crate::foreign::Answer;
use crate::stage::{LONG, Stage, ensure};

/// The ttl of a lock that runs out, in ms. Some clients count in whole seconds.
const SHORT: u64 = 1000;

/// Kills the owner on each side in turn. The other side gets the lock when the ttl is over, and not earlier.
pub(crate) async fn of_both(stage: &mut Stage) -> Result<(), Failure> {
    stage
        .foreign
        .expect(&format!("take {SHORT}"), Answer::Yes)
        .await?;
    let expires_at = stage.expires_at();
    stage.foreign.kill();
    let waits = stage.request(LONG).wait(wait::PATIENCE).acquire().await;
    let guard = waits.map_err(|error| format!("a killed client keeps its lock: {error}"))?;
    ensure(
        stage.now() >= expires_at,
        "the kit takes a lock that has not expired",
    )?;
    guard.release().await.map_err(|error| error.to_string())?;
    stage.restart_client().await?;

    let mut owner = Command::new(std::env::current_exe().expect("this program"))
        .arg("hold")
        .args([
            &stage.server.url(),
            stage.client.namespace,
            &SHORT.to_string(),
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let mut held = String::new();
    let output = owner.stdout.take().expect("a pipe");
    let read = BufReader::new(output).read_line(&mut held);
    read.map_err(|error| error.to_string())?;
    ensure(held == "held\n", "the kit's process does not get the lock")?;
    let _ = owner.kill();
    let _ = owner.wait();
    let expires_at = stage.expires_at();
    takes_in_the_end(stage).await?;
    ensure(
        stage.now() >= expires_at,
        "the client takes a lock that has not expired",
    )?;
    stage.foreign.expect("release", Answer::Yes).await
}

/// Lets a lock run out on each side in turn. Its owner finds out at the release, and the next owner keeps the lock.
pub(crate) async fn late_releases(stage: &mut Stage) -> Result<(), Failure> {
    stage
        .foreign
        .expect(&format!("take {SHORT}"), Answer::Yes)
        .await?;
    wait::eventually("the client's lock expires", async || stage.is_free()).await;
    let guard = stage.taken(LONG).await?;
    let token = stage.value();
    let extended = stage.foreign.ask("extend 10000").await?;
    ensure(
        extended != Answer::Yes,
        "the client extends a lock of the kit",
    )?;
    // redlock-py and redis-semaphore do not say that the lock was lost.
    stage.foreign.ask("release").await?;
    ensure(
        stage.value() == token && guard.is_valid(),
        "a late release deletes the kit's lock",
    )?;
    guard.release().await.map_err(|error| error.to_string())?;

    let short = Duration::from_millis(SHORT);
    let guard = stage.request(short).renew(Renew::Off).acquire().await;
    let guard = guard.map_err(|error| error.to_string())?;
    wait::eventually("the kit's lock expires", async || stage.is_free()).await;
    stage.foreign.expect("take 60000", Answer::Yes).await?;
    let token = stage.value();
    let error = guard.release().await.err();
    let kind = error.map(|error| error.kind());
    ensure(
        kind == Some(ErrorKind::Lost),
        "the kit does not notice its loss",
    )?;
    ensure(
        stage.value() == token,
        "a late release of the kit deletes the client's lock",
    )?;
    stage.foreign.expect("release", Answer::Yes).await
}

/// Asks for the lock until the client has it.
async fn takes_in_the_end(stage: &mut Stage) -> Result<(), Failure> {
    let patience = i64::try_from(wait::PATIENCE.as_millis()).expect("some seconds");
    let end = stage.now() + patience;
    while stage.now() < end {
        if stage.foreign.ask("take 60000").await? == Answer::Yes {
            return Ok(());
        }
    }
    Err("a killed process of the kit keeps its lock".to_owned())
}
