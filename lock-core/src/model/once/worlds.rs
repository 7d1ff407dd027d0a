//! The decided design and its variants, which hold.

use super::design::{Arbiter::*, Change::*, Fault::*, Limits};
use super::search::Search;
use super::world::Wrong;
use crate::model::is_large;

/// Searches a world, and returns what is wrong with it.
pub(super) fn search(name: &str, limits: &Limits) -> Option<Wrong> {
    let mut search = Search::default();
    let found = search.run(limits).err();
    let states = search.states.len();
    println!("{name}: {states} states, {} steps", search.steps);
    found.map(|(wrong, path)| {
        println!("{wrong:?} after {} steps: {path:?}", path.len());
        wrong
    })
}

/// A line names the arbiter, the changes, the faults, and the faults that a large search adds.
macro_rules! worlds {
    ($($name:ident: $arbiter:ident $changes:tt [$($fault:ident)*] + [$($more:ident)*] $requests:tt $found:expr;)+) => {$(
        #[test]
        fn $name() {
            let limits = Limits {
                arbiter: $arbiter,
                changes: &$changes,
                faults: match is_large() {
                    true => &[$($fault,)* $($more),*],
                    false => &[$($fault),*],
                },
                requests: &$requests,
            };
            assert_eq!(search(stringify!($name), &limits), $found);
        }
    )+};
}

worlds! {
    the_decided_design: Claim [] [Kill LockLoss Break HandlerFails Expiry]
        + [Kill LockLoss Break Expiry] [&[0]] None;
    locks_of_the_process_only: Claim [NoCommonLock] [Kill Break HandlerFails Expiry]
        + [Kill Break HandlerFails Expiry] [&[0]] None;
    a_claim_without_a_peek: Claim [NoPeek] [Kill LockLoss Break HandlerFails Expiry]
        + [Kill LockLoss] [&[0]] None;
    a_caller_that_commits_after_the_release: Claim [ReleaseBeforeCommit]
        [Kill LockLoss Break HandlerFails Expiry] + [Kill LockLoss] [&[0]] None;
    a_database_that_rolls_back_unseen: Claim [] [Kill LockLoss Break RollsBackUnseen Expiry]
        + [Kill HandlerFails RollsBackUnseen] [&[0]] None;
    // Each of two checks is enough where the transaction ends by its own COMMIT.
    a_claim_that_ignores_its_rows: Claim [ClaimIgnoresRows] [LockLoss Break]
        + [Kill HandlerFails] [&[0]] None;
    an_answer_that_ignores_its_rows: Claim [CompleteIgnoresRows] [Kill LockLoss Break]
        + [HandlerFails Expiry] [&[0]] None;
    an_insert_at_the_end: InsertAtEnd [] [Kill LockLoss Break] + [HandlerFails Expiry] [&[0]] None;

    // The search looks for silence last, so the effect is done once. A kill in front of the record loses the answer.
    a_handler_that_commits: Claim [] [Kill LockLoss Break HandlerCommits]
        + [HandlerFails HandlerCommits Expiry] [&[0]] Some(Wrong::NeverAnswered);

    two_claims_in_one_transaction: Claim [NoCommonLock, NoPeek] [Kill] + [Break Expiry]
        [&[0, 1], &[1, 0]] None;
    two_claims_beside_one: Claim [NoCommonLock, NoPeek] [Break] + [Kill Expiry]
        [&[0, 1], &[1]] None;
    a_sweep_beside_a_takeover: Claim [NoCommonLock, Sweeps] [Kill Break HandlerFails Expiry]
        + [Kill Expiry Failover] [&[0]] None;
    a_forgotten_record: Claim [] [Kill LockLoss Break Forget]
        + [HandlerFails Expiry Forget] [&[0]] None;
    a_failover_that_drops_the_last_commit: Claim [] [Kill LockLoss Break Failover]
        + [HandlerFails Expiry Failover] [&[0]] None;
}
