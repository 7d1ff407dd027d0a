//! Tests tickets on a real server: their cost, answers that are lost or late, and full memory.

use std::time::Duration;

use lock_core::{Error, ErrorKind, LockGuard, LockManager, Ticket, Wait};
use lock_tests::{Direction, Flow, Proxy, RedisServer, needs, wait};

use super::{asked, counts, keys, kind, long, manager, proxied, served, taken};

async fn ticket(locks: &LockManager) -> (LockGuard, Ticket) {
    let guard = taken(locks, "k", long()).await;
    let ticket = guard.ticket(long()).await.expect("held");
    (guard, ticket)
}

#[tokio::test]
async fn a_ticket_and_its_use_are_one_trip_each() {
    needs!(redis);
    let (server, locks) = served().await;
    let (_, first) = ticket(&locks).await;
    let guard = locks.resume(first).await.expect("unused");
    let swap = counts(&[("evalsha", 1), ("get", 1), ("set", 1), ("time", 1)]);
    server.reset_stats();
    let ticket = guard.ticket(long()).await.expect("held");
    assert_eq!(asked(&server), swap);
    server.reset_stats();
    let next = locks.resume(ticket.clone()).await.expect("unused");
    assert_eq!(asked(&server), swap);
    server.reset_stats();
    assert_eq!(kind(locks.resume(ticket).await), ErrorKind::Lost);
    assert_eq!(asked(&server), counts(&[("evalsha", 1), ("get", 1)]));
    drop(guard);
    next.release().await.expect("held");
    assert!(keys(&server).is_empty());
}

#[tokio::test]
async fn a_swap_whose_answer_was_lost_is_repeated_and_found() {
    needs!(redis);
    let (server, proxy, locks) = proxied(Duration::from_secs(5)).await;
    let (_, used) = ticket(&locks).await;
    let guard = locks.resume(used).await.expect("unused");
    let fence = guard.fencing_token();

    let before = server.get("lockkit:k");
    proxy.set(Direction::Replies, Flow::Hold);
    let making = tokio::spawn(async move { guard.ticket(long()).await });
    wait::eventually("the server has the ticket", async || {
        server.get("lockkit:k") != before
    })
    .await;
    // The answer goes with its connection.
    proxy.cut();
    proxy.pass();
    let ticket = making.await.expect("no panic").expect("made before");

    let before = server.get("lockkit:k");
    proxy.set(Direction::Replies, Flow::Hold);
    let using = tokio::spawn({
        let locks = locks.clone();
        async move { locks.resume(ticket).await }
    });
    wait::eventually("the server has the next owner", async || {
        server.get("lockkit:k") != before
    })
    .await;
    proxy.cut();
    proxy.pass();
    let guard = using.await.expect("no panic").expect("used by this call");
    assert_eq!(guard.fencing_token(), fence);
    guard.release().await.expect("held");
    assert!(keys(&server).is_empty());
}

/// Begins a call while the network delivers its request and no answer, and gives up. Returns when the server has done
/// it.
async fn abandoned<T: Send + 'static>(
    server: &RedisServer,
    proxy: &Proxy,
    call: impl Future<Output = T> + Send + 'static,
) {
    let before = server.get("lockkit:k");
    proxy.set(Direction::Replies, Flow::Hold);
    let call = tokio::spawn(call);
    wait::eventually("the server has swapped the tokens", async || {
        server.get("lockkit:k") != before
    })
    .await;
    call.abort();
    assert!(call.await.is_err_and(|error| error.is_cancelled()));
    proxy.pass();
}

#[tokio::test]
async fn a_swap_whose_caller_is_gone_leaves_no_key_behind() {
    needs!(redis);
    let (server, proxy, locks) = proxied(Duration::from_secs(5)).await;
    let other = manager(&server.url()).await;
    let (_, used) = ticket(&other).await;
    abandoned(&server, &proxy, {
        let (locks, used) = (locks.clone(), used.clone());
        async move { locks.resume(used).await }
    })
    .await;
    wait::eventually("the lock is given back", async || keys(&server).is_empty()).await;
    assert_eq!(kind(other.resume(used).await), ErrorKind::Lost);

    let guard = taken(&locks, "k", long()).await;
    let waiter = tokio::spawn(other.lock("k").wait(Wait::Forever).acquire());
    wait::eventually("the waiter waits", async || keys(&server).len() > 1).await;
    abandoned(&server, &proxy, async move { guard.ticket(long()).await }).await;
    // The key goes to the waiter.
    let next = super::its_turn(waiter).await;
    next.release().await.expect("held");
    assert!(locks.drain(wait::PATIENCE).await.is_complete());
    assert!(keys(&server).is_empty());
}

