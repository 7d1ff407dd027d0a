//! Tests locks of several keys over independent servers.

use lock_core::Wait;
use lock_tests::needs;

use super::{Nodes, long};

/// Adds five seconds to the register of the last lock on each server, as if a client's clock had been ahead.
fn raise_the_last_register(nodes: &Nodes) {
    let script = "
        local registers = redis.call('HGETALL', KEYS[1])
        local highest, field, token = 0
        for index = 1, #registers, 2 do
          local number, owner = string.match(registers[index + 1], '^(%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d)(%x+/%x+)$')
          if number and tonumber(number) > highest then
            highest, field, token = tonumber(number), registers[index], owner
          end
        end
        redis.call('HSET', KEYS[1], field, string.format('%016.0f', highest + 5000000) .. token)";
    for server in &nodes.0 {
        server.cli(&["EVAL", script, "1", "lockkit:!r"]);
    }
}

#[tokio::test]
async fn the_token_of_several_keys_counts_for_each_whatever_its_register_has_seen() {
    needs!(redis);
    let nodes = Nodes::start(3);
    let (locks, other) = (nodes.acquainted().await, nodes.acquainted().await);
    let guard = other.lock("b").ttl(long()).acquire().await.expect("free");
    let now = u64::from(guard.fencing_token());
    guard.release().await.expect("held");
    nodes.are_left_clean().await;
    raise_the_last_register(&nodes);
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
