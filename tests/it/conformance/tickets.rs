//! Tests tickets: a held lock goes to another process, once, with the same fencing token.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use lock_core::{Error, ErrorKind, LockGuard, LockManager, Ticket, Wait};
use lock_tests::wait;
use tokio::time::timeout;

use super::{Fixture, kind, long, short};

/// Takes the lock, and replaces it by a ticket.
async fn passed_on(locks: &LockManager) -> (LockGuard, Ticket) {
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    let ticket = guard.ticket(long()).await.expect("held");
    (guard, ticket)
}

/// Reads the ticket from its text, as a job in a queue carries it.
fn sent(ticket: &Ticket) -> Ticket {
    ticket.to_string().parse().expect("its own text")
}

async fn is_busy(locks: &LockManager) {
    let refused = locks.lock("k").ttl(long()).acquire().await;
    assert_eq!(kind(refused), ErrorKind::Busy);
}

pub(super) async fn a_ticket_passes_the_lock_on_with_its_fencing_token(store: &Fixture) {
    let (locks, worker) = (store.manager().await, store.manager().await);
    let (first, ticket) = passed_on(&locks).await;
    assert!(!first.is_valid() && first.remaining().is_zero());
    assert!(locks.held().is_empty());
    assert_eq!(
        (ticket.key(), ticket.fencing_token()),
        ("k", first.fencing_token())
    );
    for other in [&locks, &worker] {
        is_busy(other).await;
    }
    let guard = worker.resume(sent(&ticket)).await.expect("unused");
    assert_eq!(
        (guard.key(), guard.fencing_token()),
        ("k", first.fencing_token())
    );
    assert_eq!(worker.held().len(), 1);
    // The first owner's end has no effect.
    let (handle, fence) = (first.handle(), first.fencing_token());
    first.release().await.expect("there is nothing to release");
    assert!(guard.is_valid() && !handle.is_valid());
    for other in [&locks, &worker] {
        is_busy(other).await;
    }
    guard.release().await.expect("held");
    let next = locks.lock("k").acquire().await.expect("free");
    assert!(next.fencing_token() > fence);
    next.release().await.expect("held");
    store.is_left_clean().await;
}

pub(super) async fn the_next_owner_is_renewed_and_may_be_the_same_process(store: &Fixture) {
    let locks = store.manager().await;
    let ttl = store.renewable();
    let first = locks.lock("k").ttl(ttl).acquire().await.expect("free");
    let ticket = first.ticket(long()).await.expect("held");
    let guard = locks.resume(ticket).await.expect("unused");
    assert!(guard.remaining() <= ttl, "the ttl of the first owner");
    tokio::time::sleep(ttl * 2).await;
    assert!(guard.is_valid(), "renewed");
    drop(first);
    is_busy(&store.manager().await).await;
    // A ticket may be passed on again.
    let again = guard.ticket(long()).await.expect("held");
    let last = locks.resume(again).await.expect("unused");
    assert_eq!(last.fencing_token(), guard.fencing_token());
    last.release().await.expect("held");
    store.is_left_clean().await;
}

pub(super) async fn of_eight_callers_with_one_ticket_one_gets_the_lock(store: &Fixture) {
    let locks = store.manager().await;
    let workers = [store.manager().await, store.manager().await];
    for _ in 0..10 {
        let (first, ticket) = passed_on(&locks).await;
        let calls = (0..8).map(|index| {
            let (worker, ticket) = (workers[index % 2].clone(), sent(&ticket));
            tokio::spawn(async move { worker.resume(ticket).await })
        });
        let calls: Vec<_> = calls.collect();
        let mut winners = Vec::new();
        for call in calls {
            match call.await.expect("no panic") {
                Ok(guard) => winners.push(guard),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Lost),
            }
        }
        assert_eq!(winners.len(), 1);
        assert_eq!(winners[0].fencing_token(), first.fencing_token());
        winners.remove(0).release().await.expect("held");
        assert_eq!(kind(locks.resume(ticket).await), ErrorKind::Lost);
    }
    store.is_left_clean().await;
}

pub(super) async fn a_ticket_that_is_not_used_in_time_leaves_a_free_key(store: &Fixture) {
    let (locks, worker) = (store.manager().await, store.manager().await);
    let first = locks.lock("k").ttl(long()).acquire().await.expect("free");
    let ticket = first.ticket(short()).await.expect("held");
    // Waiters ask when the ticket's time is over.
    let waiting = worker.lock("k").ttl(long()).wait(Wait::Forever).acquire();
    let next = timeout(wait::PATIENCE, waiting).await.expect("in time");
    let next = next.expect("free");
    assert!(next.fencing_token() > ticket.fencing_token());
    let error = worker.resume(ticket).await.expect_err("too late");
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert_eq!(error.key(), Some("k"));
    assert!(next.is_valid());
    next.release().await.expect("held");
    store.is_left_clean().await;
}

