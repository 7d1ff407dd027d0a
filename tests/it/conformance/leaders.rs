//! Tests candidates for a leadership.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lock_core::{ErrorKind, LeaderView, Leadership, LockManager};
use lock_tests::wait;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::{Fixture, drains, kind, long};

type Candidacy = JoinHandle<Result<(), lock_core::Error>>;

/// Starts a candidate whose body ends only when it is dropped.
fn stands(locks: &LockManager, ttl: Duration) -> (LeaderView, Candidacy) {
    let candidate = locks.leader("k").ttl(ttl);
    let view = candidate.view();
    let run = candidate.run(|lead: Leadership| async move {
        assert!(lead.is_leader(), "a body begins as leader");
        std::future::pending().await
    });
    (view, tokio::spawn(run))
}

async fn leads(view: &LeaderView) {
    wait::eventually("the candidate leads", async || view.is_leader()).await;
}

pub(super) async fn one_candidate_leads_and_resigns_when_its_body_returns(store: &Fixture) {
    let (inside, tokens) = (&AtomicUsize::new(0), &Mutex::new(Vec::new()));
    let stand = async |number: usize| {
        let locks = store.manager().await;
        let candidate = locks.leader("k").ttl(long());
        let term = candidate.run(|lead| async move {
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two leaders");
            tokens.lock().expect("no panic").push(lead.fencing_token());
            tokio::time::sleep(Duration::from_millis(20)).await;
            assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1, "two leaders");
            number
        });
        assert_eq!(term.await.expect("its output"), number);
    };
    let terms = async { tokio::join!(stand(1), stand(2), stand(3)) };
    timeout(wait::PATIENCE, terms).await.expect("each has led");
    let tokens = std::mem::take(&mut *tokens.lock().expect("no panic"));
    assert!(tokens.is_sorted_by(|one, next| one < next), "{tokens:?}");
    store.is_left_clean().await;
}

pub(super) async fn a_leader_that_has_lost_its_key_is_dropped_and_stands_again(store: &Fixture) {
    let locks = store.manager().await;
    let (begun, ended) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let candidate = locks.leader("k").ttl(store.renewable());
    let view = candidate.view();
    let run = candidate.run(|_| {
        begun.fetch_add(1, Ordering::SeqCst);
        let ended = CountsItsEnd(Arc::clone(&ended));
        async move {
            let _ended = ended;
            std::future::pending::<()>().await;
        }
    });
    let works = async {
        leads(&view).await;
        store.is_everywhere().await;
        let before = view.fencing_token();
        store.delete("k");
        wait::eventually("the body was dropped, and another one begins", async || {
            begun.load(Ordering::SeqCst) == 2
        })
        .await;
        assert_eq!(ended.load(Ordering::SeqCst), 1, "the first body is gone");
        assert!(view.fencing_token() > before);
    };
    tokio::select! {
        ended = run => panic!("the candidate has ended: {ended:?}"),
        () = works => {}
    }
    assert!(!view.is_leader(), "the future was dropped");
    assert_eq!(ended.load(Ordering::SeqCst), 2);
    store.is_left_clean().await;
}

struct CountsItsEnd(Arc<AtomicUsize>);

impl Drop for CountsItsEnd {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

pub(super) async fn a_leader_whose_manager_drains_leaves_its_key_to_the_next(store: &Fixture) {
    let (first, second) = (store.manager().await, store.manager().await);
    let (leader, led) = stands(&first, long());
    leads(&leader).await;
    let (next, waits) = stands(&second, long());
    wait::eventually("the second candidate waits", async || store.waiting() == 1).await;
    drains(&first).await;
    assert_eq!(kind(led.await.expect("no panic")), ErrorKind::Unavailable);
    assert!(!leader.is_leader());
    leads(&next).await;
    // A candidate that only waits ends in the same way.
    let (_, waiting) = stands(&store.manager().await, long());
    second.drain(wait::PATIENCE).await;
    assert_eq!(kind(waits.await.expect("no panic")), ErrorKind::Unavailable);
    waiting.abort();
    assert!(waiting.await.is_err(), "aborted");
    store.is_left_clean().await;
}

pub(super) async fn a_candidate_within_its_own_leadership_is_invalid(store: &Fixture) {
    let locks = store.manager().await;
    let nested = locks.leader("k").run(|_| async {
        let again = locks.leader("k").run(|_| async {}).await;
        assert_eq!(kind(again), ErrorKind::Invalid);
        // A lock with the same key enters.
        locks.lock("k").run(async {}).await
    });
    nested.await.expect("led").expect("entered");
    let short = locks.leader("k").ttl(Duration::from_millis(1));
    assert_eq!(kind(short.run(|_| async {}).await), ErrorKind::Invalid);
}

pub(super) async fn a_leadership_leaves_no_record_and_has_no_ticket(store: &Fixture) {
    let locks = store.manager().await;
    let candidate = locks.leader("k").ttl(long());
    let kinds = candidate.run(|lead| async move {
        let record = lead.remember("7", long());
        let ticket = lead.handle().ticket(long()).await.map(drop);
        assert!(lead.is_leader(), "it leads on");
        [kind(record), kind(ticket)]
    });
    assert_eq!(kinds.await.expect("it leads"), [ErrorKind::Invalid; 2]);
    store.is_left_clean().await;
}

pub(super) async fn a_candidate_for_a_key_with_a_record_is_refused(store: &Fixture) {
    let locks = store.manager().await;
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    guard.remember("7", long()).expect("in bounds");
    guard.release().await.expect("held");
    let led = locks.leader("k").ttl(long()).run(|_| async {});
    let led = timeout(wait::PATIENCE, led).await.expect("an answer");
    assert_eq!(kind(led), ErrorKind::Busy);
    locks.forget("k").await.expect("no fault");
    store.is_left_clean().await;
}
