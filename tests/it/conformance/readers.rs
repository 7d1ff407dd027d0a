//! Tests readers and writers: who enters beside whom, and in which order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use lock_core::{ErrorKind, LockManager, Wait};
use lock_tests::wait;
use tokio::time::timeout;

use super::shares::{entered, reader, refused, waits, writer};
use super::{Fixture, kind};
use crate::steps::{Waiter, its_turn};

pub(super) async fn readers_share_a_key_and_a_writer_waits_for_all(store: &Fixture) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let mut readers = Vec::new();
    for locks in [&locks, &locks, &others, &others] {
        readers.push(entered(reader(locks)).await);
    }
    assert_eq!(store.taken(), 1);
    refused(writer(&locks)).await;
    let waiting = waits(store, writer(&others), 1).await;
    for guard in readers.drain(1..) {
        guard.release().await.expect("held");
    }
    assert!(!waiting.is_finished());
    assert!(readers[0].is_valid());
    drop(readers);
    let guard = its_turn(waiting).await;
    refused(reader(&locks)).await;
    guard.release().await.expect("held");
    store.is_left_clean().await;
}

pub(super) async fn a_writer_excludes_readers(store: &Fixture) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let guard = entered(writer(&locks)).await;
    for locks in [&locks, &others] {
        let error = reader(locks).acquire().await.expect_err("a writer is in");
        assert_eq!((error.kind(), error.is_full()), (ErrorKind::Busy, false));
    }
    guard.release().await.expect("held");
    entered(reader(&others))
        .await
        .release()
        .await
        .expect("held");
}

/// Readers that ask at the same moment need no turn, because none of them stands in the way of another.
pub(super) async fn readers_of_many_tasks_enter_at_once(store: &Fixture) {
    let managers = [store.manager().await, store.manager().await];
    let before = entered(writer(&managers[0])).await;
    let first = before.fencing_token();
    before.release().await.expect("held");
    let readers = (0..24).map(|place| {
        let request = reader(&managers[place % 2]).wait(Wait::Forever);
        tokio::spawn(request.acquire())
    });
    let readers: Vec<_> = readers.collect();
    let mut inside = Vec::new();
    for reader in readers {
        inside.push(its_turn(reader).await);
    }
    assert!(inside.iter().all(|guard| guard.is_valid()));
    let latest = inside.iter().map(|guard| guard.fencing_token()).max();
    assert!(inside.iter().all(|guard| guard.fencing_token() > first));
    refused(writer(&managers[1])).await;
    for guard in inside {
        guard.release().await.expect("held");
    }
    let after = entered(writer(&managers[1])).await;
    assert!(Some(after.fencing_token()) > latest);
    drop(after);
    store.is_left_clean().await;
}

/// Lets in a writer and the reader behind it, which exclude each other.
///
/// Several servers promise no order, because they give a free key to whom asks first.
async fn enter_in_order(store: &Fixture, writer: Waiter, reader: Waiter) {
    let enters = async |waiter| {
        let guard = its_turn(waiter).await;
        let fence = guard.fencing_token();
        guard.release().await.expect("held");
        fence
    };
    let (writer, reader) = tokio::join!(enters(writer), enters(reader));
    assert!(writer < reader || store.is_of_several());
}

pub(super) async fn a_reader_behind_a_waiting_writer_waits_too(store: &Fixture) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let first = entered(reader(&locks)).await;
    let second = waits(store, writer(&others), 1).await;
    refused(reader(&locks)).await;
    refused(reader(&others)).await;
    let third = waits(store, reader(&locks), 2).await;
    first.release().await.expect("held");
    enter_in_order(store, second, third).await;
    store.is_left_clean().await;
}

pub(super) async fn the_end_of_a_writer_lets_in_all_readers_up_to_the_next_writer(store: &Fixture) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let first = entered(writer(&locks)).await;
    let mut readers = Vec::new();
    for place in 1..=6 {
        let of = [&locks, &others][place % 2];
        readers.push(waits(store, reader(of), place).await);
    }
    let next = waits(store, writer(&others), 7).await;
    let last = waits(store, reader(&locks), 8).await;
    first.release().await.expect("held");
    let mut inside = Vec::new();
    for reader in readers {
        inside.push(its_turn(reader).await);
    }
    assert!(inside.iter().all(|guard| guard.is_valid()));
    assert!(!next.is_finished());
    assert!(!last.is_finished() || store.is_of_several());
    drop(inside);
    enter_in_order(store, next, last).await;
    store.is_left_clean().await;
}

