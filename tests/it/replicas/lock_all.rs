//! Tests locks of several keys that replicas must acknowledge.

use lock_core::{ErrorKind, Wait};
use lock_tests::{needs, wait};

use super::{hasty, keys, long, manager, replica_set, waits};

#[tokio::test]
async fn several_keys_are_on_the_replica_when_they_are_granted_and_cost_one_wait() {
    needs!(redis);
    let set = replica_set(1);
    let locks = manager(set.master(), 1).await;
    set.master().reset_stats();
    let guard = locks.lock_all(["a", "b", "c"]).ttl(long()).acquire().await;
    let guard = guard.expect("free");
    let replica = &set.replicas()[0];
    for key in ["lockkit:a", "lockkit:b", "lockkit:c"] {
        assert_eq!(replica.get(key), set.master().get(key));
        assert!(replica.get(key).is_some(), "{key}");
    }
    assert_eq!(waits(set.master()), 1);
    guard.release().await.expect("held");
}

#[tokio::test]
async fn several_keys_that_a_stopped_replica_does_not_have_are_all_given_back() {
    needs!(redis);
    let set = replica_set(1);
    let locks = hasty(set.master(), 1).await;
    set.servers()[1].stop();
    for wait in [Wait::None, Wait::For(std::time::Duration::from_millis(10))] {
        let refused = locks
            .lock_all(["a", "b"])
            .ttl(long())
            .wait(wait)
            .acquire()
            .await;
        assert_eq!(
            refused.expect_err("no replica").kind(),
            ErrorKind::Unavailable
        );
    }
    set.servers()[1].cont();
    wait::eventually("no key is left", async || keys(set.master()).is_empty()).await;
}
