//! Tests records on a real server: repeated requests, and full memory.

use std::time::Duration;

use lock_core::middleware::{Forgotten, RecordOutcome};
use lock_core::{ErrorKind, LockManager, Renew};
use lock_tests::{Direction, Flow, RedisServer, needs, wait};

use super::scripts::{ACQUIRE, NEXT, OURS, run, scripts};
use super::{asked, keys, kind, long, manager, once, proxied, served, served_both, taken, waits};

pub(super) const RECORD: &str = "the answer";

const PROPOSE: [&str; 6] = scripts!(
    "propose_first.lua",
    "one_server.lua",
    "common.lua",
    "stand_in_line.lua",
    "node_vote.lua",
    "propose.lua"
);

/// Returns the record that stands in the key, according to the server.
pub(super) fn stored(server: &RedisServer) -> Option<String> {
    let value = server.get("lockkit:k")?;
    let record = value.strip_prefix("done/")?.splitn(5, '/').nth(4)?;
    Some(record.to_owned())
}

pub(super) async fn recorded(locks: &LockManager) -> Option<Vec<u8>> {
    let refused = locks.lock("k").ttl(long()).acquire().await;
    let refused = refused.expect_err("the key is taken");
    assert_eq!(refused.kind(), ErrorKind::Busy);
    refused.record().map(<[u8]>::to_vec)
}

pub(super) fn scripts_run(server: &RedisServer) -> u64 {
    let calls = server.commandstats();
    let count = |name| calls.get(name).copied().unwrap_or(0);
    count("evalsha") + count("eval")
}

#[tokio::test]
async fn no_acquire_queues_behind_a_record() {
    needs!(redis);
    let server = RedisServer::start();
    let record = format!("done/{OURS}/33000000000000/5/{RECORD}");
    let (lock, queue) = ("lockkit:k", "lockkit:!q:{k}");
    for value in [record.as_str(), OURS] {
        server.cli(&["SET", lock, value, "PX", "60000"]);
        let acquire = [NEXT, "9000", "2000", "1", "", "lockkit:!m:", ""];
        let one = run(&server, &ACQUIRE, &[lock, "lockkit:!f", queue], &acquire);
        let last = |answer: &str| answer.lines().last().map(str::to_owned);
        let queued = if value == OURS { "1" } else { "0" };
        assert_eq!(last(&one).as_deref(), Some(queued), "{one}");
        server.cli(&["DEL", queue]);
        server.cli(&["HSET", "lockkit:!r", "opens", "0"]);
        let text = format!("{:016} {:016}{NEXT}60000 2000 lockkit:!m:", 8, 9);
        let vote = [&text, "9000", "1", "1", ""];
        let vote = run(&server, &PROPOSE, &[lock, "lockkit:!r", queue], &vote);
        assert_eq!(last(&vote).as_deref(), Some(queued), "{vote}");
        server.cli(&["DEL", queue]);
    }
}

#[tokio::test]
async fn a_record_is_one_trip_with_the_release_and_a_duplicate_is_one_trip() {
    needs!(redis_7);
    let (server, locks) = served().await;
    for _ in 0..2 {
        let guard = taken(&locks, "k", long()).await;
        guard.remember(RECORD, long()).expect("in bounds");
        server.reset_stats();
        guard.release().await.expect("held");
        let release = asked(&server);
        // The key, the mark, and the queue that does not exist.
        assert_eq!(release.get("get"), Some(&2));
        assert_eq!(release.get("zrange"), Some(&1));
        assert_eq!((release.get("publish"), release.get("del")), (None, None));
        server.reset_stats();
        assert_eq!(recorded(&locks).await, Some(RECORD.into()));
        let duplicate = asked(&server);
        assert_eq!(duplicate.values().sum::<u64>(), 3, "SET, GET and TIME");
        assert!(!duplicate.contains_key("evalsha"));
        assert_eq!(locks.forget("k").await.expect("no fault"), Forgotten::Yes);
        assert!(keys(&server).is_empty());
    }
}

#[tokio::test]
async fn a_waiter_behind_many_dead_ones_is_told_of_a_record() {
    needs!(redis);
    let (server, locks, other) = served_both().await;
    let guard = taken(&locks, "k", long()).await;
    let die = "for place = 1, 1500 do \
        local token = string.format('%016x/%032x', place, place) \
        redis.call('ZADD', KEYS[1], place, token .. ' 2000') end";
    server.cli(&["EVAL", die, "1", "lockkit:!q:{k}"]);
    let waiter = waits(&server, &other, "k", 1501).await;
    guard.remember(RECORD, long()).expect("in bounds");
    guard.release().await.expect("held");
    let refused = tokio::time::timeout(wait::PATIENCE, waiter).await;
    let refused = refused.expect("the waiter is told").expect("no panic");
    let refused = refused.expect_err("the record is the answer");
    assert_eq!(refused.record(), Some(RECORD.as_bytes()));
}

