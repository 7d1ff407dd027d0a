//! Tests how the lock ends under kept work, and how the end that its owner has chosen takes place behind it.

use std::future::pending;
use std::time::{Duration, SystemTime};

use lock_core::operator::Forced;
use lock_core::{ErrorKind, Interval, LockHandle, Renew, Tick};
use lock_tests::wait;
use tokio::time::timeout;

use super::kept::is_held;
use super::operator::{operator, seen};
use super::{Fixture, kind, long, short};
use crate::steps::taken;

pub(super) async fn a_cooldown_begins_when_the_kept_work_has_ended(store: &Fixture) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let request = locks.lock("k").ttl(long()).cooldown(long());
    let run = request.run_with(async |lock: LockHandle| lock.keep());
    let kept = run.await.expect("free").expect("held");
    is_held("k", &[&locks, &others]).await;
    drop(kept);
    for locks in [&locks, &others] {
        wait::eventually("the key cools down", async || {
            let refused = locks.lock("k").acquire().await;
            let error = refused.expect_err("the key stays taken");
            let rest = error.retry_after().expect("a hint");
            assert!(!error.is_cooling_down() || rest > long() / 2);
            error.is_cooling_down()
        })
        .await;
    }
}

pub(super) async fn a_record_is_left_when_the_kept_work_has_ended(store: &Fixture) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let guard = taken(&locks, "k", long()).await;
    guard.remember("half", long()).expect("in bounds");
    let kept = guard.keep().expect("held");
    guard.release().await.expect("it is deferred");
    is_held("k", &[&locks, &others]).await;
    kept.remember("done", long()).expect("in bounds");
    drop(kept);
    wait::eventually("the record stands", async || {
        let refused = others.lock("k").acquire().await;
        let error = refused.expect_err("the key stays taken");
        error.record() == Some(b"done")
    })
    .await;
}

pub(super) async fn a_tick_that_is_kept_ends_behind_its_work(store: &Fixture) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let hour = Duration::from_secs(3600);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let middle = now.expect("after 1970") + hour / 2;
    let schedule = Interval::new(hour).starting_at(middle);
    let (keeps, mut work) = tokio::sync::mpsc::unbounded_channel();
    let job = locks
        .every("k", schedule)
        .ttl(long())
        .run(move |tick: Tick| {
            keeps.send(tick.keep()).expect("the work listens");
            async {}
        });
    let job = tokio::spawn(job);
    let kept = timeout(wait::PATIENCE, work.recv()).await.expect("it runs");
    let kept = kept.expect("one run").expect("held");
    is_held("k", &[&others]).await;
    drop(kept);
    wait::eventually("the key is taken until the next tick", async || {
        let refused = others.lock("k").acquire().await;
        refused.expect_err("taken").is_cooling_down()
    })
    .await;
    job.abort();
}

pub(super) async fn kept_work_that_has_lost_its_lock_leaves_the_next_owner_alone(store: &Fixture) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let (keeps, mut work) = tokio::sync::mpsc::unbounded_channel();
    let run = locks
        .lock("k")
        .ttl(store.renewable())
        .run_with(async |lock: LockHandle| {
            keeps.send(lock.keep()).expect("the work listens");
            store.is_everywhere().await;
            store.delete("k");
            pending::<()>().await;
        });
    assert_eq!(kind(run.await), ErrorKind::Lost, "the body is dropped");
    let kept = work.recv().await.expect("it began").expect("held");
    assert!(!kept.is_valid() && kept.remaining().is_zero());
    assert_eq!(kind(kept.keep()), ErrorKind::Lost);
    let next = taken(&others, "k", long()).await;
    assert!(next.fencing_token() > kept.fencing_token());
    drop(kept);
    locks.drain(wait::PATIENCE).await;
    assert!(next.is_valid());
    is_held("k", &[&others]).await;
    next.release().await.expect("held");
    store.is_left_clean().await;
}

pub(super) async fn the_limit_of_a_body_releases_no_lock_under_its_kept_work(store: &Fixture) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let (keeps, mut work) = tokio::sync::mpsc::unbounded_channel();
    let request = locks.lock("k").ttl(long()).max_hold(short() / 4);
    let run = request.run_with(async |lock: LockHandle| {
        keeps.send(lock.keep()).expect("the work listens");
        pending::<()>().await;
    });
    assert_eq!(kind(run.await), ErrorKind::Lost, "the body is dropped");
    let kept = work.recv().await.expect("it began").expect("held");
    assert!(!kept.is_valid(), "the work can see that it has to stop");
    is_held("k", &[&locks, &others]).await;
    drop(kept);
    store.is_left_clean().await;
}

pub(super) async fn a_release_of_a_kept_lock_that_was_lost_says_so(store: &Fixture) {
    let locks = store.manager().await;
    let request = locks.lock("k").ttl(store.soon_over()).renew(Renew::Off);
    let guard = request.acquire().await.expect("free");
    let kept = guard.keep().expect("held");
    timeout(wait::PATIENCE, kept.lost())
        .await
        .expect("not renewed");
    assert_eq!(kind(guard.release().await), ErrorKind::Lost);
    drop(kept);
    store.is_left_clean().await;
}

pub(super) async fn an_operator_frees_a_kept_lock(store: &Fixture) {
    let locks = store.manager().await;
    let operator = operator(store).await;
    let guard = taken(&locks, "k", long()).await;
    let kept = guard.keep().expect("held");
    drop(guard);
    store.is_everywhere().await;
    let holder = seen(&operator, "k").await.holders()[0].clone();
    let forced = operator.force(&holder).because("it hangs").await;
    assert_eq!(forced.expect("the store answers"), Forced::Told);
    timeout(wait::PATIENCE, kept.lost())
        .await
        .expect("it is told");
    drop(kept);
    let next = locks.lock("k").ttl(long()).wait(wait::PATIENCE);
    let next = next.acquire().await.expect("free after the grace");
    next.release().await.expect("held");
    store.is_left_clean().await;
}

pub(super) async fn a_kept_lock_has_no_ticket(store: &Fixture) {
    let locks = store.manager().await;
    let guard = taken(&locks, "k", long()).await;
    let kept = guard.keep().expect("held");
    assert_eq!(kind(guard.ticket(long()).await), ErrorKind::Invalid);
    assert!(guard.is_valid());
    let refused = guard.downgrade().await.expect_err("work keeps it");
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(!refused.to_string().contains("ticket"), "{refused}");
    is_held("k", &[&locks]).await;
    drop(kept);
    store.is_left_clean().await;
}

pub(super) async fn a_lock_that_has_ended_cannot_be_kept(store: &Fixture) {
    let locks = store.manager().await;
    let guard = taken(&locks, "k", long()).await;
    let handle = guard.handle();
    let kept = guard.keep().expect("held");
    drop(guard);
    let last = handle.keep().expect("held, because it is kept");
    drop(kept);
    is_held("k", &[&locks]).await;
    drop(last);
    assert_eq!(kind(handle.keep()), ErrorKind::Lost);
    store.is_left_clean().await;
}
