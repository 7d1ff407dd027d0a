//! Tests the answer of a store that is asked whether locks can be taken.

use std::time::Duration;

use lock_core::ErrorKind;

use super::{Fixture, kind};

pub(super) async fn a_store_that_grants_locks_answers_a_ping(store: &Fixture) {
    let locks = store.manager().await;
    for _ in 0..3 {
        locks.ping().await.expect("a store that answers");
    }
    assert_eq!(store.taken(), 0, "no key is left");
}

pub(super) async fn a_drained_manager_answers_no_ping(store: &Fixture) {
    let locks = store.manager().await;
    locks.drain(Duration::ZERO).await;
    assert_eq!(kind(locks.ping().await), ErrorKind::Unavailable);
}
