//! Tests a writer that goes on as a reader while the question that lets other readers in is under way.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use lock_core::{Error, LockGuard, LockManager};
use lock_tests::{Direction, Flow, Proxy, RedisServer, needs, wait};

use super::{LOCK, entered, keys, long, once, proxied, reader, taken};

type Downgrade = Pin<Box<dyn Future<Output = Result<LockGuard, Error>>>>;

/// More bytes than a `PING`, and fewer than the question.
const SMALL: u64 = 100;

/// Polls the call until `state` holds. The state is read before each poll, so the call has learnt nothing later.
async fn polled_until(call: &mut Downgrade, mut state: impl FnMut() -> bool) {
    poll_fn(|context| {
        if state() {
            return Poll::Ready(());
        }
        assert!(call.as_mut().poll(context).is_pending());
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// A writer that has become a reader on the server. Its question is in the proxy, on a connection that has ended for
/// the client, and has to be sent again on another one.
async fn asking(server: &RedisServer, proxy: &Proxy, locks: &LockManager) -> Downgrade {
    // The server learns the scripts.
    let writer = taken(locks, "k", long()).await;
    let first = writer.downgrade().await.expect("held");
    let second = entered(reader(locks)).await;
    first.release().await.expect("held");
    second.release().await.expect("held");

    let writer = taken(locks, "k", long()).await;
    let value = server.get(LOCK).expect("held");
    let mut downgrade: Downgrade = Box::pin(writer.downgrade());
    polled_until(&mut downgrade, || server.get(LOCK).as_ref() != Some(&value)).await;
    proxy.set(Direction::Requests, Flow::Hold);
    polled_until(&mut downgrade, || proxy.held(Direction::Requests) > SMALL).await;
    proxy.outlive_clients();
    proxy.pass();
    // The keeper sends nothing on its old connection any more, where a release could follow the late question.
    let channel = format!("lockkit:!m:{}000", &value[..13]);
    wait::until("the manager listens on another connection too", || {
        let listeners = server.cli(&["PUBSUB", "NUMSUB", &channel]);
        listeners.ends_with("\n2")
    });
    downgrade
}

/// Delivers the question, which takes the free key for a reader that has ended, and waits until this is undone.
async fn is_undone(server: &RedisServer, proxy: &Proxy) {
    wait::eventually("the share is given back", async || keys(server).is_empty()).await;
    server.reset_stats();
    proxy.thaw();
    // It may be undone within a millisecond, so its key is not looked for.
    wait::eventually("the question arrives late", async || {
        let commands = server.cli(&["INFO", "commandstats"]);
        commands.contains("cmdstat_set:")
    })
    .await;
    // Its ttl is a minute.
    wait::eventually("the late question is undone", async || {
        keys(server).is_empty()
    })
    .await;
}

#[tokio::test]
async fn a_late_question_of_a_reader_that_has_ended_leaves_no_share() {
    needs!(redis);
    let (server, proxy, locks) = proxied(Duration::from_secs(5)).await;
    let downgrade = asking(&server, &proxy, &locks).await;
    let first = downgrade.await.expect("the swap was answered");
    let second = entered(reader(&locks)).await;
    assert!(first.is_valid() && second.is_valid());
    second.release().await.expect("held");
    first.release().await.expect("held");
    is_undone(&server, &proxy).await;
}

#[tokio::test]
async fn a_downgrade_dropped_while_it_lets_readers_in_leaves_no_share() {
    needs!(redis);
    let (server, proxy, locks) = proxied(Duration::from_secs(5)).await;
    let downgrade = asking(&server, &proxy, &locks).await;
    drop(downgrade);
    is_undone(&server, &proxy).await;
    once(&locks, "k").await;
}
