//! Checks the clients that lock on a majority of independent servers, against `redlock://` of the kit.

use std::time::Duration;

use lock_core::{ErrorKind, LockManager};
use lock_tests::{RedisServer, wait};

use crate::Failure;
use crate::clients::Client;
use crate::contention::{ROUNDS, together};
use crate::foreign::{Answer, Foreign};
use crate::stage::{LOCK, LONG, ensure, request};

/// Checks exclusion in both directions, and counts. Returns the result for the operator.
pub(crate) async fn over_three(client: &Client) -> Result<String, Failure> {
    let servers = [(); 3].map(|()| RedisServer::start());
    let addresses = servers
        .each_ref()
        .map(|server| server.address().to_string());
    let url = format!("redlock://{}?assume_fresh=true", addresses.join(","));
    let locks = LockManager::builder(&url)
        .namespace(client.namespace)
        .operation_timeout(Duration::from_secs(5))
        .connect()
        .await
        .map_err(|error| error.to_string())?;
    let ports = servers.each_ref().map(|server| server.port().to_string());
    let mut foreign = Foreign::start(client, &ports.join(","), LOCK).await?;
    let key = format!("{}{LOCK}", client.namespace);
    let values = || servers.each_ref().map(|server| server.get(&key));

    let guard = request(&locks, LONG).acquire().await;
    let guard = guard.map_err(|error| format!("the kit does not get a free lock: {error}"))?;
    foreign.expect("take 10000", Answer::No).await?;
    ensure(
        guard.is_valid(),
        "the kit loses its lock to the client's try",
    )?;
    guard.release().await.map_err(|error| error.to_string())?;
    // A release returns when most servers have confirmed it.
    wait::eventually("the kit's lock is free", async || {
        values() == [None, None, None]
    })
    .await;

    foreign.expect("take 60000", Answer::Yes).await?;
    wait::eventually("all servers have the client's lock", async || {
        values().iter().all(Option::is_some)
    })
    .await;
    let tokens = values();
    let error = request(&locks, LONG).acquire().await.err();
    let kind = error.map(|error| error.kind());
    ensure(
        kind == Some(ErrorKind::Busy),
        "the kit is not refused with Busy",
    )?;
    ensure(values() == tokens, "the kit changes the client's keys")?;
    foreign.expect("release", Answer::Yes).await?;
    wait::eventually("the client's lock is free", async || {
        values() == [None, None, None]
    })
    .await;

    let (of_client, kit, contended) =
        together(&servers[0], &locks, &mut foreign, 1, ROUNDS).await?;
    Ok(format!(
        "0 lost updates in {of_client} rounds of the client and {kit} of the kit, which waited in {contended}"
    ))
}