pub(super) async fn waiters_get_the_lock_from_the_owner_that_used_the_ticket(store: &Fixture) {
    let (locks, other) = (store.manager().await, store.manager().await);
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    let mut waiters = Vec::new();
    for manager in [&locks, &locks, &other] {
        let request = manager.lock("k").ttl(long()).wait(Wait::Forever);
        waiters.push(tokio::spawn(async move {
            let guard = request.acquire().await?;
            let fence = guard.fencing_token();
            guard.release().await?;
            Ok::<_, Error>(fence)
        }));
    }
    wait::eventually("the other process waits", async || store.waiting() > 0).await;
    let ticket = guard.ticket(long()).await.expect("held");
    // A task of this process asks the store now, because the lock is not held here any more.
    wait::eventually("both processes wait", async || store.waiting() > 1).await;
    // The next owner is in a process of which a task is waiting in the store's queue.
    let next = other.resume(ticket).await.expect("unused");
    assert_eq!(other.held().len(), 1);
    assert!(waiters.iter().all(|waiter| !waiter.is_finished()));
    next.release().await.expect("held");
    assert_eq!(other.held().len(), 0);
    for waiter in waiters {
        let waited = timeout(wait::PATIENCE, waiter).await.expect("told");
        let fence = waited.expect("no panic").expect("its turn");
        assert!(fence > guard.fencing_token());
    }
    store.is_left_clean().await;
}

pub(super) async fn a_lock_that_is_not_held_has_no_ticket(store: &Fixture) {
    let locks = store.manager().await;
    let released = locks.lock("k").ttl(long()).acquire().await.expect("free");
    let handle = released.handle();
    released.release().await.expect("held");
    assert_eq!(kind(handle.ticket(long()).await), ErrorKind::Lost);

    let (first, ticket) = passed_on(&locks).await;
    assert_eq!(kind(first.ticket(long()).await), ErrorKind::Lost);
    let next = locks.resume(ticket).await.expect("unused");
    next.release().await.expect("held");

    for deleted in [true, false] {
        let guard = store.lock("k").await.wait(wait::PATIENCE).acquire();
        let guard = guard.await.expect("free");
        match deleted {
            true => store.delete("k"),
            false => store.overwrite("k"),
        }
        assert_eq!(kind(guard.ticket(long()).await), ErrorKind::Lost);
        assert!(!guard.is_valid());
    }
    assert_eq!(store.taken(), 1, "another owner's key is left alone");
    let ran_out = locks.lock("other").ttl(long()).max_hold(short() / 4);
    let ran_out = ran_out.acquire().await.expect("free");
    ran_out.lost().await;
    let error = ran_out.ticket(long()).await.expect_err("lost");
    assert!(error.is_max_hold());
}

pub(super) async fn a_call_that_has_entered_the_lock_forbids_a_ticket(store: &Fixture) {
    let locks = store.manager().await;
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    let request = locks.lock("k").ttl(long());
    let inside = request.run_with(|lock| async move { lock.ticket(long()).await });
    let error = guard.scope(inside).await.expect("entered");
    let error = error.expect_err("a call is inside");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("entered"), "{error}");
    assert!(guard.is_valid(), "held as before");
    for time in [Duration::ZERO, Duration::from_secs(25 * 3_600)] {
        let error = guard.ticket(time).await.expect_err("out of bounds");
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("pick_up_time"), "{error}");
    }
    assert!(guard.is_valid(), "held as before");
    // A body may pass its own lock on, and goes on without it.
    guard.release().await.expect("held");
    let request = locks.lock("k").ttl(long());
    let body = async |lock: lock_core::LockHandle| {
        let ticket = lock.ticket(long()).await.expect("held");
        tokio::task::yield_now().await;
        assert!(!lock.is_valid());
        ticket
    };
    let ticket = request.run_with(body).await.expect("free");
    let next = locks.resume(ticket).await.expect("unused");
    next.release().await.expect("held");
    store.is_left_clean().await;
}

