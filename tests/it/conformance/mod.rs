//! One suite for every store: what a lock is, whatever it is kept in.
//!
//! A case is an async function that takes a [`Fixture`]: managers on one store, and the means to
//! take a lock away behind their backs. Each case is a test of its own for each store.

mod cancelling;
mod ending;
mod exclusion;
mod fencing;
mod fixture;
mod gaps;
mod input;
mod loss;
mod passing;
mod reentry;
mod running;
mod several;
mod storm;
mod unpolled;
mod waiting;
mod waiting_for_time;

pub(crate) use crate::steps::{kind, long};
pub(crate) use fixture::{Fixture, Watched, shared_cluster, shared_watched, short};

/// Each `theme::case` as a test, on each store.
macro_rules! on_every_store {
    ($($theme:ident { $($case:ident),* $(,)? })*) => {
        mod memory {
            $($(
                #[tokio::test]
                async fn $case() {
                    super::$theme::$case(&super::Fixture::memory()).await;
                }
            )*)*
        }

        mod redis {
            $($(
                #[tokio::test]
                async fn $case() {
                    lock_tests::needs!(redis);
                    super::$theme::$case(&super::Fixture::redis()).await;
                }
            )*)*
        }

        mod quorum {
            $($(
                #[tokio::test]
                async fn $case() {
                    super::$theme::$case(&super::Fixture::quorum()).await;
                }
            )*)*
        }

        mod redlock {
            $($(
                #[tokio::test]
                async fn $case() {
                    lock_tests::needs!(redis);
                    super::$theme::$case(&super::Fixture::redlock()).await;
                }
            )*)*
        }

        mod sentinel {
            $($(
                #[tokio::test]
                async fn $case() {
                    lock_tests::needs!(redis);
                    super::$theme::$case(&super::Fixture::sentinel()).await;
                }
            )*)*
        }

        mod cluster {
            $($(
                #[tokio::test]
                async fn $case() {
                    lock_tests::needs!(redis);
                    super::$theme::$case(&super::Fixture::cluster()).await;
                }
            )*)*
        }
    };
}

