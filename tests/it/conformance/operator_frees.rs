//! Tests an operator who frees locks, on every store.

use std::sync::Arc;
use std::time::Duration;

use lock_core::operator::{Forced, Holder, HolderProcess, KeyState, Operator};
use lock_core::{Error, ErrorKind, LockGuard, LockManager, Wait};
use lock_tests::wait;
use tokio::time::timeout;

use super::operator::{operator, seen};
use super::{Fixture, kind, long};

/// Long before the first renewal of a lock with a ttl of a minute, which comes after 10 s.
const AT_ONCE: Duration = Duration::from_secs(8);

/// Returns the only holder of a key.
async fn holder(operator: &Operator, key: &str) -> Holder {
    let seen = seen(operator, key).await;
    let [holder] = seen.holders() else {
        panic!("{seen:?}");
    };
    holder.clone()
}

async fn freed(operator: &Operator, holder: &Holder) -> Forced {
    let forced = operator.force(holder).because("it hangs").await;
    forced.expect("the store answers")
}

async fn taken(locks: &LockManager) -> LockGuard {
    let request = locks.lock("k").ttl(long()).wait(Wait::For(long()));
    request.acquire().await.expect("free soon")
}

pub(super) async fn a_lock_that_is_freed_is_lost_at_once_and_the_next_token_is_above(
    store: &Fixture,
) {
    let locks = store.manager().await;
    let operator = operator(store).await;
    let guard = taken(&locks).await;
    store.is_everywhere().await;
    let holder = holder(&operator, "k").await;
    assert_eq!(freed(&operator, &holder).await, Forced::Told);
    let lost = timeout(AT_ONCE, guard.lost()).await;
    lost.expect("told, long before the first renewal");
    assert!(!guard.is_valid() && guard.remaining().is_zero());
    let cooling = seen(&operator, "k").await;
    assert_ne!(cooling.state(), KeyState::Held);
    let next = taken(&store.manager().await).await;
    assert!(next.fencing_token() > guard.fencing_token());
    let error = guard.release().await.expect_err("lost");
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert!(error.to_string().contains("operator"), "{error}");
    assert!(next.is_valid());
    // The process whose lock was freed may have the next one.
    next.release().await.expect("held");
    taken(&locks).await.release().await.expect("held");
    store.is_left_clean().await;
}

pub(super) async fn an_order_for_any_key_of_several_drops_the_body_before_the_next_owner_enters(
    store: &Fixture,
) {
    let (locks, other) = (store.manager().await, store.manager().await);
    let operator = operator(store).await;
    let keys = ["a", "b", "c"];
    for key in keys {
        let (entered, inside) = tokio::sync::oneshot::channel();
        let alive = Arc::new(());
        let held = Arc::clone(&alive);
        let body = locks.lock_all(keys).ttl(long()).run(async move {
            let _held = held;
            entered.send(()).expect("the test waits");
            std::future::pending::<()>().await;
        });
        let body = tokio::spawn(body);
        inside.await.expect("the body runs");
        wait::eventually("a majority has the lock", async || {
            seen(&operator, key).await.holders().len() == 1
        })
        .await;
        let holder = holder(&operator, key).await;
        assert_eq!(freed(&operator, &holder).await, Forced::Told);
        let next = other.lock(key).ttl(long()).wait(Wait::For(long()));
        let next = timeout(AT_ONCE, next.acquire()).await;
        let next = next.expect("after the grace").expect("free");
        assert_eq!(Arc::strong_count(&alive), 1, "the body is dropped");
        let error: Error = body.await.expect("no panic").expect_err("lost");
        assert_eq!(error.kind(), ErrorKind::Lost);
        next.release().await.expect("held");
    }
    store.is_left_clean().await;
}

pub(super) async fn a_lock_that_was_resumed_beside_a_waiter_of_its_process_is_seen_and_freed(
    store: &Fixture,
) {
    let (locks, worker) = (store.manager().await, store.manager().await);
    let operator = operator(store).await;
    let first = taken(&locks).await;
    let ticket = first.ticket(long()).await.expect("held");
    let waiting = worker.clone();
    let waiter = tokio::spawn(async move { taken(&waiting).await });
    wait::eventually("the worker waits", async || {
        seen(&operator, "k").await.waiter_count() > 0
    })
    .await;
    let guard = worker.resume(ticket).await.expect("unused");
    wait::eventually("the holder answers", async || {
        holder(&operator, "k").await.process() == HolderProcess::Holds
    })
    .await;
    let holder = holder(&operator, "k").await;
    assert_eq!(holder.fencing_token(), Some(guard.fencing_token()));
    assert_eq!(freed(&operator, &holder).await, Forced::Told);
    let next = timeout(AT_ONCE, waiter).await;
    let next = next.expect("after the grace").expect("no panic");
    assert!(
        !guard.is_valid(),
        "the holder was told before the next owner entered"
    );
    assert!(next.fencing_token() > guard.fencing_token());
    assert_eq!(kind(guard.release().await), ErrorKind::Lost);
    next.release().await.expect("held");
    store.is_left_clean().await;
}

