//! Tests lock-tower's layer with `in_database` on real databases.
//!
//! Each case runs on SQLite. Those in which the database does more than keep a row run on PostgreSQL, too. The locks are in the
//! memory of each process, so that the database alone decides between two of them.

mod bodies;
mod commits;
mod disconnects;
mod errors;
mod log;
#[cfg(feature = "metrics")]
mod metrics;
mod misused;
mod races;
mod records;
mod settings;
mod stage;
pub(super) mod staged;
mod unknown;
mod unlocked;

/// Makes each case a test on a database.
macro_rules! layer_tests {
    ($fixture:ty, $needs:tt, $($module:ident { $($case:ident,)* })*) => {
        $($(
            #[tokio::test]
            async fn $case() {
                layer_tests!(needs $needs);
                super::$module::$case::<$fixture>().await;
            }
        )*)*
    };
    (needs []) => {};
    (needs [$needs:ident]) => { lock_tests::needs!($needs); };
}

mod on_sqlite {
    layer_tests! { crate::once::sqlite::Fresh, [],
        bodies {
            a_slow_body_holds_no_connection,
            a_duplicate_whose_body_arrives_slowly_keeps_no_other_one_out,
            a_duplicate_whose_client_leaves_does_not_hold_until_its_ttl,
            a_replay_that_is_sent_slowly_keeps_no_other_one_out,
            a_body_of_unknown_length_is_done,
            a_body_that_fails_rolls_back,
            too_large_is_done_and_committed,
            a_grpc_call_that_fails_in_its_trailers_rolls_back,
            a_grpc_call_that_fails_in_its_trailers_is_remembered_if_the_handler_says_so,
            a_grpc_call_whose_body_fails_stays_done,
            a_head_request_is_committed_and_not_recorded,
        }
        commits {
            a_success_is_committed_and_repeated,
            the_layer_commits_before_the_first_byte,
            begin_twice_continues,
            a_begin_that_was_dropped_is_begun_again,
            a_handler_without_begin_is_recorded,
            a_function_claims_its_own_operation_in_the_handler,
            done_is_committed_without_its_answer,
            nothing_remembered_is_committed_and_runs_again,
            a_ticket_records_the_202,
            a_service_without_axum_has_its_transaction,
        }
        disconnects {
            a_disconnect_commits,
            a_disconnect_with_release_rolls_back,
            a_panic_rolls_back,
        }
        errors {
            an_error_rolls_back,
            a_timeout_inside_rolls_back,
            a_remembered_error_is_recorded_alone,
            keep_commits_an_error,
            a_service_that_fails_rolls_back,
            a_failed_service_that_is_done_does_not_run_again,
        }
        misused {
            a_transaction_that_left_the_handler_is_500,
            a_handler_that_commits_by_itself_has_one_effect_and_its_answer_is_kept,
            a_handler_may_answer_an_error_while_its_transaction_is_lent,
            a_second_guard_beside_the_first_is_refused,
            a_handle_that_outlives_its_request_gets_no_transaction,
            nested_layers_are_refused,
            another_database_type_is_500,
            a_missing_table_is_500,
            an_unclosed_claim_of_a_function_is_500,
        }
        races {
            a_handler_that_swallows_the_refusal_gets_the_replay,
            a_handler_that_has_not_read_the_body_lets_its_client_retry,
            another_request_with_the_key_is_422_at_the_peek_and_at_the_claim,
            an_error_that_another_run_has_made_obsolete_is_replaced,
            a_claim_without_begin_finds_the_record_of_another_run,
        }
        records {
            a_sealed_record_opens,
            an_unreadable_record_is_500_and_never_runs,
            an_expired_record_runs_again,
            a_cooldown_hides_no_record,
            a_record_answers_before_the_handler_is_asked,
        }
        settings {
            shadow_is_invalid,
            a_life_is_between_a_minute_and_ten_years,
            several_keys_are_one_operation,
        }
        unknown {
            a_commit_that_was_not_sent_is_503_and_runs_again,
            a_commit_whose_answer_is_lost_is_answered,
            a_database_that_is_away_leaves_the_outcome_unknown,
            an_unknown_commit_without_a_record_or_a_key_stays_unknown,
            an_error_that_is_recorded_alone_is_resolved_too,
            a_database_that_is_away_before_the_commit_is_503,
        }
        unlocked {
            a_lost_lock_commits_all_the_same,
            a_lock_that_is_lost_before_begin_is_503,
            an_outage_of_redis_passes_once,
            a_request_without_a_key_has_a_plain_transaction,
            a_released_lock_leaves_the_claim,
        }
    }
}

mod on_postgres {
    layer_tests! { crate::once::postgres::Fresh, [postgres],
        commits {
            a_success_is_committed_and_repeated,
            a_begin_that_was_dropped_is_begun_again,
        }
        disconnects {
            a_disconnect_commits,
            a_disconnect_with_release_rolls_back,
            a_panic_rolls_back,
        }
        errors {
            a_remembered_error_is_recorded_alone,
        }
        misused {
            a_transaction_that_left_the_handler_is_500,
            a_handler_that_commits_by_itself_has_one_effect_and_its_answer_is_kept,
            a_missing_table_is_500,
        }
        races {
            a_handler_that_swallows_the_refusal_gets_the_replay,
            another_request_with_the_key_is_422_at_the_peek_and_at_the_claim,
        }
        unknown {
            a_commit_that_was_not_sent_is_503_and_runs_again,
            a_commit_whose_answer_is_lost_is_answered,
            a_database_that_is_away_leaves_the_outcome_unknown,
        }
        unlocked {
            a_lost_lock_commits_all_the_same,
        }
    }
}

mod alone;
