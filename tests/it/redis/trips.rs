//! Tests how many commands the kit sends, counted by the server itself.

use std::collections::BTreeMap;
use std::time::Duration;

use lock_core::{ErrorKind, LockGuard, LockManager, Renew, Wait};
use lock_tests::{Direction, Flow, Proxy, RedisServer, needs, wait};

use super::{drains, is_refused, keys, long, manager, proxied, queued, served, served_both, warm};

pub(crate) fn counts(expected: &[(&str, u64)]) -> BTreeMap<String, u64> {
    let counts = expected.iter();
    counts
        .map(|(name, count)| ((*name).to_owned(), *count))
        .collect()
}

/// Returns the commands since the reset, without the harness's own.
pub(crate) fn asked(server: &RedisServer) -> BTreeMap<String, u64> {
    let mut stats = server.commandstats();
    stats.remove("info");
    // Redis 6.2 counts a command with all its subcommands.
    stats.remove("config|resetstat");
    stats.remove("config");
    stats
}

#[tokio::test]
async fn a_free_lock_is_one_write_of_native_commands_and_its_release_a_short_script() {
    needs!(redis_7);
    let (server, _proxy, locks) = proxied(Duration::from_secs(5)).await;
    server.reset_stats();
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    let acquire = asked(&server);
    assert_eq!(acquire, counts(&[("set", 1), ("get", 1), ("time", 1)]));
    server.reset_stats();
    guard.release().await.expect("held");
    let release = asked(&server);
    assert_eq!(release.get("evalsha"), Some(&1));
    assert_eq!((release.get("eval"), release.get("time")), (None, None));
}

/// Runs `act` while the answers are held back until `sent`. Returns the bytes requested by then, and
/// in all.
async fn bytes_before_and_after_the_first_answer<T>(
    proxy: &Proxy,
    act: impl Future<Output = T> + Send + 'static,
    sent: impl Fn() -> bool,
) -> (u64, u64)
where
    T: Send + 'static,
{
    let start = proxy.bytes(Direction::Requests);
    proxy.set(Direction::Replies, Flow::Hold);
    let acting = tokio::spawn(act);
    wait::eventually("the last command has arrived", async || sent()).await;
    let before = proxy.bytes(Direction::Requests) - start;
    proxy.pass();
    acting.await.expect("no panic");
    (before, proxy.bytes(Direction::Requests) - start)
}

#[tokio::test]
async fn an_older_server_is_asked_for_the_value_by_a_separate_command() {
    needs!(redis);
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    // The server's answer is the one that Redis 6.2 gives.
    proxy.set(Direction::Requests, Flow::SetWithoutGet);
    let locks = warm(&proxy, Duration::from_secs(5)).await;
    let other = manager(&proxy.redis_url()).await;
    for round in 0..2 {
        server.reset_stats();
        let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
        assert_eq!(
            asked(&server),
            counts(&[("set", 1), ("get", 2), ("time", 1)])
        );
        let taken = other.lock("k").acquire().await;
        let taken = taken.expect_err("held");
        assert_eq!(taken.kind(), ErrorKind::Busy, "{round}: {taken}");
        assert!(taken.retry_after().is_some());
        guard.release().await.expect("held");
    }
}

#[tokio::test]
async fn a_free_lock_and_its_release_are_one_round_trip_each() {
    needs!(redis);
    let (server, proxy, locks) = proxied(Duration::from_secs(5)).await;
    let (held, mut guards) = tokio::sync::mpsc::unbounded_channel();
    let request = locks.lock("k").ttl(long());
    server.reset_stats();
    // TIME is the last of the commands. When the server has run it, the client has sent everything
    // before any answer.
    let acquire = async move { held.send(request.acquire().await.expect("free")) };
    let (before, all) = bytes_before_and_after_the_first_answer(&proxy, acquire, || {
        server.commandstats().contains_key("time")
    })
    .await;
    assert_eq!(before, all, "no command is sent after the first answer");
    let guard = guards.recv().await.expect("a guard");
    let release = async move { guard.release().await.expect("held") };
    let (before, all) = bytes_before_and_after_the_first_answer(&proxy, release, || {
        server.get("lockkit:k").is_none()
    })
    .await;
    assert_eq!(before, all, "no command is sent after the first answer");
}

#[tokio::test]
async fn a_refusal_is_one_round_trip_and_inside_the_process_none() {
    needs!(redis_7);
    let (server, _proxy, locks) = proxied(Duration::from_secs(5)).await;
    let owner = manager(&server.url()).await;
    let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
    server.reset_stats();
    is_refused(&locks, "k").await;
    assert_eq!(
        asked(&server),
        counts(&[("set", 1), ("get", 1), ("time", 1)])
    );
    server.reset_stats();
    is_refused(&owner, "k").await;
    assert_eq!(asked(&server), counts(&[]));
    drop(guard);
}

