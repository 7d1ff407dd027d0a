//! Tests votes and releases that servers refuse half-way, because the owner's user lacks a right at that moment.

use std::time::Duration;

use lock_core::test_util::ManualClock;
use lock_core::{LockManager, Wait};
use lock_tests::{RedisServer, needs, wait};
use tokio::time::timeout;

use super::{Nodes, builder, long, meets};

/// The commands of a release on a lock and its queue.
const COMMANDS: [&str; 7] = ["evalsha", "get", "hmget", "exists", "del", "zrem", "zrange"];

/// Makes a manager with another user than all other managers.
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
async fn a_waiter_gets_a_lock_whose_release_all_servers_refused_half_way_soon_after_the_right_is_back()
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
        let most = |which: &dyn Fn(&RedisServer) -> bool| {
            nodes.0.iter().filter(|node| which(node)).count() > nodes.0.len() / 2
        };
        // A server that a manager has just found amiss may be left out.
        let stands = |node: &RedisServer| node.cli(&["EXISTS", &queue]) == "1";
        wait::eventually("the waiter is queued on a majority", async || most(&stands)).await;
        for node in &nodes.0 {
            say(node, '-', command);
            node.cli(&["ACL", "LOG", "RESET"]);
        }
        drop(guard.release().await);
        let refused = |node: &RedisServer| !node.cli(&["ACL", "LOG"]).is_empty();
        wait::eventually(
            "a majority has refused a command, or the waiter is served",
            async || most(&refused) || waiter.is_finished(),
        )
        .await;
        nodes.0.iter().for_each(|node| say(node, '+', command));
        let next = timeout(wait::PATIENCE, waiter).await;
        let next = next.expect("the waiter is told").expect("no panic");
        next.expect("its turn").release().await.expect("held");
    }
    nodes.are_left_clean().await;
}

#[tokio::test]
async fn a_release_that_a_server_refuses_is_repeated_when_the_right_is_back() {
    needs!(redis);
    let nodes = Nodes::start(3);
    let owner = owner(&nodes).await;
    let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
    wait::eventually("all servers have the lock", async || {
        nodes.that_have("k").len() == 3
    })
    .await;
    say(&nodes.0[0], '-', "del");
    guard.release().await.expect("by a majority");
    assert_eq!(nodes.that_have("k"), [0]);
    // The second attempt is the keeper's.
    nodes.0[0].cli(&["ACL", "LOG", "RESET"]);
    wait::eventually("the server refuses once more", async || {
        !nodes.0[0].cli(&["ACL", "LOG"]).is_empty()
    })
    .await;
    say(&nodes.0[0], '+', "del");
    nodes.are_left_clean().await;
}

/// The waiters' clock stands still, so that only a push ends their wait. The right comes back on one server, which may notify
/// the waiter, and must not give it the key.
#[tokio::test]
async fn a_waiter_that_no_server_might_notify_is_told_when_the_right_is_back_on_one() {
    needs!(redis);
    let nodes = Nodes::start(3);
    let owner = owner(&nodes).await;
    let stopped = nodes.builder().clock(ManualClock::new());
    let locks = nodes.acquainted_by(stopped).await;
    // A new connection looks whether it may use the command.
    nodes.0.iter().for_each(RedisServer::reset_stats);
    for how in ["released", "left by a reader", "cooling"] {
        println!("{how}");
        let owned = owner.lock(how).ttl(long());
        let owned = match how {
            "left by a reader" => owned.read(),
            _ => owned,
        };
        let guard = owned.acquire().await.expect("free");
        let request = locks.lock(how).ttl(long()).wait(Wait::Forever);
        let waiter = tokio::spawn(request.acquire());
        let queue = format!("lockkit:!q:{{{how}}}");
        let stands = |node: &&RedisServer| node.cli(&["EXISTS", &queue]) == "1";
        let queued = || nodes.0.iter().filter(stands);
        wait::eventually("the waiter is queued on a majority", async || {
            queued().count() > 1
        })
        .await;
        nodes.0.iter().for_each(|node| say(node, '-', "publish"));
        if how == "cooling" {
            guard.cooldown(Duration::from_secs(1));
        }
        guard.release().await.expect("held");
        let is_free = || nodes.that_have(how).is_empty();
        wait::eventually("the key is free", async || is_free()).await;
        assert!(!waiter.is_finished());
        say(queued().next().expect("a majority"), '+', "publish");
        let next = timeout(wait::PATIENCE, waiter).await;
        let next = next.expect("the waiter is told").expect("no panic");
        let next = next.expect("its turn");
        assert!(next.acks().granted() > 1, "a majority has granted it");
        next.release().await.expect("held");
        nodes.0.iter().for_each(|node| say(node, '+', "publish"));
    }
    let hands_over = |node: &RedisServer| node.commandstats().contains_key("zpopmin");
    assert!(!nodes.0.iter().any(hands_over), "one server gives no key");
    nodes.are_left_clean().await;
}

/// The script sets the key before it notes the number.
#[tokio::test]
async fn a_vote_whose_number_may_not_be_noted_leaves_no_key() {
    needs!(redis);
    let nodes = Nodes::start(3);
    let owner = owner(&nodes).await;
    wait::eventually("all servers vote again", async || {
        nodes.that_have("met").is_empty()
    })
    .await;
    nodes.0.iter().for_each(|node| say(node, '-', "hset"));
    for request in [owner.lock("k"), owner.lock("k").read()] {
        let refused = request.ttl(long()).acquire().await;
        let refused = refused.expect_err("no number");
        assert!(!refused.is_busy(), "{refused}");
        assert_eq!(nodes.that_have("k").len(), 0);
    }
    // A waiter asks by another part of the script.
    let stranger = ["SET", "lockkit:k", "stranger", "PX", "60000"];
    nodes.0.iter().for_each(|node| drop(node.cli(&stranger)));
    let request = owner.lock("k").ttl(long()).wait(Wait::Forever);
    let waiter = tokio::spawn(request.acquire());
    let stands = |node: &RedisServer| node.cli(&["EXISTS", "lockkit:!q:{k}"]) == "1";
    wait::eventually("all servers have queued the waiter", async || {
        nodes.0.iter().all(stands)
    })
    .await;
    nodes
        .0
        .iter()
        .for_each(|node| drop(node.cli(&["DEL", "lockkit:k"])));
    let refused = timeout(wait::PATIENCE, waiter).await.expect("it polls");
    let refused = refused.expect("no panic").expect_err("no number");
    assert!(!refused.is_busy(), "{refused}");
    assert_eq!(nodes.that_have("k").len(), 0);
}
