//! Tests an operator's order whose holder was seen before the master changed.

use lock_core::operator::{Forced, Holder, HolderProcess, Inspection, Operator};
use lock_core::{Error, ErrorKind, LockGuard, LockManager};
use lock_tests::{needs, wait};
use tokio::time::timeout;

use super::{kind, long, manager, taken};
use crate::conformance::Watched;

const LOCK: &str = "lockkit:k";
const MARK: &str = "lockkit:!f";

async fn operator(url: &str) -> Operator {
    manager(url).await.operator("ops@example")
}

/// Returns what the operator sees, as soon as a server answers.
async fn seen(operator: &Operator) -> Inspection {
    loop {
        match operator.inspect("k").await {
            Err(error) if error.kind() == ErrorKind::Unavailable => {}
            seen => return seen.expect("the server answers"),
        }
    }
}

/// Returns the only holder, once its process has given this answer.
async fn holder(operator: &Operator, process: HolderProcess) -> Holder {
    let mut found = None;
    wait::eventually("the process of the holder answers", async || {
        let seen = seen(operator).await;
        let [holder] = seen.holders() else {
            panic!("{seen:?}");
        };
        found = Some(holder.clone());
        holder.process() == process
    })
    .await;
    found.expect("it answered")
}

async fn forced(operator: &Operator, holder: &Holder) -> Result<Forced, Error> {
    operator.force(holder).because("it hangs").await
}

/// Takes the lock as soon as a server grants it.
async fn next(locks: &LockManager) -> LockGuard {
    loop {
        let request = locks.lock("k").ttl(long()).wait(long());
        match request.acquire().await {
            Err(error) if error.kind() == ErrorKind::Unavailable => {}
            next => return next.expect("free"),
        }
    }
}

fn mark(watched: &Watched) -> u64 {
    let mark = watched.master().get(MARK);
    mark.map_or(0, |mark| mark.parse().expect("a number"))
}

#[tokio::test]
async fn an_order_frees_the_holder_that_was_seen_before_the_failover() {
    needs!(redis);
    let watched = Watched::start();
    let url = watched.sentinels.url();
    let (locks, operator) = (manager(&url).await, operator(&url).await);
    let guard = taken(&locks, "k", long()).await;
    let before = holder(&operator, HolderProcess::Holds).await;
    watched.set.caught_up();
    watched.master_dies().await;
    // The holder has asked for nothing since, and hears the question at the new master.
    let now = holder(&operator, HolderProcess::Holds).await;
    assert_eq!(now.id(), before.id());
    let answer = forced(&operator, &before).await.expect("an answer");
    assert_eq!(answer, Forced::Told);
    let lost = timeout(wait::PATIENCE / 2, guard.lost()).await;
    lost.expect("told, before the first renewal");
    assert!(mark(&watched) > u64::from(guard.fencing_token()));
    let next = next(&manager(&url).await).await;
    assert!(next.fencing_token() > guard.fencing_token());
    assert_eq!(kind(guard.release().await), ErrorKind::Lost);
    assert!(next.is_valid());
    next.release().await.expect("held");
}

#[tokio::test]
async fn an_order_for_a_holder_that_the_new_master_does_not_know_leaves_the_next_owner_alone() {
    needs!(redis);
    let watched = Watched::start();
    let url = watched.sentinels.url();
    let (locks, operator) = (manager(&url).await, operator(&url).await);
    watched.cut_replicas_off();
    let guard = taken(&locks, "k", long()).await;
    let before = holder(&operator, HolderProcess::Holds).await;
    watched.master_dies().await;
    let next = next(&manager(&url).await).await;
    // The operator's manager has met the new master by now, so its order is sent once.
    let now = holder(&operator, HolderProcess::Holds).await;
    assert_ne!(now.id(), before.id());
    let mark_before = mark(&watched);
    let value = watched.master().get(LOCK);
    let answer = forced(&operator, &before).await.expect("an answer");
    assert_eq!(answer, Forced::Changed);
    assert_eq!(mark(&watched), mark_before);
    assert_eq!(watched.master().get(LOCK), value);
    // A message of the order would arrive before this answer.
    assert_eq!(seen(&operator).await.holders()[0].id(), now.id());
    assert!(next.is_valid());
    next.release().await.expect("held");
    drop(guard);
}

#[tokio::test]
async fn an_order_that_no_replica_had_is_lost_in_the_failover_and_can_be_given_again() {
    needs!(redis);
    let watched = Watched::start();
    let url = format!("{}&replica_acks=1", watched.sentinels.url());
    let (locks, operator) = (manager(&url).await, operator(&url).await);
    let guard = next(&locks).await;
    let before = holder(&operator, HolderProcess::Holds).await;
    watched.set.caught_up();
    watched.cut_replicas_off();
    let answer = forced(&operator, &before).await.expect("an answer");
    assert_eq!(answer, Forced::Told, "an order waits for no replica");
    let lost = timeout(wait::PATIENCE / 2, guard.lost()).await;
    lost.expect("told, before the first renewal");
    // No other owner gets the key before a replica has the order too.
    let other = manager(&url).await;
    let request = other
        .lock("k")
        .ttl(long())
        .wait(std::time::Duration::from_secs(2));
    assert_eq!(kind(request.acquire().await), ErrorKind::Unavailable);
    watched.master_dies().await;
    // The key is the holder's again, and its process says that it has ended.
    let again = holder(&operator, HolderProcess::Ended).await;
    assert_eq!(again.id(), before.id());
    let answer = forced(&operator, &again).await.expect("an answer");
    assert_eq!(answer, Forced::Told);
    let next = next(&other).await;
    assert!(next.fencing_token() > guard.fencing_token());
    assert_eq!(kind(guard.release().await), ErrorKind::Lost);
    assert!(next.is_valid());
    next.release().await.expect("held");
}