#[tokio::test]
async fn idle_waiters_and_idle_managers_send_nothing() {
    needs!(redis);
    let (server, owner) = served().await;
    let mut managers = Vec::new();
    for _ in 0..4 {
        managers.push(manager(&server.url()).await);
    }
    // The lease is renewed every 10 s at the earliest.
    let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
    let waiters: Vec<_> = (0..200)
        .map(|index| {
            let request = managers[index % 4]
                .lock("k")
                .ttl(long())
                .wait(Wait::Forever);
            tokio::spawn(request.acquire())
        })
        .collect();
    queued(&server, "k", 4).await;
    server.reset_stats();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(asked(&server), counts(&[]));
    for waiter in waiters {
        waiter.abort();
    }
    drop(guard);
}

// The command line blocks the thread of the test, which must not be the one that queues the waiters.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn waiters_for_a_thousand_keys_send_nothing_and_all_are_served() {
    needs!(redis);
    let (server, owner, locks) = served_both().await;
    let request = |locks: &LockManager, key: u32| {
        let request = locks.lock(format!("key:{key}")).ttl(long());
        request.renew(Renew::Off).wait(Wait::Forever)
    };
    let all = |locks: &LockManager| -> Vec<_> {
        let tasks = (0..1_000).map(|key| tokio::spawn(request(locks, key).acquire()));
        tasks.collect()
    };
    let mut guards = Vec::new();
    for held in all(&owner) {
        guards.push(held.await.expect("no panic").expect("free"));
    }
    let waiters = all(&locks);
    wait::eventually("each waiter is queued", async || {
        let queues = "return #redis.call('KEYS', 'lockkit:!q:*')";
        server.cli(&["EVAL", queues, "0"]) == "1000"
    })
    .await;
    // On a busy machine some of the waiters have not had their answer yet, and ask again.
    wait::eventually("all waiters are silent for a second", async || {
        server.reset_stats();
        tokio::time::sleep(Duration::from_secs(1)).await;
        asked(&server) == counts(&[])
    })
    .await;
    guards
        .into_iter()
        .for_each(LockGuard::release_in_background);
    for waiter in waiters {
        drop(waiter.await.expect("no panic").expect("its turn"));
    }
    for locks in [owner, locks] {
        drains(&locks).await;
        assert!(locks.held().is_empty());
    }
    assert!(keys(&server).is_empty());
}

#[tokio::test]
async fn many_locks_are_renewed_in_batches() {
    needs!(redis);
    let (server, locks) = served().await;
    let mut held = Vec::new();
    for index in 0..500 {
        let request = locks.lock(format!("k{index}")).ttl(Duration::from_secs(3));
        held.push(request.acquire().await.expect("free"));
    }
    server.reset_stats();
    wait::eventually("all have been renewed", async || {
        server.commandstats().get("pexpireat") >= Some(&500)
    })
    .await;
    let scripts = asked(&server).remove("evalsha").expect("scripts");
    assert!(scripts < 250, "{scripts} for 500 locks");
    assert_eq!(locks.held().len(), 500);
    drop(held);
    locks.drain(wait::PATIENCE).await;
}

#[tokio::test]
async fn a_dropped_manager_leaves_no_connection() {
    needs!(redis);
    let server = RedisServer::start();
    let connected = || {
        server
            .info("clients")
            .remove("connected_clients")
            .expect("a field")
    };
    for _ in 0..3 {
        let runtime = std::thread::spawn({
            let url = server.url();
            move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build();
                runtime.expect("a runtime").block_on(async {
                    let locks = LockManager::connect(&url).await.expect("a manager");
                    drop(locks.lock("k").wait(long()).acquire().await.expect("free"));
                });
            }
        });
        runtime.join().expect("no panic");
    }
    // The connection that asks is counted too.
    wait::eventually("the other connections are closed", async || {
        connected() == "1"
    })
    .await;
    assert!(super::keys(&server).is_empty());
}

#[tokio::test]
async fn a_connect_dropped_after_any_number_of_polls_leaves_no_connection() {
    needs!(redis);
    let server = RedisServer::start();
    let connected = || {
        server
            .info("clients")
            .remove("connected_clients")
            .expect("a field")
    };
    for polls in 0..6 {
        let url = server.url();
        let mut connecting = std::pin::pin!(LockManager::connect(&url));
        let mut left = polls;
        std::future::poll_fn(|context| {
            if left == 0 {
                return std::task::Poll::Ready(());
            }
            left -= 1;
            connecting.as_mut().poll(context).map(drop)
        })
        .await;
    }
    // The connection that asks is counted too.
    wait::eventually("the other connections are closed", async || {
        connected() == "1"
    })
    .await;
}

#[tokio::test]
async fn a_ping_is_one_round_trip() {
    needs!(redis);
    let (server, proxy, locks) = proxied(Duration::from_secs(5)).await;
    server.reset_stats();
    let ping = async move { locks.ping().await.expect("a server that answers") };
    let sent = || asked(&server).contains_key("eval");
    let (before, all) = bytes_before_and_after_the_first_answer(&proxy, ping, sent).await;
    assert_eq!(before, all);
}
