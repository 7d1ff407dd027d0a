//! Outages of the store: nothing is recorded that is not under a lock.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{PATIENCE, all_released, context, embedded, with_clock};
use crate::replay::steps::*;
use http::StatusCode;
use lock_core::middleware::Forgotten;
use lock_core::{ErrorKind, LockManager};
use lock_tower::{Outage, RejectionKind, ReleaseAt, Replay};
use tower::{Layer, service_fn};

#[tokio::test]
async fn without_the_store_a_request_is_refused_or_runs_unrecorded_with_its_number() {
    let (locks, store) = embedded();
    let layer = paying(&locks, Replay::default());
    store.fail(ErrorKind::Unavailable);
    let refusing = layer.clone().layer(numbered(&Runs::default()));
    send(&refusing, pay(""))
        .await
        .is_refused(RejectionKind::Unavailable);

    let ids = Arc::new(Mutex::new(Vec::new()));
    let seen = ids.clone();
    let passing = answering(&layer.on_outage(Outage::Pass), move |request| {
        seen.lock().unwrap().push(context(request).operation_id());
        created("paid")
    });
    for _ in 0..2 {
        send(&passing, pay("")).await.is_first("paid");
    }
    store.recover();
    send(&passing, pay("")).await.is_first("paid");
    send(&passing, pay("")).await.is_replay("paid");
    let ids = ids.lock().unwrap();
    assert!(
        ids[0].is_some() && ids.iter().all(|id| *id == ids[0]),
        "{ids:?}"
    );
}

#[tokio::test]
async fn a_fallback_records_where_its_locks_are() {
    let (locks, store) = embedded();
    let local = LockManager::in_memory();
    let runs = Runs::default();
    let layer = paying(&locks, Replay::default()).on_outage(Outage::Fallback(local.clone()));
    let service = layer.layer(numbered(&runs));
    store.fail(ErrorKind::Unavailable);
    send(&service, pay("")).await.is_first("payment 1");
    send(&service, pay("")).await.is_replay("payment 1");
    store.recover();
    send(&service, pay("")).await.is_replay("payment 1");
    assert_eq!(runs.count(), 1);
}

#[tokio::test]
async fn a_fallback_changes_no_answer_while_the_store_answers() {
    for release_at in [ReleaseAt::Head, ReleaseAt::BodyEnd] {
        changes_no_answer(release_at).await;
    }
}

async fn changes_no_answer(release_at: ReleaseAt) {
    let (locks, _) = embedded();
    let runs = Runs::default();
    let [a, b] = [LockManager::in_memory(), LockManager::in_memory()].map(|local| {
        let layer = paying(&locks, Replay::default())
            .release_at(release_at)
            .wait(PATIENCE) // for the release behind the last byte
            .on_outage(Outage::Fallback(local));
        layer.layer(numbered(&runs))
    });
    send(&a, pay("")).await.is_first("payment 1");
    for process in [&b, &a] {
        for _ in 0..2 {
            let (one, two) = tokio::join!(send(process, pay("")), send(process, pay("")));
            one.is_replay("payment 1");
            two.is_replay("payment 1");
        }
    }
    // An answer that is forgotten is in no process.
    let key = paying(&locks, Replay::default()).key_of(pay("")).await;
    assert_eq!(locks.forget(key.unwrap()).await.unwrap(), Forgotten::Yes);
    send(&a, pay("")).await.is_first("payment 2");
    for process in [&a, &b] {
        send(process, pay("")).await.is_replay("payment 2");
    }
    assert_eq!(runs.count(), 2);
}

#[tokio::test]
async fn a_process_that_lost_its_lock_repeats_the_answer_of_the_next_one() {
    let layer = async || {
        let locks = LockManager::connect("memory:replay-lost").await.unwrap();
        let outage = Outage::Fallback(LockManager::in_memory());
        let store = locks.test_store().unwrap();
        (paying(&locks, Replay::default()).on_outage(outage), store)
    };
    let ((a, store), (b, _)) = (layer().await, layer().await);
    let b = b.layer(numbered(&Runs::default()));
    let next = b.clone();
    let a = a.layer(service_fn(move |_: Received| {
        let (store, next) = (store.clone(), next.clone());
        async move {
            assert!(store.lose("pay:alice:k1"));
            send(&next, pay("")).await.is_first("payment 1");
            Ok::<_, Infallible>(created("too late"))
        }
    }));
    send(&a, pay("")).await.is_first("too late");
    send(&a, pay("")).await.is_replay("payment 1");
    send(&b, pay("")).await.is_replay("payment 1");
}