#[tokio::test]
async fn waiters_that_could_not_be_told_of_a_record_are_served_by_the_next_release() {
    needs!(redis);
    let (server, locks, other) = served_both().await;
    let guard = taken(&locks, "k", long()).await;
    let waiter = waits(&server, &other, "k", 1).await;
    server.cli(&["ACL", "SETUSER", "default", "-publish"]);
    guard
        .remember(RECORD, Duration::from_millis(100))
        .expect("in bounds");
    guard.release().await.expect("held");
    server.cli(&["ACL", "SETUSER", "default", "+publish"]);
    wait::eventually("the record is over", async || {
        server.get("lockkit:k").is_none()
    })
    .await;
    once(&locks, "k").await;
    drop(super::its_turn(waiter).await);
}

#[tokio::test]
async fn a_record_whose_answer_was_lost_is_repeated_and_found() {
    needs!(redis);
    let (server, proxy, locks) = proxied(Duration::from_secs(5)).await;
    // The server has to know the script, or its first answer asks for it.
    let guard = taken(&locks, "other", long()).await;
    guard.remember(RECORD, long()).expect("in bounds");
    guard.release().await.expect("held");
    let guard = taken(&locks, "k", long()).await;
    guard.remember(RECORD, long()).expect("in bounds");
    let handle = guard.handle();
    proxy.set(Direction::Replies, Flow::Hold);
    let release = tokio::spawn(guard.release());
    wait::eventually("the server has the record", async || {
        stored(&server).is_some()
    })
    .await;
    let value = server.get("lockkit:k");
    proxy.set(Direction::Replies, Flow::Pass);
    proxy.cut();
    release.await.expect("no panic").expect("stored before");
    assert_eq!(handle.record_outcome(), Some(RecordOutcome::Stored));
    assert_eq!(server.get("lockkit:k"), value, "written once");
}

#[tokio::test]
async fn a_repeated_record_that_finds_no_key_was_not_stored() {
    needs!(redis);
    let (server, proxy, locks) = proxied(Duration::from_secs(5)).await;
    let other = manager(&server.url()).await;
    let guard = taken(&locks, "k", long()).await;
    guard.remember(RECORD, long()).expect("in bounds");
    let handle = guard.handle();
    proxy.set(Direction::Requests, Flow::Hold);
    let release = tokio::spawn(guard.release());
    wait::eventually("the record is sent", async || {
        proxy.held(Direction::Requests) > 0
    })
    .await;
    // Another client deletes the lock before the record arrives.
    server.cli(&["DEL", "lockkit:k"]);
    proxy.cut();
    proxy.pass();
    assert_eq!(kind(release.await.expect("no panic")), ErrorKind::Lost);
    assert_eq!(handle.record_outcome(), Some(RecordOutcome::Lost));
    assert_eq!(
        other.forget("k").await.expect("no fault"),
        Forgotten::Nothing
    );
}

#[tokio::test]
async fn without_memory_for_its_record_a_key_stays_taken_for_one_more_ttl() {
    needs!(redis);
    let (server, locks) = served().await;
    let ttl = Duration::from_secs(4);
    let request = locks.lock("k").ttl(ttl).renew(Renew::Off);
    let guard = request.acquire().await.expect("free");
    let handle = guard.handle();
    let token = server.get("lockkit:k");
    guard.remember(RECORD, long()).expect("in bounds");
    // Half of the ttl has passed.
    tokio::time::sleep(ttl / 2).await;
    server.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    assert_eq!(kind(guard.release().await), ErrorKind::Unavailable);
    assert_eq!(handle.record_outcome(), Some(RecordOutcome::Failed));
    let left = server.time_to_live("lockkit:k").expect("the token stands");
    assert!(left > ttl * 3 / 4, "{left:?}");
    server.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(server.get("lockkit:k"), token);
    assert_eq!(recorded(&locks).await, None);
    let next = locks.lock("k").ttl(long()).wait(wait::PATIENCE).acquire();
    let next = next.await.expect("free after a ttl");
    next.release().await.expect("held");
    assert!(keys(&server).is_empty());
}

#[tokio::test]
async fn a_record_that_is_forgotten_by_a_request_whose_answer_is_lost_is_reported_as_forgotten() {
    needs!(redis);
    let (server, proxy, locks) = proxied(Duration::from_secs(5)).await;
    let guard = taken(&locks, "k", long()).await;
    guard.remember("7", long()).expect("in bounds");
    guard.release().await.expect("held");
    // The server learns the script.
    assert_eq!(
        locks.forget("other").await.expect("an answer"),
        Forgotten::Nothing
    );
    proxy.set(Direction::Replies, Flow::Hold);
    let forgetting = tokio::spawn(async move { locks.forget("k").await });
    wait::eventually("the record is deleted", async || stored(&server).is_none()).await;
    proxy.cut();
    proxy.pass();
    let forgotten = forgetting.await.expect("no panic");
    assert_eq!(forgotten.expect("the second answer"), Forgotten::Yes);
}
