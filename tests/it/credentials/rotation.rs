//! Tests a password that changes while locks are held and waited for.

use std::time::Duration;

use lock_tests::{needs, wait};
use tokio::time::sleep;

use super::{Office, Site};
use crate::steps::{its_turn, taken};

const TTL: Duration = Duration::from_secs(3);

/// Changes the password and closes all connections, under a held lock and a waiter.
async fn survives_a_rotation(site: Site) {
    site.accepts("one");
    let office = Office::new("one");
    let (locks, others) = (
        office.manager(&site.url).await,
        office.manager(&site.url).await,
    );
    let guard = taken(&locks, "k", TTL).await;
    let waiter = tokio::spawn(others.lock("k").ttl(TTL).wait(wait::PATIENCE * 2).acquire());
    let readers = taken(&others, "another", TTL).await;
    let asked = office.asked();

    office.gives(Some("two"));
    site.accepts("two");
    site.disconnects();
    // A lease that is not renewed ends within this time.
    sleep(TTL * 2).await;
    assert!(
        guard.is_valid() && readers.is_valid(),
        "renewed on new connections"
    );
    assert!(!waiter.is_finished(), "{:?}", waiter.await);
    assert!(
        office.asked() > asked,
        "the manager has asked for the new password"
    );

    guard.release().await.expect("held");
    its_turn(waiter).await.release().await.expect("held");
    taken(&locks, "new", TTL)
        .await
        .release()
        .await
        .expect("held");
    readers.release().await.expect("held");
    assert!(
        site.connections().iter().sum::<usize>() > 0,
        "all as the user of the provider"
    );
}

#[tokio::test]
async fn a_password_changes_under_the_locks_of_one_server() {
    needs!(redis);
    survives_a_rotation(Site::one()).await;
}

#[tokio::test]
async fn a_password_changes_under_the_locks_of_sentinels() {
    needs!(redis);
    survives_a_rotation(Site::sentinel()).await;
}

#[tokio::test]
async fn a_password_changes_under_the_locks_of_a_cluster() {
    needs!(redis);
    survives_a_rotation(Site::cluster()).await;
}

#[tokio::test]
async fn a_password_changes_under_the_locks_of_independent_servers() {
    needs!(redis);
    survives_a_rotation(Site::redlock()).await;
}
