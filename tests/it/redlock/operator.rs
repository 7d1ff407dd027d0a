//! Tests an operator while servers are down or out of memory.

use std::time::Duration;

use lock_core::operator::Forced;
use lock_core::{ErrorKind, LockManager};
use lock_tests::needs;
use tokio::time::timeout;

use super::{Nodes, held_by_all, kind, long};

#[tokio::test]
async fn a_majority_is_enough_to_free_a_lock_and_less_is_no_answer() {
    needs!(redis);
    let nodes = Nodes::start(3);
    let locks = nodes.acquainted().await;
    let operators: LockManager = nodes.acquainted().await;
    let operator = operators.operator("ops@example");
    let guard = held_by_all(&locks).await;
    nodes.0[0].kill();
    let seen = operator.inspect("k").await.expect("a majority answers");
    let [holder] = seen.holders() else {
        panic!("{seen:?}");
    };
    let forced = operator.force(holder).because("it hangs").await;
    assert_eq!(forced.expect("a majority answers"), Forced::Told);
    let lost = timeout(Duration::from_secs(8), guard.lost()).await;
    lost.expect("long before the first renewal");
    let next = operators.lock("k").ttl(long()).wait(long()).acquire().await;
    let next = next.expect("after the grace");
    assert!(next.fencing_token() > guard.fencing_token());
    let seen = operator.inspect("k").await.expect("a majority answers");
    nodes.0[1].kill();
    let order = operator.force(&seen.holders()[0]).because("it hangs");
    assert_eq!(kind(order.await), ErrorKind::Unavailable);
    assert_eq!(kind(operator.inspect("k").await), ErrorKind::Unavailable);
    let mut list = operator.list("*");
    let listed = async {
        while list.next_page().await?.is_some() {}
        Ok::<_, lock_core::Error>(())
    };
    assert_eq!(kind(listed.await), ErrorKind::Unavailable);
}

#[tokio::test]
async fn full_servers_refuse_an_order_and_tell_no_holder() {
    needs!(redis);
    let nodes = Nodes::start(3);
    let locks = nodes.acquainted().await;
    let operators: LockManager = nodes.acquainted().await;
    let operator = operators.operator("ops@example");
    let guard = held_by_all(&locks).await;
    let seen = operator.inspect("k").await.expect("a majority answers");
    let memory = |bytes: &str| {
        let servers = nodes.0.iter();
        servers.for_each(|node| drop(node.cli(&["CONFIG", "SET", "maxmemory", bytes])));
    };
    memory("1");
    let order = operator.force(&seen.holders()[0]).because("it hangs");
    assert_eq!(kind(order.await), ErrorKind::Unavailable);
    memory("0");
    // A message behind the order would arrive before these answers.
    let seen = operator.inspect("k").await.expect("a majority answers");
    assert_eq!(seen.holders().len(), 1);
    assert!(guard.is_valid());
    guard.release().await.expect("held");
}
