//! Tests a failover that loses the swap of a ticket.

use lock_core::{Error, ErrorKind, LockGuard, LockManager, Ticket};
use lock_tests::needs;

use super::{long, manager, taken};
use crate::conformance::Watched;

/// Uses the ticket as soon as a server answers.
async fn used(locks: &LockManager, ticket: &Ticket) -> Result<LockGuard, Error> {
    loop {
        match locks.resume(ticket.clone()).await {
            Err(error) if error.kind() == ErrorKind::Unavailable => {}
            answer => return answer,
        }
    }
}

#[tokio::test]
async fn a_ticket_that_no_replica_had_is_lost() {
    needs!(redis);
    let watched = Watched::start();
    let locks = manager(&watched.sentinels.url()).await;
    let worker = manager(&watched.sentinels.url()).await;
    let guard = taken(&locks, "k", long()).await;
    watched.set.caught_up();
    watched.cut_replicas_off();
    let ticket = guard.ticket(long()).await.expect("held");
    watched.master_dies().await;
    // The new master has the token of the first owner, whose lease has ended.
    let error = used(&worker, &ticket).await.expect_err("the swap was lost");
    assert_eq!(error.kind(), ErrorKind::Lost);
}

#[tokio::test]
async fn a_ticket_whose_use_no_replica_had_works_once_more_with_the_same_fencing_token_and_the_first_owner_is_told()
 {
    needs!(redis);
    let watched = Watched::start();
    let locks = manager(&watched.sentinels.url()).await;
    let worker = manager(&watched.sentinels.url()).await;
    let guard = taken(&locks, "k", long()).await;
    let ticket = guard.ticket(long()).await.expect("held");
    watched.set.caught_up();
    watched.cut_replicas_off();
    let first = worker.resume(ticket.clone()).await.expect("unused");
    watched.master_dies().await;
    let second = used(&locks, &ticket).await.expect("the use was lost");
    assert_eq!(second.fencing_token(), first.fencing_token());
    // Its next renewal tells it.
    first.lost().await;
    assert!(second.is_valid());
    assert_eq!(
        first.release().await.expect_err("lost").kind(),
        ErrorKind::Lost
    );
    assert!(second.is_valid());
    second.release().await.expect("held");
}
