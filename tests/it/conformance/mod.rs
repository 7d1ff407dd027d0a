//! Runs one suite against every store, with the properties that a lock has in each of them.
//!
//! A case is an async function that takes a [`Fixture`]: managers on one store, and the means to
//! take a lock away without them. Each case is one test for each store.

#[macro_use]
mod stores;

mod cancelling;
mod ending;
mod exclusion;
mod fencing;
mod fixture;
mod gaps;
mod in_postgres;
mod input;
mod kept;
mod kept_ends;
mod leaders;
mod lock_all;
mod lock_all_held;
mod loss;
mod one_server_a_key;
mod operator;
mod operator_frees;
mod passing;
mod permits;
mod pinging;
mod readers;
mod records;
mod reentry;
mod reentry_ends;
mod remembered;
mod replay;
mod running;
mod schedules;
mod several;
mod share_ends;
mod share_rules;
mod shares;
mod sharing_storm;
mod storm;
mod tickets;
mod unpolled;
mod waiting;
mod waiting_for_time;
mod watching;

pub(crate) use crate::steps::{drains, is_refused, kind, long, once};
pub(crate) use fixture::{Fixture, Watched, shared_cluster, shared_watched, short};

on_several_servers! {
    share_rules {
        permits_and_downgrades_are_invalid,
    }
    tickets {
        over_several_servers_a_ticket_is_invalid_and_says_why,
    }
    schedules {
        over_several_servers_a_job_is_invalid_and_says_why,
    }
}

/// Several servers reserve a free key for no waiter. Without the time of a round trip, readers that ask again and again
/// would always come before the writer that was told of it.
mod with_round_trips {
    on_store! { redlock { lock_tests::needs!(redis); }
        readers {
            a_writer_enters_among_readers_that_never_stop,
        }
    }
}