#[tokio::test]
async fn a_fallback_keeps_an_answer_whose_lock_was_lost_in_an_outage() {
    let (locks, clock) = with_clock().await;
    let store = locks.test_store().unwrap();
    let runs = Runs::default();
    let (counted, away) = (runs.clone(), store.clone());
    let layer = paying(&locks, Replay::default());
    let layer = layer.on_outage(Outage::Fallback(LockManager::in_memory()));
    let service = layer.layer(service_fn(move |_: Received| {
        let run = counted.begin();
        away.fail(ErrorKind::Unavailable);
        clock.advance(Duration::from_secs(3600));
        async move { Ok::<_, Infallible>(created(&format!("payment {run}"))) }
    }));
    send(&service, pay("")).await.is_first("payment 1");
    send(&service, pay("")).await.is_replay("payment 1");
    store.recover();
    send(&service, pay("")).await.is_replay("payment 1");
    assert_eq!(runs.count(), 1);
}

#[tokio::test]
async fn a_request_whose_answer_is_in_the_store_does_not_run_while_the_store_is_away() {
    let (locks, store) = embedded();
    let local = LockManager::in_memory();
    let runs = Runs::default();
    let layer = paying(&locks, Replay::default()).on_outage(Outage::Fallback(local.clone()));
    let service = layer.layer(numbered(&runs));
    send(&service, pay("")).await.is_first("payment 1");
    store.fail(ErrorKind::Unavailable);
    for _ in 0..2 {
        let refused = send(&service, pay("")).await;
        refused.is_refused(RejectionKind::Unavailable);
        assert!(refused.header("retry-after").is_some());
    }
    // Another process knows nothing of it.
    let other = Outage::Fallback(LockManager::in_memory());
    let other = paying(&locks, Replay::default()).on_outage(other);
    let other = other.layer(numbered(&runs));
    send(&other, pay("")).await.is_first("payment 2");
    store.recover();
    for process in [&service, &other] {
        send(process, pay("")).await.is_replay("payment 1");
    }
    assert_eq!(runs.count(), 2);
}

#[tokio::test]
async fn a_request_that_left_only_a_cooldown_in_the_store_runs_while_the_store_is_away() {
    const SHORT: Duration = Duration::from_millis(20);
    let (locks, store) = embedded();
    let (runs, declined) = (Runs::default(), StatusCode::PAYMENT_REQUIRED);
    let layer = paying(&locks, Replay::default())
        .wait(Duration::from_millis(1))
        .cooldown_with(move |head| match head.status == declined {
            true => SHORT,
            false => Duration::ZERO,
        })
        .on_outage(Outage::Fallback(LockManager::in_memory()));
    let service = answering(&layer, move |_| {
        let mut answer = created(&format!("payment {}", runs.begin()));
        if runs.count() == 1 {
            *answer.status_mut() = declined;
        }
        answer
    });
    send(&service, pay("")).await.is_first("payment 1");
    store.fail(ErrorKind::Unavailable);
    let second = loop {
        let reply = send(&service, pay("")).await;
        if reply.kind != Some(RejectionKind::CoolingDown) {
            break reply;
        }
    };
    second.is_first("payment 2");
}

#[tokio::test]
async fn an_outage_behind_the_handler_delays_the_record_and_not_the_answer() {
    let (locks, store) = embedded();
    let fails = store.clone();
    let layer = paying(&locks, Replay::default()).release_timeout(Duration::from_millis(1));
    let service = answering(&layer, move |_| {
        fails.hang();
        created("paid")
    });
    send(&service, pay("")).await.is_first("paid");
    store.recover();
    // The keeper repeats the record until the store has it.
    let reply = loop {
        let reply = send(&service, pay("")).await;
        if reply.kind != Some(RejectionKind::InFlight)
            && reply.kind != Some(RejectionKind::Unavailable)
        {
            break reply;
        }
        tokio::task::yield_now().await;
    };
    reply.is_replay("paid");
    store.recover();
    all_released(&locks).await;
}
