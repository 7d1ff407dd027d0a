//! Tests records on several servers: the record of one server is an answer.

use std::time::Duration;

use lock_core::middleware::{Forgotten, RecordOutcome};
use lock_core::{ErrorKind, LockManager};
use lock_tests::{RedisServer, needs, wait};

use super::{Nodes, held_by_all, kind, long};

const ONE: &str = "0123456789abcdef/0123456789abcdef0123456789abcdef";
const OTHER: &str = "0123456789abcdef/ffffffffffffffffffffffffffffffff";

/// Writes a record as an owner with this fencing token leaves it.
fn leave(node: &RedisServer, token: &str, fence: u64, record: &str) {
    let value = format!("done/{token}/33000000000000/{fence}/{record}");
    node.cli(&["SET", "lockkit:k", &value, "PX", "60000"]);
}

async fn recorded(locks: &LockManager) -> Option<String> {
    let refused = locks.lock("k").ttl(long()).acquire().await;
    let refused = refused.expect_err("the key is taken");
    assert_eq!(refused.kind(), ErrorKind::Busy);
    let record = refused.record()?;
    Some(String::from_utf8_lossy(record).into_owned())
}

#[tokio::test]
async fn the_record_of_a_server_at_hand_is_an_answer() {
    needs!(redis);
    let nodes = Nodes::start(3);
    let locks = nodes.acquainted().await;
    leave(&nodes.0[0], ONE, 7, "the answer");
    // The server that has it is one of the two that answer.
    nodes.0[2].kill();
    assert_eq!(recorded(&locks).await.as_deref(), Some("the answer"));
    assert_eq!(nodes.that_have("k"), [0], "the attempt is undone");
}

#[tokio::test]
async fn of_two_records_the_one_with_the_highest_fencing_token_counts() {
    needs!(redis);
    let nodes = Nodes::start(3);
    let locks = nodes.acquainted().await;
    leave(&nodes.0[0], ONE, 900, "the first");
    leave(&nodes.0[1], OTHER, 1_000, "the second");
    leave(&nodes.0[2], OTHER, 1_000, "the second");
    assert_eq!(recorded(&locks).await.as_deref(), Some("the second"));
    assert_eq!(locks.forget("k").await.expect("no fault"), Forgotten::Yes);
    assert_eq!(nodes.that_have("k"), Vec::<usize>::new());
}

#[tokio::test]
async fn a_record_that_is_forgotten_while_it_is_on_its_way_to_a_server_does_not_come_back() {
    needs!(redis);
    let nodes = Nodes::start(3);
    let locks = nodes.acquainted().await;
    let guard = held_by_all(&locks).await;
    let token = nodes.0[0].get("lockkit:k").expect("the lock");
    // The owner has ended, and its record has not reached the last server.
    for node in &nodes.0[..2] {
        leave(node, &token, 5, "the answer");
    }
    assert_eq!(locks.forget("k").await.expect("no fault"), Forgotten::Yes);
    assert_eq!(nodes.that_have("k"), Vec::<usize>::new());
    // It finds no token when it arrives.
    guard.remember("the answer", long()).expect("in bounds");
    let handle = guard.handle();
    assert_eq!(kind(guard.release().await), ErrorKind::Lost);
    assert_eq!(handle.record_outcome(), Some(RecordOutcome::Lost));
    assert_eq!(nodes.that_have("k"), Vec::<usize>::new());
}

#[tokio::test]
async fn a_record_on_all_servers_outlives_one_that_comes_back_empty() {
    needs!(redis);
    let nodes = Nodes::start(3);
    let locks = nodes.acquainted().await;
    let guard = held_by_all(&locks).await;
    guard.remember("the answer", long()).expect("in bounds");
    guard.release().await.expect("held");
    wait::eventually("all servers have the record", async || {
        nodes.that_have("k").len() == 3
    })
    .await;
    nodes.0[1].restart_empty();
    for locks in [locks, nodes.manager().await] {
        assert_eq!(recorded(&locks).await.as_deref(), Some("the answer"));
    }
    assert_eq!(nodes.that_have("k"), [0, 2]);
}

#[tokio::test]
async fn a_record_counts_when_a_majority_has_it() {
    needs!(redis);
    let nodes = Nodes::start(3);
    let locks = nodes.acquainted().await;
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    nodes.0[2].kill();
    guard.remember("the answer", long()).expect("in bounds");
    let handle = guard.handle();
    drop(guard.release().await);
    wait::eventually("the record is stored", async || {
        handle.record_outcome() == Some(RecordOutcome::Stored)
    })
    .await;
    assert_eq!(recorded(&locks).await.as_deref(), Some("the answer"));
    // The server that is out may have the record too.
    let forgotten = locks.forget("k").await;
    assert_eq!(kind(forgotten), ErrorKind::Unavailable);
}

#[tokio::test]
async fn a_record_beyond_the_longest_ttl_is_invalid() {
    needs!(redis);
    let nodes = Nodes::start(3);
    let builder = nodes.builder().max_ttl(long()).default_ttl(long());
    let locks = nodes.acquainted_by(builder).await;
    let guard = locks.lock("k").acquire().await.expect("free");
    guard.remember("", long()).expect("in bounds");
    let beyond = guard.remember("", long() + Duration::from_millis(1));
    assert_eq!(kind(beyond), ErrorKind::Invalid);
    guard.forget_record();
    guard.release().await.expect("held");
    nodes.are_left_clean().await;
}
