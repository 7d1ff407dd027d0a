//! Releases that servers refuse half-way, because the owner's user lacks a right at that moment.

use lock_core::{LockManager, Wait};
use lock_tests::{RedisServer, needs, wait};
use tokio::time::timeout;

use super::{Nodes, builder, long, meets};

/// What the release does to a lock and its queue.
const COMMANDS: [&str; 7] = ["evalsha", "get", "hmget", "exists", "del", "zrem", "zrange"];

/// A manager that is another user than all others.
async fn owner(nodes: &Nodes) -> LockManager {
    for node in &nodes.0 {
        node.cli(&["ACL", "SETUSER", "kit", "on", ">kit", "~*", "&*", "+@all"]);
    }
    let url = |node: &RedisServer| format!("redis://kit:kit@{}", node.address());
    let owner = builder(nodes.0.iter().map(url)).connect().await;
    let owner = owner.expect("a manager");
    meets(&owner, nodes.0.len()).await;
    owner
}

fn say(node: &RedisServer, sign: char, command: &str) {
    let right = format!("{sign}{command}");
    node.cli(&["ACL", "SETUSER", "kit", &right]);
}

#[tokio::test]
async fn a_waiter_has_a_lock_whose_release_all_servers_refused_half_way_soon_after_the_right_is_back()
 {
    needs!(redis);
    let nodes = Nodes::start(3);
    let (owner, locks) = (owner(&nodes).await, nodes.acquainted().await);
    for command in COMMANDS {
        println!("without {command}");
        wait::eventually("all servers vote again", async || {
            nodes.that_have("met").is_empty()
        })
        .await;
        meets(&owner, 3).await;
        let guard = owner.lock(command).ttl(long()).acquire().await;
        let guard = guard.expect("free");
        let request = locks.lock(command).ttl(long()).wait(Wait::Forever);
        let waiter = tokio::spawn(request.acquire());
        let queue = format!("lockkit:!q:{{{command}}}");
        let stands = |node: &RedisServer| node.cli(&["EXISTS", &queue]) == "1";
        wait::eventually("it stands in all queues", async || {
            nodes.0.iter().all(stands)
        })
        .await;
        for node in &nodes.0 {
            say(node, '-', command);
            node.cli(&["ACL", "LOG", "RESET"]);
        }
        drop(guard.release().await);
        let refused = |node: &RedisServer| !node.cli(&["ACL", "LOG"]).is_empty();
        wait::eventually("all have refused it, or need not", async || {
            nodes.0.iter().all(refused) || waiter.is_finished()
        })
        .await;
        nodes.0.iter().for_each(|node| say(node, '+', command));
        let next = timeout(wait::PATIENCE, waiter).await;
        let next = next.expect("it is told").expect("no panic");
        next.expect("its turn").release().await.expect("held");
    }
    nodes.are_left_clean().await;
}

#[tokio::test]
async fn a_server_that_refuses_to_give_a_lock_back_is_asked_again_when_the_right_is_back() {
    needs!(redis);
    let nodes = Nodes::start(3);
    let owner = owner(&nodes).await;
    let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
    wait::eventually("all have it", async || nodes.that_have("k").len() == 3).await;
    say(&nodes.0[0], '-', "del");
    guard.release().await.expect("by a majority");
    assert_eq!(nodes.that_have("k"), [0]);
    // The second time it is the keeper that asks.
    nodes.0[0].cli(&["ACL", "LOG", "RESET"]);
    wait::eventually("it refuses once more", async || {
        !nodes.0[0].cli(&["ACL", "LOG"]).is_empty()
    })
    .await;
    say(&nodes.0[0], '+', "del");
    nodes.are_left_clean().await;
}