pub(super) async fn waiters_of_both_processes_get_a_freed_lock(store: &Fixture) {
    let (locks, other) = (store.manager().await, store.manager().await);
    let operator = operator(store).await;
    let guard = taken(&locks).await;
    let mut waiters = Vec::new();
    for locks in [&locks, &other] {
        let locks = locks.clone();
        waiters.push(tokio::spawn(async move {
            let next = taken(&locks).await;
            let token = next.fencing_token();
            next.release().await.expect("held");
            token
        }));
    }
    wait::eventually("the other process waits", async || {
        seen(&operator, "k").await.waiter_count() > 0
    })
    .await;
    let holder = holder(&operator, "k").await;
    assert_eq!(freed(&operator, &holder).await, Forced::Told);
    for waiter in waiters {
        let next = timeout(wait::PATIENCE, waiter).await;
        let token = next.expect("told").expect("no panic");
        assert!(token > guard.fencing_token());
    }
    assert_eq!(kind(guard.release().await), ErrorKind::Lost);
    store.is_left_clean().await;
}

pub(super) async fn an_order_frees_the_holder_that_was_seen_and_no_successor(store: &Fixture) {
    let locks = store.manager().await;
    let operator = operator(store).await;
    let guard = taken(&locks).await;
    store.is_everywhere().await;
    let before = holder(&operator, "k").await;
    guard.release().await.expect("held");
    let successor = taken(&locks).await;
    store.is_everywhere().await;
    let now = holder(&operator, "k").await;
    assert_ne!(before.id(), now.id(), "each hold has a name of its own");
    assert_eq!(freed(&operator, &before).await, Forced::Changed);
    assert_eq!(holder(&operator, "k").await.id(), now.id());
    assert!(successor.is_valid());
    successor.release().await.expect("still held");
    store.is_left_clean().await;
}

pub(super) async fn an_order_for_a_lock_that_has_ended_changes_nothing(store: &Fixture) {
    let locks = store.manager().await;
    let operator = operator(store).await;
    let guard = taken(&locks).await;
    store.is_everywhere().await;
    let holder = holder(&operator, "k").await;
    guard.handle().cooldown(long());
    guard.release().await.expect("held");
    assert_eq!(freed(&operator, &holder).await, Forced::Changed);
    let cooling = seen(&operator, "k").await;
    assert_eq!(cooling.state(), KeyState::CoolingDown, "its own cooldown");
    assert!(cooling.remaining() > Some(long() / 2));
    locks.forget("k").await.expect("no fault");
    assert_eq!(freed(&operator, &holder).await, Forced::Changed);
    assert_eq!(seen(&operator, "k").await.state(), KeyState::Free);
}

pub(super) async fn the_late_commands_of_a_holder_leave_the_next_owner_alone(store: &Fixture) {
    let locks = store.manager().await;
    let operator = operator(store).await;
    let guard = taken(&locks).await;
    guard.remember("an answer", long()).expect("in bounds");
    store.is_everywhere().await;
    let holder = holder(&operator, "k").await;
    assert_eq!(freed(&operator, &holder).await, Forced::Told);
    timeout(AT_ONCE, guard.lost()).await.expect("told");
    // The record of a lost lock is stored where its token still stands, and it does not.
    assert_eq!(kind(guard.release().await), ErrorKind::Lost);
    let next = taken(&store.manager().await).await;
    assert!(next.is_valid());
    assert_eq!(freed(&operator, &holder).await, Forced::Changed);
    next.release().await.expect("held");
    store.is_left_clean().await;
}

pub(super) async fn the_key_of_a_process_that_has_crashed_is_free_at_once(store: &Fixture) {
    let locks = store.manager().await;
    let operator = operator(store).await;
    if !store.has_a_dead_holder("k") {
        return;
    }
    let waiter = tokio::spawn({
        let locks = locks.clone();
        async move { taken(&locks).await }
    });
    wait::eventually("a process waits", async || {
        seen(&operator, "k").await.waiter_count() > 0
    })
    .await;
    let holder = holder(&operator, "k").await;
    let forced = freed(&operator, &holder).await;
    assert_eq!(forced == Forced::Freed, store.counts_receivers());
    let next = timeout(wait::PATIENCE, waiter).await;
    let next = next.expect("long before the ttl").expect("no panic");
    next.release().await.expect("held");
}

