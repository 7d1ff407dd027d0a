//! Lists the cases that need one server for each key: permits, downgrades, tickets, jobs, and the hand-over by the store.

on_stores_with_one_server_a_key! {
    operator_frees {
        a_lock_that_was_resumed_beside_a_waiter_of_its_process_is_seen_and_freed,
        a_ticket_on_its_way_is_a_holder_that_has_ended_and_worth_nothing_once_it_is_freed,
        a_freed_permit_is_not_given_out_again_before_its_grace_is_over,
    }
    tickets {
        a_ticket_passes_the_lock_on_with_its_fencing_token,
        the_next_owner_is_renewed_and_may_be_the_same_process,
        of_eight_callers_with_one_ticket_one_gets_the_lock,
        a_ticket_that_is_not_used_in_time_leaves_a_free_key,
        waiters_get_the_lock_from_the_owner_that_used_the_ticket,
        a_lock_that_is_not_held_has_no_ticket,
        a_call_that_has_entered_the_lock_forbids_a_ticket,
        a_share_and_a_lock_of_several_keys_have_no_ticket,
        a_ticket_and_its_use_that_are_dropped_on_the_way_are_undone,
        a_manager_that_drains_uses_no_ticket_and_makes_tickets,
        the_settings_of_the_first_owner_do_not_travel_with_its_ticket,
    }
    schedules {
        a_tick_leaves_no_record_and_has_no_ticket,
        one_of_several_managers_runs_each_tick,
        a_completed_tick_is_not_run_by_a_process_that_comes_later,
        the_ticks_that_begin_during_a_run_are_left_out,
        a_run_that_does_not_complete_is_repeated_by_a_process_that_comes_later,
        a_run_that_has_begun_ends_before_its_manager_is_drained,
        a_job_that_begins_with_the_next_tick_leaves_this_one_out,
        settings_of_a_job_out_of_bounds_are_invalid,
    }
    passing {
        while_no_other_process_waits_a_lease_stays_in_its_process,
    }
    readers {
        a_writer_enters_among_readers_that_never_stop,
        a_writer_goes_on_as_a_reader_with_its_token_and_lets_readers_in,
        a_share_or_a_lost_lock_is_not_downgraded,
    }
    permits {
        a_writer_excludes_permits,
        readers_and_permits_exclude_each_other,
        a_permit_behind_a_waiting_lock_is_not_told_that_the_key_is_full,
        there_are_never_more_owners_than_permits,
        a_full_key_is_busy_and_says_that_it_is_full,
        a_permit_that_comes_back_goes_to_the_first_waiter,
        each_request_counts_to_its_own_limit,
        a_hundred_waiting_tasks_get_their_permits,
        a_process_that_has_all_permits_enters_as_soon_as_one_comes_back,
        a_process_that_has_all_permits_enters_when_it_has_lost_one,
    }
    kept_ends {
        a_tick_that_is_kept_ends_behind_its_work,
    }
    share_ends {
        a_permit_that_is_not_renewed_ends_alone,
        a_waiting_permit_that_is_cancelled_leaves_nothing_and_blocks_no_other,
        a_permit_that_was_given_back_is_not_in_the_way_of_its_process,
        a_wait_for_a_permit_ends_in_time,
    }
    unpolled {
        readers_do_not_wait_for_a_writer_that_is_not_polled,
        shares_that_are_not_polled_stop_no_other_of_their_process,
    }
    share_rules {
        a_share_may_be_entered_by_what_may_stand_beside_it,
        a_reader_admits_one_nested_reader_at_a_time,
        options_that_a_share_cannot_have_are_invalid,
    }
}