pub(super) async fn a_share_and_a_lock_of_several_keys_have_no_ticket(store: &Fixture) {
    let locks = store.manager().await;
    let several = locks.lock_all(["k", "other"]).ttl(long()).acquire().await;
    let several = several.expect("free");
    let error = several.ticket(long()).await.expect_err("several keys");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("several keys"), "{error}");
    assert!(several.is_valid(), "held as before");
    for request in [locks.lock("read").read(), locks.lock("exports").permits(2)] {
        let share = request.ttl(long()).acquire().await.expect("free");
        let error = share.ticket(long()).await.expect_err("a share");
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("share"), "{error}");
        assert!(share.is_valid(), "held as before");
        share.release().await.expect("held");
    }
    // One key given twice is one key.
    several.release().await.expect("held");
    let one = locks.lock_all(["k", "k"]).ttl(long()).acquire().await;
    let ticket = one.expect("free").ticket(long()).await.expect("held");
    let next = locks.resume(ticket).await.expect("unused");
    next.release().await.expect("held");
    store.is_left_clean().await;
}

/// Polls a future once, and drops it.
fn begun(future: impl Future) -> bool {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    future.as_mut().poll(&mut context).is_ready()
}

pub(super) async fn a_ticket_and_its_use_that_are_dropped_on_the_way_are_undone(store: &Fixture) {
    let locks = store.manager().await;
    for _ in 0..20 {
        let guard = locks.lock("k").ttl(long()).wait(wait::PATIENCE).acquire();
        let guard = guard.await.expect("free");
        // An embedded store answers at once. Then there is a ticket, whose time is over soon.
        let made = begun(guard.ticket(short()));
        assert!(!guard.is_valid(), "from the first poll on");
        drop(guard);
        store.is_left_clean().await;
        if made {
            break;
        }
    }
    let locks = store.manager().await;
    for key in 0..20 {
        let guard = locks.lock(format!("k{key}")).ttl(long()).acquire().await;
        let ticket = guard.expect("free").ticket(long()).await.expect("held");
        begun(locks.resume(ticket.clone()));
        // The second call may overtake the undoing of the first one. Then it has the lock, and keeps it.
        match locks.resume(ticket).await {
            Ok(guard) => {
                tokio::time::sleep(Duration::from_millis(20)).await;
                assert!(guard.is_valid());
                guard.release().await.expect("held");
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::Lost),
        }
        wait::eventually("the key is free", async || {
            let again = locks.lock(format!("k{key}")).acquire().await;
            again.is_ok()
        })
        .await;
    }
    store.is_left_clean().await;
}

pub(super) async fn a_manager_that_drains_uses_no_ticket_and_makes_tickets(store: &Fixture) {
    let (locks, worker) = (store.manager().await, store.manager().await);
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    let other = locks.lock("other").ttl(long()).acquire().await;
    let other = other.expect("free").ticket(long()).await.expect("held");
    let draining = tokio::spawn({
        let locks = locks.clone();
        async move { locks.drain(wait::PATIENCE).await }
    });
    wait::eventually("the manager drains", async || locks.is_draining()).await;
    // A process that ends passes its work on.
    let ticket = guard.ticket(long()).await.expect("held");
    drop(guard);
    let refused = locks.resume(other.clone()).await;
    assert_eq!(kind(refused), ErrorKind::Unavailable);
    let left = draining.await.expect("no panic");
    assert!(left.is_complete());
    for ticket in [ticket, other] {
        let guard = worker.resume(ticket).await.expect("unused");
        guard.release().await.expect("held");
    }
    store.is_left_clean().await;
}

pub(super) async fn over_several_servers_a_ticket_is_invalid_and_says_why(store: &Fixture) {
    let locks = store.manager().await;
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    let error = guard.ticket(long()).await.expect_err("several servers");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("redlock://"), "{error}");
    assert!(guard.is_valid(), "held as before");
    let elsewhere = LockManager::in_memory();
    let other = elsewhere.lock("k").acquire().await.expect("free");
    let ticket = other.ticket(long()).await.expect("held");
    assert_eq!(kind(locks.resume(ticket).await), ErrorKind::Invalid);
    guard.release().await.expect("held");
    store.is_left_clean().await;
}

pub(super) async fn the_settings_of_the_first_owner_do_not_travel_with_its_ticket(store: &Fixture) {
    let locks = store.manager().await;
    let short = Duration::from_millis(300);
    let request = locks.lock("k").ttl(long()).cooldown(long()).max_hold(short);
    let first = request.acquire().await.expect("free");
    let ticket = first.ticket(long()).await.expect("held");
    let guard = locks.resume(ticket).await.expect("unused");
    tokio::time::sleep(short * 2).await;
    assert!(guard.is_valid(), "it has no longest hold");
    guard.release().await.expect("held");
    let next = store.manager().await.lock("k").try_acquire().await;
    next.expect("an answer")
        .expect("no cooldown")
        .release()
        .await
        .expect("held");
    store.is_left_clean().await;
}