pub(super) async fn the_key_of_another_librarys_client_is_free_at_once(store: &Fixture) {
    let locks = store.manager().await;
    let operator = operator(store).await;
    store.overwrite("k");
    let holder = holder(&operator, "k").await;
    assert_eq!(freed(&operator, &holder).await, Forced::Freed);
    taken(&locks).await.release().await.expect("held");
    store.is_left_clean().await;
}

pub(super) async fn an_order_without_a_name_or_a_reason_is_invalid_and_frees_nothing(
    store: &Fixture,
) {
    let locks = store.manager().await;
    let guard = taken(&locks).await;
    store.is_everywhere().await;
    let long_reason = "x".repeat(513);
    for (name, reason) in [
        ("", "it hangs"),
        ("ops", " "),
        ("ops", "two\nlines"),
        ("ops", &*long_reason),
    ] {
        let operator = locks.operator(name);
        let holder = holder(&operator, "k").await;
        let order = operator.force(&holder).because(reason);
        assert_eq!(kind(order.await), ErrorKind::Invalid);
    }
    assert!(guard.is_valid());
    guard.release().await.expect("held");
}

pub(super) async fn one_of_several_readers_is_freed_alone(store: &Fixture) {
    let managers = [store.manager().await, store.manager().await];
    let operator = operator(store).await;
    let mut guards = Vec::new();
    for locks in &managers {
        let reads = locks.lock("k").ttl(long()).read();
        guards.push(reads.acquire().await.expect("readers share the key"));
    }
    let writer = tokio::spawn({
        let locks = managers[0].clone();
        async move { taken(&locks).await }
    });
    wait::eventually("both holders answer, and the writer waits", async || {
        let seen = seen(&operator, "k").await;
        let answered = seen
            .holders()
            .iter()
            .filter(|it| it.fencing_token().is_some());
        answered.count() == 2 && seen.waiter_count() == 1
    })
    .await;
    let seen_before = seen(&operator, "k").await;
    assert!(seen_before.holders().iter().all(Holder::is_share));
    let first = guards[0].fencing_token();
    let of_first = |holder: &&Holder| holder.fencing_token() == Some(first);
    let holder = seen_before.holders().iter().find(of_first).expect("seen");
    assert_eq!(freed(&operator, holder).await, Forced::Told);
    timeout(AT_ONCE, guards[0].lost()).await.expect("told");
    assert!(guards[1].is_valid(), "the other reader goes on");
    assert_eq!(freed(&operator, holder).await, Forced::Changed);
    let left = seen(&operator, "k").await;
    assert_eq!((left.holder_count(), left.waiter_count()), (1, 1));
    let [released, other] = [guards.remove(0), guards.remove(0)];
    assert_eq!(kind(released.release().await), ErrorKind::Lost);
    other.release().await.expect("held");
    let writer = timeout(wait::PATIENCE, writer).await.expect("its turn");
    let writer = writer.expect("no panic");
    assert!(writer.fencing_token() > first);
    writer.release().await.expect("held");
    store.is_left_clean().await;
}

pub(super) async fn a_freed_permit_is_not_given_out_again_before_its_grace_is_over(
    store: &Fixture,
) {
    let locks = store.manager().await;
    let operator = operator(store).await;
    let permit = || locks.lock("k").ttl(long()).permits(2);
    let (one, other) = (
        permit().acquire().await.expect("one of two"),
        permit().acquire().await.expect("two of two"),
    );
    let seen = seen(&operator, "k").await;
    assert_eq!(freed(&operator, &seen.holders()[0]).await, Forced::Told);
    // The process whose permit was freed may still have to stop.
    let refused = store.manager().await;
    let refused = refused.lock("k").ttl(long()).permits(2).try_acquire().await;
    assert!(refused.expect("the store answers").is_none());
    let third = permit().wait(long()).acquire().await;
    let third = third.expect("after the grace");
    wait::eventually("one of both is lost", async || {
        one.is_valid() != other.is_valid()
    })
    .await;
    third.release().await.expect("held");
    drop((one, other));
    store.is_left_clean().await;
}

pub(super) async fn a_ticket_on_its_way_is_a_holder_that_has_ended_and_worth_nothing_once_it_is_freed(
    store: &Fixture,
) {
    let locks = store.manager().await;
    let operator = operator(store).await;
    let first = taken(&locks).await;
    let ticket = first.ticket(long()).await.expect("held");
    wait::eventually("its process answers", async || {
        holder(&operator, "k").await.process() == HolderProcess::Ended
    })
    .await;
    let holder = holder(&operator, "k").await;
    assert_ne!(freed(&operator, &holder).await, Forced::Changed);
    assert_eq!(kind(locks.resume(ticket).await), ErrorKind::Lost);
    let next = taken(&store.manager().await).await;
    assert!(next.fencing_token() > first.fencing_token());
    next.release().await.expect("held");
    store.is_left_clean().await;
}
