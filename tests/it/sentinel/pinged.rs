//! Tests the answers to a ping while the master is replaced.

use lock_core::{ErrorKind, LockManager};
use lock_tests::{needs, wait};

use crate::conformance::Watched;
use crate::steps::{kind, once};

#[tokio::test]
async fn a_killed_master_is_unavailable_until_another_server_has_its_place() {
    needs!(redis);
    let watched = Watched::start();
    let locks = LockManager::connect(&watched.sentinels.url()).await;
    let locks = locks.expect("a manager");
    locks.ping().await.expect("a master that answers");
    watched.master().kill();
    assert_eq!(kind(locks.ping().await), ErrorKind::Unavailable);
    wait::eventually("there is another master", async || {
        locks.ping().await.is_ok()
    })
    .await;
    once(&locks, "k").await;
}
