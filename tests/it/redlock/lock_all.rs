//! Tests locks of several keys over independent servers.

use lock_core::Wait;
use lock_tests::needs;

use super::{Nodes, long};

#[tokio::test]
async fn the_token_of_several_keys_counts_for_each_whatever_its_register_has_seen() {
    needs!(redis);
    let nodes = Nodes::start(3);
    let (locks, other) = (nodes.acquainted().await, nodes.acquainted().await);
    let guard = other.lock("b").ttl(long()).acquire().await.expect("free");
    let now = u64::from(guard.fencing_token());
    guard.release().await.expect("held");
    nodes.are_left_clean().await;
    nodes.raise_all_registers();
    let guard = locks.lock_all(["a", "b"]).ttl(long()).wait(Wait::Forever);
    let guard = guard.acquire().await.expect("free");
    let fence = guard.fencing_token();
    assert!(u64::from(fence) > now + 5_000_000);
    for server in &nodes.0 {
        server.cli(&["DEL", "lockkit:a"]);
    }
    let next = other.lock("a").ttl(long()).acquire().await.expect("free");
    assert!(
        next.fencing_token() > fence,
        "{} {fence}",
        next.fencing_token()
    );
    next.release().await.expect("held");
    let _ = guard.release().await;
    nodes.are_left_clean().await;
}
