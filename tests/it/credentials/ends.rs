//! Tests passwords that end: the manager renews them on its open connections.

use std::time::Duration;

use lock_tests::{RedisServer, needs, wait};

use super::{Office, Site};
use crate::steps::{long, taken};

/// Returns how many calls of a command each server has had.
fn calls(site: &Site, command: &str) -> Vec<u64> {
    let of = |server: &RedisServer| server.commandstats().get(command).copied().unwrap_or(0);
    site.servers().iter().map(of).collect()
}

/// Lets passwords of one second end several times, under a held lock.
async fn renews_its_credentials(site: Site) {
    site.accepts("one");
    let mut office = Office::new("one");
    office.valid_for = Some(Duration::from_secs(1));
    let locks = office.manager(&site.url).await;
    let guard = taken(&locks, "k", long()).await;
    let connected = site.connections();
    assert!(connected.iter().any(|&count| count > 0));

    office.gives(Some("two"));
    site.accepts("two");
    let before = calls(&site, "auth");
    wait::eventually("each connection has logged in three times", async || {
        let mut servers = calls(&site, "auth")
            .into_iter()
            .zip(&before)
            .zip(&connected);
        servers.all(|((now, before), &connections)| now - before >= 3 * connections as u64)
    })
    .await;
    assert!(guard.is_valid());
    guard
        .release()
        .await
        .expect("on a connection that is logged in");
}

#[tokio::test]
async fn credentials_are_renewed_on_one_server() {
    needs!(redis);
    renews_its_credentials(Site::one()).await;
}

#[tokio::test]
async fn credentials_are_renewed_beside_sentinels() {
    needs!(redis);
    renews_its_credentials(Site::sentinel()).await;
}

#[tokio::test]
async fn credentials_are_renewed_in_a_cluster() {
    needs!(redis);
    renews_its_credentials(Site::cluster()).await;
}

#[tokio::test]
async fn credentials_are_renewed_on_independent_servers() {
    needs!(redis);
    renews_its_credentials(Site::redlock()).await;
}
