//! The search finds what is wrong with other designs, each in a small world that shows it.

use super::design::{Arbiter::*, Change::*, Fault::*, Limits};
use super::world::Wrong;
use super::worlds::search;

macro_rules! found {
    ($($name:ident: $arbiter:ident [$($change:ident)*] [$($fault:ident)*] $wrong:ident;)+) => {$(
        #[test]
        fn $name() {
            let limits = Limits {
                arbiter: $arbiter,
                changes: &[$($change),*],
                faults: &[$($fault),*],
                requests: &[&[0]],
            };
            assert_eq!(search(stringify!($name), &limits), Some(Wrong::$wrong));
        }
    )+};
}

found! {
    a_record_in_redis_by_the_release: RedisAtRelease [NoPeek] [Kill] TwoEffects;
    a_record_in_redis_before_the_commit: RedisBeforeCommit [NoPeek] [LockLoss] AnswerWithoutEffect;
    a_record_in_a_second_transaction: SecondTransaction [] [Kill] TwoEffects;
    a_record_without_a_unique_index: NoUniqueIndex [] [Kill] TwoEffects;
    an_insert_whose_rows_are_ignored: InsertOrNothing [] [Kill] TwoEffects;
    a_started_row_that_any_run_completes: Started [NoPeek] [LockLoss] TwoEffects;
    an_answer_before_the_commit: Claim [AnswerBeforeCommit] [] AnswerWithoutEffect;
    an_unknown_commit_that_counts_as_success: Claim [UnknownIsSuccess] [Break] AnswerWithoutEffect;
    an_unknown_commit_that_runs_again: Claim [UnknownRunsAgain] [Break] TwoEffects;
    an_unknown_commit_that_is_read: Claim [UnknownIsRead] [Break] EffectOfAFailure;
    an_insert_behind_the_commit_of_a_handler: InsertAtEnd [] [HandlerCommits Kill] TwoEffects;
    an_insert_behind_an_unseen_rollback: InsertAtEnd [] [RollsBackUnseen] AnswerWithoutEffect;

    a_claim_whose_rows_are_ignored: Claim [ClaimIgnoresRows] [LockLoss HandlerCommits] TwoEffects;
    rows_that_are_ignored: Claim [ClaimIgnoresRows CompleteIgnoresRows] [LockLoss] TwoEffects;
    a_claim_that_is_not_completed: Claim [CompleteIgnoresRows] [RollsBackUnseen] AnswerWithoutEffect;
    a_takeover_of_a_live_record: Claim [TakesOverLiveRecord] [LockLoss] TwoEffects;
    a_sweep_by_names: Claim [Sweeps SweepsByName] [Expiry] TwoEffects;
    a_failover_between_effect_and_record: SecondTransaction [] [Failover] AnswerWithoutEffect;
    a_record_in_redis_that_outlives_a_failover: RedisAtRelease [NoPeek] [Failover] AnswerWithoutEffect;
}