pub(super) async fn a_writer_that_gives_up_lets_in_the_readers_behind_it(store: &Fixture) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let first = entered(reader(&locks)).await;
    let second = waits(store, writer(&others), 1).await;
    let third = waits(store, reader(&locks), 2).await;
    let fourth = waits(store, reader(&others), 3).await;
    second.abort();
    let (third, fourth) = (its_turn(third).await, its_turn(fourth).await);
    assert!(first.is_valid() && third.is_valid() && fourth.is_valid());
    drop((first, third, fourth));
    store.is_left_clean().await;
}

/// Enters again and again as a reader, without waiting.
async fn keeps_reading(locks: LockManager, goes_on: Arc<AtomicBool>, read: Arc<AtomicUsize>) {
    while goes_on.load(Ordering::SeqCst) {
        if let Some(guard) = reader(&locks).try_acquire().await.expect("an answer") {
            read.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(3)).await;
            guard.release().await.expect("held");
        }
        tokio::task::yield_now().await;
    }
}

pub(super) async fn a_writer_enters_among_readers_that_never_stop(store: &Fixture) {
    let managers = [store.manager().await, store.manager().await];
    let goes_on = Arc::new(AtomicBool::new(true));
    let read = Arc::new(AtomicUsize::new(0));
    let readers: Vec<_> = (0..8)
        .map(|number| {
            let (goes_on, read) = (Arc::clone(&goes_on), Arc::clone(&read));
            tokio::spawn(keeps_reading(managers[number % 2].clone(), goes_on, read))
        })
        .collect();
    for round in 0..5 {
        let before = read.load(Ordering::SeqCst);
        let reading = async || read.load(Ordering::SeqCst) > before + 20;
        wait::eventually("the readers read", reading).await;
        let writer = writer(&managers[round % 2]).wait(Wait::Forever).acquire();
        let guard = timeout(wait::PATIENCE, writer).await;
        let guard = guard.expect("the writer is not starved").expect("its turn");
        guard.release().await.expect("held");
    }
    goes_on.store(false, Ordering::SeqCst);
    for reader in readers {
        reader.await.expect("no panic");
    }
    store.is_left_clean().await;
}

pub(super) async fn a_readers_token_is_between_those_of_the_writers_around_it(store: &Fixture) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let mut before = None;
    for round in 0..20 {
        let guard = entered(writer([&locks, &others][round % 2])).await;
        let first = guard.fencing_token();
        assert!(before < Some(first), "{before:?} {first:?}");
        guard.release().await.expect("held");
        let readers = [
            entered(reader(&locks)).await,
            entered(reader(&others)).await,
        ];
        for reader in readers {
            assert!(reader.fencing_token() > first);
            before = before.max(Some(reader.fencing_token()));
            reader.release().await.expect("held");
        }
    }
}

pub(super) async fn a_writer_goes_on_as_a_reader_with_its_token_and_lets_readers_in(
    store: &Fixture,
) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let ttl = store.renewable();
    let guard = entered(writer(&locks).ttl(ttl)).await;
    let (fence, before) = (guard.fencing_token(), guard.handle());
    let waiters = [
        waits(store, reader(&others), 1).await,
        waits(store, reader(&locks), 2).await,
    ];
    let next = waits(store, writer(&others), 3).await;
    let guard = guard.downgrade().await.expect("held");
    assert_eq!(guard.fencing_token(), fence);
    assert!(guard.is_valid() && guard.is_shared() && !before.is_valid());
    let mut readers = Vec::new();
    for waiter in waiters {
        readers.push(its_turn(waiter).await);
    }
    tokio::time::sleep(ttl * 3 / 2).await;
    assert!(guard.is_valid(), "it is renewed");
    assert!(!next.is_finished());
    guard.release().await.expect("held");
    drop(readers);
    let next = its_turn(next).await;
    assert!(next.fencing_token() > fence);
    drop(next);
    store.is_left_clean().await;
}

pub(super) async fn a_share_or_a_lost_lock_is_not_downgraded(store: &Fixture) {
    let locks = store.manager().await;
    let guard = entered(reader(&locks)).await;
    assert_eq!(kind(guard.downgrade().await), ErrorKind::Invalid);
    let guard = entered(writer(&locks)).await;
    store.delete("k");
    assert_eq!(kind(guard.downgrade().await), ErrorKind::Lost);
    drop(entered(writer(&locks)).await);
    store.is_left_clean().await;
}