on_every_store! {
    readers {
        readers_share_a_key_and_a_writer_waits_for_all,
        a_writer_excludes_readers,
        a_reader_behind_a_waiting_writer_waits_too,
        the_end_of_a_writer_lets_in_all_readers_up_to_the_next_writer,
        a_writer_that_gives_up_lets_in_the_readers_behind_it,
        a_readers_token_is_between_those_of_the_writers_around_it,
        readers_of_many_tasks_enter_at_once,
    }
    share_ends {
        a_reader_that_is_not_renewed_ends_alone,
        shares_are_renewed_beside_one_another,
        all_shares_of_a_key_that_is_deleted_are_lost,
        a_key_that_is_overwritten_is_lost_and_left_alone,
        a_waiting_reader_that_is_cancelled_leaves_nothing_and_blocks_no_other,
        a_reader_that_was_given_back_is_not_in_the_way_of_its_process,
        a_wait_for_a_reader_ends_in_time,
    }
    exclusion {
        trying_once_is_none_while_the_lock_is_held,
        busy_says_when_to_try_again,
        another_key_is_another_lock,
        after_the_release_the_key_is_free,
        a_dropped_guard_releases_the_lock,
        only_one_of_two_tasks_on_one_thread_enters,
        only_one_of_fifty_tasks_is_inside_at_a_time,
        two_managers_exclude_each_other,
        a_key_that_cools_down_is_refused_as_cooling_down_and_to_the_millisecond,
        the_cooldown_of_a_handle_counts_for_a_dropped_guard_too,
        the_cooldown_of_a_request_does_not_count_for_a_dropped_guard,
        a_long_cooldown_has_an_exact_retry_after_while_a_waiter_waits_for_it,
        held_locks_are_listed_without_asking_the_store,
    }
    replay {
        a_duplicate_gets_the_answer_of_another_process_until_it_is_forgotten,
        waiting_duplicates_of_two_processes_get_the_answer_of_one_run,
        duplicates_that_wait_are_refused_in_all_processes_when_a_cooldown_begins,
        a_failure_is_not_repeated_and_a_secret_answer_is_done,
    }
    remembered {
        a_result_is_returned_in_every_process_until_it_is_forgotten,
        calls_that_wait_in_two_processes_get_the_result_of_one_run,
        a_run_that_fails_lets_the_next_process_run,
    }
    fencing {
        tokens_rise_over_releases,
        tokens_rise_over_an_expiry,
        tokens_rise_over_a_deletion,
        tokens_rise_over_a_cooldown,
        tokens_rise_when_an_acquire_supersedes_an_unsent_release,
        a_token_is_below_two_to_the_53rd,
    }
    loss {
        a_renewed_lock_outlives_its_ttl,
        a_lock_without_renewal_is_lost_at_its_deadline_and_not_later_than_in_the_store,
        a_deleted_lock_is_noticed_at_the_next_renewal,
        an_overwritten_lock_is_noticed_at_the_next_renewal,
        a_body_is_dropped_when_its_lock_is_deleted,
        a_body_is_dropped_when_its_lock_is_taken_over,
        the_release_of_a_lost_lock_says_lost_and_leaves_the_new_owner_alone,
        a_late_release_has_no_effect_on_the_next_owner,
        a_dropped_guard_of_a_lost_lock_leaves_the_new_owner_alone,
        a_lost_lock_stays_lost,
        a_lost_lock_is_not_created_again_by_a_renewal,
        a_lost_lock_is_free_for_its_own_process_at_once,
        a_released_lock_never_fires_its_loss,
    }
    waiting {
        tasks_of_one_manager_are_served_in_the_order_of_their_arrival,
        a_waiter_of_another_manager_is_told_of_the_release,
        a_waiter_of_another_manager_is_told_of_a_release_in_the_background,
        all_waiters_of_two_managers_get_the_lock,
        a_cancelled_waiter_leaves_nothing_and_blocks_no_other,
        a_cancelled_first_waiter_of_another_manager_blocks_no_other,
        a_waiter_cancelled_at_the_moment_of_its_grant_passes_the_lock_on,
        a_thousand_waiters_get_the_lock,
        a_thousand_cancelled_waiters_leave_nothing,
        a_caller_that_does_not_wait_gets_busy_while_others_wait,
        a_waiter_is_not_starved_by_another_manager_that_takes_the_lock_again_at_once,
        a_waiter_is_not_starved_by_a_manager_that_drops_its_guards,
    }
    waiting_for_time {
        a_lock_whose_owner_died_can_be_taken_when_it_has_run_out,
        a_wait_of_zero_is_no_wait,
        short_waits_end_when_they_should,
        a_wait_for_a_cooldown_ends_with_it,
        a_wait_covers_the_whole_queue_and_not_each_place,
    }
    unpolled {
        a_waiter_that_is_not_polled_and_is_given_the_lock_does_not_block_a_newcomer,
        a_waiter_that_is_not_polled_does_not_block_the_waiters_behind_it,
        a_lease_that_is_passed_to_a_waiter_that_is_not_polled_is_passed_on,
        a_lease_that_no_waiter_picks_up_goes_back_to_the_store,
        a_release_that_is_not_polled_does_not_block_the_waiters_of_its_process,
        a_request_that_is_not_polled_does_not_block_callers_of_its_manager,
        a_request_that_is_not_polled_is_undone_for_other_managers,
        many_waiters_that_are_not_polled_block_no_caller,
        a_waiter_that_was_not_polled_keeps_its_place_in_the_queue,
        a_wait_that_ended_unpolled_does_not_block_the_waiters_behind_it,
        draining_takes_locks_back_from_waiters_that_are_not_polled,
    }
    passing {
        each_owner_has_a_window_and_a_token_of_its_own,
        the_loss_reaches_the_owner_and_not_its_predecessor,
        a_lease_that_was_passed_on_is_still_renewed,
        a_waiter_that_is_aborted_when_it_is_given_the_lock_passes_it_on,
        the_last_waiter_that_is_aborted_leaves_the_lock_free,
        a_lease_with_a_cooldown_is_not_passed_on,
        a_lease_of_another_length_is_not_passed_on,
        no_process_starves_behind_the_tasks_of_another,
    }
    operator {
        a_holder_is_seen_with_its_process_its_label_its_time_and_its_fencing_token,
        a_key_without_a_holder_says_why_it_is_taken,
        the_processes_that_wait_are_counted_and_named,
        an_anonymous_manager_is_seen_without_a_name,
        a_process_that_has_given_up_its_lock_says_so,
        a_process_that_has_crashed_is_gone,
        a_list_names_the_locks_of_a_pattern_and_no_others,
        a_list_names_no_lock_twice_and_comes_to_its_end,
    }
    operator_frees {
        an_order_for_any_key_of_several_drops_the_body_before_the_next_owner_enters,
        a_lock_that_is_freed_is_lost_at_once_and_the_next_token_is_above,
        waiters_of_both_processes_get_a_freed_lock,
        an_order_frees_the_holder_that_was_seen_and_no_successor,
        an_order_for_a_lock_that_has_ended_changes_nothing,
        the_late_commands_of_a_holder_leave_the_next_owner_alone,
        the_key_of_a_process_that_has_crashed_is_free_at_once,
        an_order_without_a_name_or_a_reason_is_invalid_and_frees_nothing,
        one_of_several_readers_is_freed_alone,
    }
    pinging {
        a_store_that_grants_locks_answers_a_ping,
        a_drained_manager_answers_no_ping,
    }
    records {
        who_comes_after_a_record_gets_it_with_its_exact_end,
        each_kind_of_end_leaves_the_record,
        a_record_ends_all_waits_and_no_waiter_gets_the_lock,
        no_task_steps_over_a_lease_whose_record_is_under_way,
        a_lock_that_was_lost_by_its_owners_clock_leaves_its_record,
        a_lock_that_another_owner_has_leaves_no_record,
        a_record_that_is_over_or_was_forgotten_leaves_a_free_key,
        a_forgotten_cooldown_gives_the_key_to_its_waiter,
        the_last_record_counts_and_one_that_was_dropped_does_not,
        a_record_out_of_bounds_is_invalid_and_the_largest_is_kept,
    }
    leaders {
        a_leadership_leaves_no_record_and_has_no_ticket,
        a_candidate_for_a_key_with_a_record_is_refused,
        one_candidate_leads_and_resigns_when_its_body_returns,
        a_leader_that_has_lost_its_key_is_dropped_and_stands_again,
        a_leader_whose_manager_drains_leaves_its_key_to_the_next,
        a_candidate_within_its_own_leadership_is_invalid,
    }
    reentry {
        a_nested_body_runs_under_the_same_lease,
        bodies_nest_as_deep_as_they_are_called,
        between_two_calls_for_one_key_another_key_may_be_taken,
        two_branches_of_a_join_exclude_each_other,
        a_branch_that_does_not_wait_is_refused_while_another_is_inside,
        a_branch_waits_no_longer_than_its_wait,
        a_nested_body_that_is_dropped_lets_the_next_one_in,
        a_spawned_task_is_not_inside,
        a_task_that_a_body_happens_to_poll_is_not_inside,
        a_scope_takes_a_spawned_task_inside,
        a_spawned_scope_and_its_parent_exclude_each_other,
        a_guard_opens_a_scope_by_hand,
        another_manager_does_not_enter,
        a_call_that_must_not_enter_is_refused_instead_of_waiting_for_itself,
        acquiring_never_enters_and_does_not_wait_for_itself,
    }
    reentry_ends {
        the_loss_of_the_outer_lock_ends_the_inner_body_too,
        a_nested_limit_ends_the_nested_body_only,
        a_nested_cooldown_is_applied_when_the_outer_lock_is_released,
        a_nested_body_lengthens_a_lease_that_is_too_short_for_it,
        a_lease_without_renewal_is_renewed_while_a_nested_body_needs_it,
        a_body_that_outlives_its_owner_keeps_the_lock_to_its_end,
        once_the_lock_is_released_its_scope_has_no_lock,
        a_panic_in_a_nested_body_lets_the_next_one_in,
    }
    running {
        the_body_runs_under_the_lock_and_its_result_is_the_result,
        the_body_does_not_run_without_the_lock,
        the_locals_of_a_body_are_dropped_before_the_release,
        the_locals_of_a_cancelled_body_are_dropped_before_the_release,
        the_locals_of_a_panicking_body_are_dropped_before_the_release,
        the_locals_of_a_body_that_lost_its_lock_are_dropped_before_the_caller_gets_the_loss,
        the_captures_of_a_refused_body_are_dropped,
        a_body_that_holds_too_long_is_dropped_before_the_lock_is_released,
        max_hold_ends_a_body_that_ignores_loss_too,
        a_guard_that_holds_too_long_is_lost_and_its_key_stays_taken,
        a_body_that_ignores_loss_runs_to_its_end,
        a_body_whose_lock_was_lost_before_its_first_poll_does_not_begin,
        a_release_in_the_background_arrives_too,
        a_body_whose_loss_was_not_noticed_keeps_its_result,
        a_cooldown_follows_the_body,
        after_an_err_a_run_cools_down_only_if_its_condition_accepts_it,
    }
    cancelling {
        an_acquire_dropped_after_any_number_of_polls_leaves_nothing,
        a_waiting_acquire_dropped_after_any_number_of_polls_leaves_nothing,
        a_run_dropped_after_any_number_of_polls_leaves_nothing,
        a_release_dropped_after_any_number_of_polls_goes_on,
        a_release_dropped_after_any_number_of_polls_leaves_its_record,
        an_acquire_cancelled_in_flight_does_not_block_the_next_one_of_its_manager,
    }
    ending {
        a_guard_dropped_outside_a_runtime_is_released,
        a_guard_dropped_in_a_panic_is_released,
        a_guard_dropped_while_its_runtime_shuts_down_is_released,
        a_guard_outlives_its_manager,
        a_drained_manager_grants_no_lock,
        draining_waits_for_guards_and_releases,
        draining_says_what_is_left_when_time_is_up,
        draining_does_not_wait_for_waiters,
        releases_that_race_renewals_leave_nothing,
        a_drain_after_many_races_does_not_wait_for_closed_leases,
    }
    kept {
        a_kept_lock_is_renewed_and_held_until_it_is_dropped,
        a_release_takes_place_when_the_last_kept_lock_is_dropped,
        a_lock_that_is_not_kept_any_more_ends_with_its_guard,
        a_body_that_is_dropped_leaves_the_lock_to_its_kept_work,
        a_waiter_of_the_same_process_enters_after_the_kept_work,
        a_waiter_of_another_process_enters_after_the_kept_work,
        draining_waits_for_kept_work,
        locks_of_each_kind_are_kept,
        a_nested_call_keeps_others_out_of_the_outer_lock,
    }
    kept_ends {
        a_cooldown_begins_when_the_kept_work_has_ended,
        a_record_is_left_when_the_kept_work_has_ended,
        kept_work_that_has_lost_its_lock_leaves_the_next_owner_alone,
        the_limit_of_a_body_releases_no_lock_under_its_kept_work,
        a_release_of_a_kept_lock_that_was_lost_says_so,
        an_operator_frees_a_kept_lock,
        a_kept_lock_has_no_ticket,
        a_lock_that_has_ended_cannot_be_kept,
    }
    lock_all {
        several_keys_are_not_refused_by_a_lock_of_their_process_that_was_dropped,
        all_keys_are_taken_or_none,
        one_key_of_several_times_is_an_ordinary_lock,
        no_key_and_too_many_are_invalid,
        keys_in_any_order_never_deadlock,
        a_waiter_for_several_keys_holds_none_while_it_waits_for_the_first,
        a_waiter_that_is_refused_again_acquires_the_keys_in_order,
        a_waiter_holds_no_higher_key_while_it_waits_for_a_lower_one,
        a_waiter_that_gives_up_leaves_no_key,
        an_acquire_of_several_keys_dropped_after_any_number_of_polls_leaves_nothing,
        a_dropped_guard_of_several_keys_releases_all,
    }
    lock_all_held {
        the_token_of_several_keys_is_above_all_earlier_ones_and_below_all_later_ones,
        the_loss_of_one_key_is_the_loss_of_all,
        a_body_under_several_keys_is_dropped_with_the_first_that_is_lost,
        several_keys_are_renewed_and_outlive_their_ttl,
        without_renewal_several_keys_are_lost_at_their_deadline,
        several_keys_held_too_long_are_lost_together,
        each_of_several_keys_cools_down,
        a_nested_call_enters_the_lock_of_several_keys,
        waiting_for_ever_for_several_keys_inside_another_lock_is_invalid,
        several_keys_leave_no_record,
        a_body_that_outlives_its_owner_keeps_all_keys,
        tasks_of_one_process_pass_keys_of_several_on,
    }
    input {
        an_empty_key_is_invalid,
        a_key_of_ten_thousand_bytes_is_invalid_and_names_the_bound,
        a_key_of_the_longest_length_works,
        a_key_that_looks_like_a_template_is_invalid_unless_exact,
        a_key_in_the_range_of_the_kits_own_keys_is_invalid,
        a_key_may_have_any_characters,
        a_ttl_out_of_bounds_is_invalid_and_names_the_bound,
        the_bounds_of_the_ttl_themselves_work,
        endless_waits_and_cooldowns_saturate,
        a_max_hold_of_zero_is_invalid,
        errors_and_managers_show_no_key,
    }
}

// PostgreSQL has no clients of other libraries, so `Interop::On` is invalid there, and no key has a stranger's value. It
// tells no owner that its row was deleted or overwritten: the owner notices at its next renewal.
on_stores_but_postgres! {
    gaps {
        in_a_gap_any_client_can_take_a_key_that_a_waiter_waits_for,
        in_a_gap_the_next_task_of_the_same_process_yields,
    }
    watching {
        an_owner_is_told_of_a_deleted_key,
        an_owner_is_told_of_an_overwritten_key,
        a_lock_without_renewals_and_a_share_cannot_be_watched,
    }
    operator {
        a_client_of_another_library_is_seen,
    }
    operator_frees {
        the_key_of_another_librarys_client_is_free_at_once,
    }
}
