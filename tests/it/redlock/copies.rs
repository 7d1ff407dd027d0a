//! Tests proposals that are sent again after a broken connection.
//!
//! Proxies deliver the first copies after the lease is over.

use lock_core::ErrorKind;
use lock_tests::{Direction, Proxy, RedisServer, needs, wait};

use super::{Nodes, builder, kind, long, meets};

/// Takes and releases a key while proxies keep the first copies of two proposals, and then lets them arrive.
///
/// The proposals are to two of three servers. The ttl is a minute. The key is long, so that the number of bytes shows
/// that a proxy keeps a proposal, and not another command of the manager.
async fn first_copies_are_undone(is_taken: bool, reads: bool) {
    let key = &"k".repeat(1_000);
    let nodes = Nodes::start(3);
    let [first, second] = [0, 1].map(|node| Proxy::to(nodes.0[node].address()));
    let proxies = [&first, &second];
    let urls = [first.redis_url(), second.redis_url(), nodes.0[2].url()];
    let locks = builder(urls).connect().await.expect("a manager");
    meets(&locks, 3).await;
    nodes.are_left_clean().await;
    let other = if is_taken {
        let other = nodes.acquainted().await;
        nodes.are_left_clean().await;
        let guard = other.lock(key).ttl(long()).acquire().await;
        Some((guard.expect("free"), other))
    } else {
        None
    };

    let held = || proxies.map(|it| it.held(Direction::Requests));
    proxies.iter().for_each(|it| it.freeze());
    let before = held();
    let request = locks.lock(key).ttl(long()).wait(lock_core::Wait::None);
    let request = if reads { request.read() } else { request };
    let acquire = tokio::spawn(request.acquire());
    wait::eventually("the first copies are in the proxies", async || {
        held()
            .iter()
            .zip(before)
            .all(|(held, before)| *held > before + 1_000)
    })
    .await;
    proxies.iter().for_each(|it| it.outlive_clients());
    let answer = acquire.await.expect("no panic");
    match other {
        Some((guard, _other)) => {
            assert_eq!(kind(answer), ErrorKind::Busy);
            // The undo that is sent at once would otherwise meet the first copies.
            assert_eq!(locks.drain(wait::PATIENCE).await.releasing(), 0);
            guard.release().await.expect("held");
        }
        None => answer.expect("granted").release().await.expect("held"),
    }
    nodes.are_left_clean().await;

    nodes.0.iter().for_each(RedisServer::reset_stats);
    proxies.iter().for_each(|it| it.thaw());
    wait::eventually("the first copies arrive late", async || {
        let mut two = nodes.0[..2].iter();
        two.all(|node| node.commandstats().contains_key("set"))
    })
    .await;
    nodes.are_left_clean().await;
}

#[tokio::test]
async fn first_copies_that_arrive_after_the_release_are_undone() {
    needs!(redis);
    first_copies_are_undone(false, false).await;
}

#[tokio::test]
async fn first_copies_that_arrive_after_a_refusal_are_undone() {
    needs!(redis);
    first_copies_are_undone(true, false).await;
}

#[tokio::test]
async fn first_copies_of_a_reader_that_arrive_after_the_release_are_undone() {
    needs!(redis);
    first_copies_are_undone(false, true).await;
}

#[tokio::test]
async fn first_copies_of_a_reader_that_arrive_after_a_refusal_are_undone() {
    needs!(redis);
    first_copies_are_undone(true, true).await;
}