on_every_store! {
    exclusion {
        a_second_owner_is_refused_while_the_first_holds,
        trying_once_is_none_while_somebody_holds,
        busy_says_when_to_try_again,
        another_key_is_another_lock,
        after_the_release_the_key_is_free,
        a_dropped_guard_gives_the_lock_back,
        of_two_tasks_on_one_thread_one_enters,
        of_fifty_tasks_one_is_inside_at_a_time,
        two_managers_exclude_one_another,
        while_it_cools_down_the_key_is_refused_as_such_and_to_the_millisecond,
        a_handles_cooldown_counts_for_a_dropped_guard_too,
        a_requests_cooldown_does_not_count_for_a_dropped_guard,
        a_long_cooldown_is_told_exactly_while_somebody_waits_for_it,
        what_is_held_is_listed_without_asking_the_store,
    }
    fencing {
        tokens_rise_over_releases,
        tokens_rise_over_an_expiry,
        tokens_rise_over_a_deletion,
        tokens_rise_over_a_cooldown,
        tokens_rise_over_a_step_over_an_unsent_release,
        a_token_stays_the_same_while_the_lock_is_renewed,
        a_token_is_below_two_to_the_53rd,
    }
    loss {
        a_renewed_lock_outlives_its_ttl,
        without_renewing_it_is_lost_at_its_deadline_and_not_later_than_in_the_store,
        a_deleted_lock_is_noticed_at_the_next_renewal,
        an_overwritten_lock_is_noticed_at_the_next_renewal,
        a_body_is_dropped_when_its_lock_is_deleted,
        a_body_is_dropped_when_its_lock_is_taken_over,
        the_release_of_a_lost_lock_says_lost_and_leaves_the_new_owner_alone,
        a_late_release_has_no_effect_on_the_next_owner,
        a_dropped_guard_of_a_lost_lock_leaves_the_new_owner_alone,
        loss_is_for_good,
        a_lost_lock_is_not_created_again_by_a_renewal,
        a_lost_lock_is_free_for_its_own_process_at_once,
        a_released_lock_never_fires_its_loss,
    }
    waiting {
        a_waiter_gets_the_lock_when_it_is_released,
        tasks_of_one_manager_are_served_in_the_order_they_came,
        a_waiter_of_another_manager_is_told_of_the_release,
        a_waiter_of_another_manager_is_told_of_a_release_in_the_background,
        waiters_of_two_managers_all_come_through,
        a_cancelled_waiter_leaves_nothing_and_blocks_nobody,
        a_cancelled_head_of_another_manager_blocks_nobody,
        a_waiter_cancelled_at_the_moment_of_its_grant_passes_the_lock_on,
        a_thousand_waiters_come_through,
        a_thousand_cancelled_waiters_leave_nothing,
        somebody_who_does_not_wait_is_told_busy_while_others_wait,
        a_waiter_is_not_starved_by_another_manager_that_takes_it_again_at_once,
        a_waiter_is_not_starved_by_a_manager_that_drops_its_guards,
    }
    waiting_for_time {
        a_lock_whose_owner_died_is_had_when_it_has_run_out,
        no_wait_is_an_answer_at_once,
        a_wait_of_nothing_is_no_wait,
        short_waits_end_when_they_should,
        a_wait_for_a_cooldown_ends_with_it,
        a_wait_is_for_the_whole_queue_not_for_each_place,
    }
    gaps {
        in_a_gap_a_key_that_a_waiter_stands_before_is_anybodys,
        in_a_gap_the_next_task_of_the_same_process_stands_back,
    }
    unpolled {
        a_waiter_that_is_not_polled_keeps_no_newcomer_from_a_lock_that_is_given_to_it,
        a_waiter_that_is_not_polled_keeps_nobody_behind_it_waiting,
        a_lease_that_is_passed_to_a_waiter_that_is_not_polled_goes_on,
        a_lease_that_no_waiter_picks_up_goes_back_to_the_store,
        a_question_that_is_not_polled_keeps_nobody_of_its_manager_waiting,
        a_question_that_is_not_polled_is_undone_for_other_managers,
        many_waiters_that_are_not_polled_keep_nobody_waiting,
        a_waiter_that_was_not_polled_stands_in_line_again_where_it_stood,
        a_wait_that_ended_unpolled_keeps_nobody_behind_it_waiting,
        draining_takes_back_what_waiters_that_are_not_polled_have,
    }
    passing {
        each_owner_has_a_window_and_a_token_of_its_own,
        the_loss_reaches_the_owner_and_not_the_one_before_it,
        a_lease_that_was_passed_on_is_still_renewed,
        a_waiter_that_is_gone_when_it_is_given_the_lock_passes_it_on,
        the_last_waiter_that_is_gone_leaves_the_lock_free,
        a_cooldown_is_not_passed_over,
        a_lease_of_another_length_is_not_passed_on,
        while_nobody_else_waits_a_lease_stays_in_its_process,
        no_process_starves_behind_the_tasks_of_another,
        an_unfair_lock_stays_with_the_tasks_of_its_process_for_longer,
    }
    reentry {
        a_nested_body_runs_under_the_same_lease,
        bodies_nest_as_deep_as_they_are_called,
        between_two_calls_for_one_key_another_key_may_be_taken,
        two_branches_of_a_join_exclude_one_another,
        a_branch_that_does_not_wait_is_refused_while_another_is_inside,
        a_branch_waits_no_longer_than_it_says,
        a_nested_body_that_is_dropped_lets_the_next_one_in,
        a_spawned_task_is_not_inside,
        a_task_that_a_body_happens_to_poll_is_not_inside,
        a_scope_takes_a_spawned_task_inside,
        a_spawned_scope_and_its_parent_exclude_one_another,
        a_guard_opens_a_scope_by_hand,
        another_manager_is_a_stranger,
        who_refuses_to_enter_is_told_so_instead_of_waiting_for_itself,
        acquiring_never_enters_and_does_not_wait_for_itself,
        the_loss_of_the_outer_lock_is_the_inner_bodys_too,
        a_nested_limit_ends_the_nested_body_only,
        a_nested_cooldown_is_applied_when_the_outer_lock_is_released,
        a_nested_body_lengthens_a_lease_that_is_too_short_for_it,
        a_lease_that_nobody_renewed_is_renewed_while_a_nested_body_wants_it,
        a_body_that_outlives_its_owner_keeps_the_lock_to_its_end,
        once_the_lock_is_given_back_its_scope_is_nobodys,
        a_panic_in_a_nested_body_lets_the_next_one_in,
    }
    running {
        the_body_runs_under_the_lock_and_its_result_is_the_result,
        the_body_does_not_run_without_the_lock,
        the_locals_of_a_body_are_gone_before_the_release,
        the_locals_of_a_cancelled_body_are_gone_before_the_release,
        the_locals_of_a_panicking_body_are_gone_before_the_release,
        the_locals_of_a_body_that_lost_its_lock_are_gone_when_the_caller_hears_of_it,
        what_a_refused_body_holds_is_dropped,
        a_body_that_holds_too_long_is_dropped_and_then_the_lock_given_back,
        max_hold_ends_a_body_that_ignores_loss_too,
        a_guard_that_holds_too_long_is_lost_and_its_key_stays_taken,
        a_body_that_ignores_loss_runs_to_its_end,
        a_release_in_the_background_comes_too,
        a_body_that_lost_its_lock_unnoticed_keeps_its_result,
        a_cooldown_follows_the_body,
        after_an_err_a_run_cools_down_only_if_it_is_told_to,
    }
    cancelling {
        an_acquire_dropped_after_any_number_of_polls_leaves_nothing,
        a_waiting_acquire_dropped_after_any_number_of_polls_leaves_nothing,
        a_run_dropped_after_any_number_of_polls_leaves_nothing,
        a_release_dropped_after_any_number_of_polls_goes_on,
        an_acquire_cancelled_in_flight_is_not_in_its_own_way,
    }
    ending {
        a_guard_dropped_outside_a_runtime_gives_back,
        a_guard_dropped_in_a_panic_gives_back,
        a_guard_dropped_while_its_runtime_shuts_down_gives_back,
        a_guard_outlives_its_manager,
        a_drained_manager_gives_out_nothing,
        draining_waits_for_guards_and_releases,
        draining_says_what_is_left_when_time_is_up,
        draining_does_not_wait_for_those_who_only_wait,
        releases_that_race_renewals_leave_nothing,
        a_drain_after_many_races_does_not_wait_for_closed_leases,
    }
    input {
        an_empty_key_is_invalid,
        a_key_of_ten_thousand_bytes_is_invalid_and_names_the_bound,
        a_key_of_the_longest_length_works,
        a_key_that_looks_like_a_template_is_invalid_unless_exact,
        a_key_where_the_kit_keeps_its_own_is_invalid,
        any_characters_make_a_key,
        a_ttl_out_of_bounds_is_invalid_and_names_the_bound,
        the_bounds_of_the_ttl_themselves_work,
        endless_waits_and_cooldowns_saturate,
        a_max_hold_of_nothing_is_invalid,
        errors_and_managers_show_no_key,
    }
}