#[tokio::test]
async fn a_swap_that_arrives_late_finds_nothing_to_replace() {
    needs!(redis);
    let (server, proxy, locks) = proxied(Duration::from_millis(400)).await;
    let other = manager(&server.url()).await;
    // The server knows the script.
    let (_, used) = ticket(&other).await;
    let next = other.resume(used).await.expect("unused");
    next.release().await.expect("held");
    for uses in [false, true] {
        let guard = taken(&locks, "k", long()).await;
        let ticket = match uses {
            true => Some(guard.ticket(long()).await.expect("held")),
            false => None,
        };
        // The request stays on the old connection, and newer connections pass.
        proxy.freeze();
        let answer = match ticket {
            Some(ticket) => locks.resume(ticket).await.map(drop),
            None => guard.ticket(long()).await.map(drop),
        };
        assert_eq!(kind(answer), ErrorKind::Unavailable);
        wait::eventually("the keeper has given the lock back", async || {
            keys(&server).is_empty()
        })
        .await;
        let next = taken(&other, "k", long()).await;
        let (owner, before) = (server.get("lockkit:k"), scripts(&server));
        proxy.thaw();
        wait::eventually("the late request has arrived", async || {
            scripts(&server) > before
        })
        .await;
        assert_eq!(server.get("lockkit:k"), owner);
        next.release().await.expect("held");
        wait::eventually("the manager is connected again", async || {
            let again = locks.lock("k").acquire().await;
            again.is_ok()
        })
        .await;
        wait::eventually("nothing is left", async || keys(&server).is_empty()).await;
    }
}

fn scripts(server: &RedisServer) -> u64 {
    super::records::scripts_run(server)
}

#[tokio::test]
async fn without_memory_a_lock_is_given_back_and_a_ticket_stays_good() {
    needs!(redis);
    let (server, locks) = served().await;
    let (_, good) = ticket(&locks).await;
    let guard = taken(&locks, "other", long()).await;
    server.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    for _ in 0..3 {
        let refused = locks.resume(good.clone()).await;
        assert_eq!(kind(refused), ErrorKind::Unavailable);
    }
    assert_eq!(kind(guard.ticket(long()).await), ErrorKind::Unavailable);
    assert!(!guard.is_valid());
    wait::eventually("the lock is given back", async || {
        server.get("lockkit:other").is_none()
    })
    .await;
    server.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    let next = locks.resume(good).await.expect("unused");
    next.release().await.expect("held");
    assert!(keys(&server).is_empty());
}

#[tokio::test]
async fn a_key_of_another_type_is_another_owners() {
    needs!(redis);
    let (server, locks) = served().await;
    let (_, ticket) = ticket(&locks).await;
    server.cli(&["DEL", "lockkit:k"]);
    server.cli(&["HSET", "lockkit:k", "a", "b"]);
    assert_eq!(kind(locks.resume(ticket).await), ErrorKind::Lost);
    assert_eq!(server.cli(&["HGET", "lockkit:k", "a"]), "b");
}

#[tokio::test]
async fn a_ticket_of_another_namespace_is_lost_and_an_error_shows_neither_key_nor_ticket() {
    needs!(redis);
    let (server, locks) = served().await;
    let guard = taken(&locks, "account:alice", long()).await;
    let ticket = guard.ticket(long()).await.expect("held");
    let other = LockManager::builder(&server.url()).namespace("other:");
    let other = other.connect().await.expect("a manager");
    let error: Error = other.resume(ticket.clone()).await.expect_err("not there");
    assert_eq!(error.kind(), ErrorKind::Lost);
    let text = ticket.to_string();
    let shown = format!("{error} {error:?} {ticket:?}");
    assert!(
        !shown.contains("alice") && !shown.contains(&text[..8]),
        "{shown}"
    );
    let next = locks.resume(ticket).await.expect("unused");
    next.release().await.expect("held");
}
