//! Tests requests whose callers have gone, and networks that deliver them late: all are undone.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use lock_core::ErrorKind;
use lock_tests::{Direction, Flow, needs, wait};

use super::{drains, keys, kind, long, proxied, served};

#[tokio::test]
async fn an_acquire_that_timed_out_is_undone_when_the_network_is_back() {
    needs!(redis);
    let (server, proxy, locks) = proxied(Duration::from_millis(200)).await;
    for direction in [Direction::Requests, Direction::Replies] {
        proxy.set(direction, Flow::Hold);
        let answer = locks.lock("k").ttl(long()).acquire().await;
        assert_eq!(kind(answer), ErrorKind::Unavailable);
        proxy.pass();
        wait::eventually("the acquire is undone", async || {
            locks.held().is_empty() && keys(&server).is_empty()
        })
        .await;
    }
    drains(&locks).await;
    assert!(keys(&server).is_empty());
}

#[tokio::test]
async fn an_acquire_is_undone_behind_itself_on_the_first_connection_of_a_runtime_too() {
    needs!(redis);
    let (server, locks) = served().await;
    // The server logs each command with the address of its client.
    server.cli(&["CONFIG", "SET", "slowlog-log-slower-than", "0"]);
    // The acquire is dropped when its answer wakes it: it is sent and granted, and its future has
    // not read the answer.
    {
        let mut acquire = pin!(locks.lock("k").ttl(long()).acquire());
        poll_fn(|context| {
            if server.get("lockkit:k").is_some() {
                return Poll::Ready(());
            }
            assert!(acquire.as_mut().poll(context).is_pending());
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }
    wait::eventually("the acquire is undone", async || keys(&server).is_empty()).await;
    // There is no order between connections, so the undo of another connection might have come
    // first.
    let clients = server.cli(&["CLIENT", "LIST"]);
    let keepers = clients.lines().find(|client| client.contains(" sub=1 "));
    let mut keepers = keepers.expect("the keeper listens").split(' ');
    let keeper = keepers.find_map(|word| word.strip_prefix("addr="));
    let keeper = keeper.expect("an address");
    let log = server.cli(&["SLOWLOG", "GET", "128"]);
    let (mut lines, mut scripts) = (log.lines(), 0);
    while lines.any(|line| line.to_lowercase().starts_with("eval")) {
        let client = lines.find(|line| line.starts_with("127.0.0.1:"));
        assert_ne!(client, Some(keeper), "{log}");
        scripts += 1;
    }
    assert!(scripts > 0, "the undo is a script: {log}");
}

#[tokio::test]
async fn acquires_with_too_little_time_leave_nothing() {
    needs!(redis);
    let (server, locks) = served().await;
    for micros in 1..200 {
        let request = locks.lock(format!("k{micros}")).ttl(long());
        let request = request.acquire_timeout(Duration::from_micros(micros));
        match request.acquire().await {
            Ok(guard) => guard.release().await.expect("held"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable),
        }
    }
    drains(&locks).await;
    assert!(keys(&server).is_empty());
}
