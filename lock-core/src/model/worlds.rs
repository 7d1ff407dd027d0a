//! The worlds in which nothing is wrong.

use super::explore::{Found, explore};
use super::fault::Fault;
use super::simulate::simulate;
use super::world::{Limits, Step, World, Wrong};

/// Of two processes each wants the lock once; nothing goes unanswered, nobody gives up.
pub(super) const PLAIN: Limits = Limits {
    processes: 2,
    ticks: 4,
    leases: 1,
    rounds: 2,
    line: 0,
    cancels: false,
    unanswered: false,
    timers: false,
    mischief: 0,
    // Three seconds and a little, so that they are over after three on a server's clock that is fast.
    ttl_millis: 3_015,
    longer_millis: None,
    gaps: false,
    cooldown_millis: None,
    step: None,
    rates: &[1_010_000],
    longest_wait: 8,
    fault: None,
};

fn is_large() -> bool {
    std::env::var("LOCK_MODEL").is_ok_and(|size| size == "large")
}

/// All states of a world are looked at.
fn holds(name: &str, limits: &Limits, calm: u64) -> Found {
    let found = explore(limits, usize::MAX, calm);
    assert_eq!(found.wrong, None, "after {} states", found.states);
    println!(
        "{name}: {} states, {} steps deep",
        found.states, found.depth
    );
    found
}

#[test]
fn a_lock_goes_from_process_to_process() {
    for rates in [&[990_000], &[1_010_000]] {
        let limits = Limits {
            ticks: if is_large() { 9 } else { 4 },
            rounds: 3,
            rates,
            ..PLAIN
        };
        holds("hand-over", &limits, 0);
    }
}

#[test]
fn waiters_give_up_at_any_step() {
    let (ticks, processes) = if is_large() { (3, 3) } else { (3, 2) };
    let limits = Limits {
        ticks,
        processes,
        cancels: true,
        ..PLAIN
    };
    let found = holds("giving up", &limits, 0);
    assert!(!is_large() || found.states > 5_000_000);
}

#[test]
fn questions_go_unanswered_and_arrive_late() {
    let limits = Limits {
        ticks: if is_large() { 4 } else { 2 },
        cancels: true,
        unanswered: true,
        ..PLAIN
    };
    holds("unanswered", &limits, 0);
}

#[test]
fn a_lock_goes_from_task_to_task_and_on() {
    let limits = Limits {
        ticks: if is_large() { 3 } else { 1 },
        line: if is_large() { 2 } else { 1 },
        ..PLAIN
    };
    holds("cohort", &limits, 0);
}

#[test]
fn processes_die_strangers_come_and_messages_are_doubled() {
    let limits = Limits {
        ticks: if is_large() { 4 } else { 2 },
        mischief: if is_large() { 2 } else { 1 },
        ..PLAIN
    };
    holds("mischief", &limits, 0);
}

#[test]
fn a_body_asks_for_more_time_while_renewals_are_late() {
    let limits = Limits {
        processes: if is_large() { 2 } else { 1 },
        ticks: if is_large() { 4 } else { 5 },
        longer_millis: Some(5_025),
        unanswered: true,
        ..PLAIN
    };
    holds("nested", &limits, 0);
}

#[test]
fn owners_leave_a_key_free_for_a_while() {
    let limits = Limits {
        ticks: if is_large() { 4 } else { 1 },
        leases: 2,
        unanswered: is_large(),
        mischief: u8::from(is_large()),
        gaps: true,
        ..PLAIN
    };
    holds("gaps", &limits, 0);
}

#[test]
fn a_key_cools_down_whatever_arrives_late() {
    let limits = Limits {
        ticks: if is_large() { 4 } else { 2 },
        unanswered: true,
        mischief: u8::from(is_large()),
        cooldown_millis: Some(1_500),
        ..PLAIN
    };
    holds("cooldown", &limits, 0);
}

/// From every state of these worlds: once nothing goes wrong any more, whoever waits has the lock
/// in time, also if one process stands still.
#[test]
fn whoever_waits_gets_the_lock() {
    for (processes, ttl_millis, longest_wait) in [(2, 3_015, 5), (3, 10_050, 6)] {
        let limits = Limits {
            processes,
            ticks: u8::from(processes == 2) * if is_large() { 3 } else { 2 },
            ttl_millis,
            longest_wait,
            cancels: processes == 2,
            timers: true,
            rates: &[990_000],
            ..PLAIN
        };
        let found = holds("progress", &limits, if is_large() { 1 } else { 16 });
        println!("longest wait: {} s", found.longest_wait);
    }
}

/// One process has the lock, and others wait: all but the last of them are stopped. For how many
/// seconds does that one wait once the lock is given back, by a process that may then be killed?
/// `asked`: so many seconds before that.
pub(super) fn behind_stopped(stopped: u8, asked: u8, killed: bool, fault: Option<Fault>) -> u64 {
    let limits = Limits {
        processes: stopped + 2,
        ttl_millis: 60_000,
        timers: true,
        fault,
        ..PLAIN
    };
    let take = |world: World, step| world.after(step, &limits).expect("nothing wrong");
    let mut world = World::new(&limits);
    for process in 0..limits.processes {
        world = take(world, Step::Begin(process));
        while !world.net.is_empty() {
            world = take(world, Step::Deliver(0));
        }
    }
    for _ in 0..asked {
        world = take(world, Step::Tick(1_000_000));
    }
    world = take(world, Step::End(0));
    world = take(world, Step::Deliver(0));
    if killed {
        world = take(world, Step::Kill(0));
    }
    let stand_still = ((1 << stopped) - 1) << 1;
    let waited = world.comes_to_rest(stand_still, &limits);
    waited.expect("everybody gets there")
}

#[test]
fn however_many_processes_are_stopped_each_costs_its_grant() {
    // Two seconds are up to three of the ticks.
    assert!(behind_stopped(1, 0, false, None) <= 3);
    assert!(behind_stopped(3, 0, false, None) <= 9);
    // Told by the grant itself.
    assert!(behind_stopped(1, 2, true, None) <= 3);
    assert!(behind_stopped(2, 2, true, None) <= 6);
    // One that asked a moment ago was taken to be there: the timers of last resort.
    assert!(behind_stopped(1, 0, true, None) <= 30);
}

/// One process has the lock, and another waits, whose last question found a server that refused all writes. For
/// how many seconds does that one wait once the lock is given back?
pub(super) fn refused_a_place(fault: Option<Fault>) -> u64 {
    let limits = Limits {
        ttl_millis: 60_000,
        timers: true,
        fault,
        ..PLAIN
    };
    let take = |world: World, step| world.after(step, &limits).expect("nothing wrong");
    let deliver_all = |mut world: World| {
        while !world.net.is_empty() {
            world = take(world, Step::Deliver(0));
        }
        world
    };
    let world = deliver_all(take(World::new(&limits), Step::Begin(0)));
    let mut world = take(world, Step::Begin(1));
    // The first question stands in no queue: it is refused, and asked again for a place.
    for step in [Step::Deliver(0), Step::Deliver(0), Step::Refuse(0)] {
        world = take(world, step);
    }
    let world = deliver_all(world);
    let world = take(world, Step::End(0));
    let waited = world.comes_to_rest(0, &limits);
    waited.expect("the waiter gets there")
}

#[test]
fn a_waiter_that_was_refused_a_place_in_the_queue_has_a_free_lock_soon() {
    assert!(refused_a_place(None) <= 2);
}

/// One process has the lock, and another waits. For how many seconds does that one wait once the first
/// has left the key free for a while?
pub(super) fn behind_a_gap(fault: Option<Fault>) -> u64 {
    let limits = Limits {
        ttl_millis: 60_000,
        timers: true,
        gaps: true,
        fault,
        ..PLAIN
    };
    let take = |world: World, step| world.after(step, &limits).expect("nothing wrong");
    let mut world = World::new(&limits);
    for step in [Step::Begin(0), Step::Begin(1), Step::Vacate(0)] {
        world = take(world, step);
        while !world.net.is_empty() {
            world = take(world, Step::Deliver(0));
        }
    }
    assert_eq!(world.server.look(0), None, "the key is left free");
    let waited = world.comes_to_rest(0, &limits);
    waited.expect("the waiter gets there")
}

#[test]
fn a_waiter_has_the_lock_soon_after_a_gap() {
    assert!(behind_a_gap(None) <= 1);
}

/// One process has the lock, and another waits; the server's clock goes back, and a third one comes. Who is the
/// first in the queue?
pub(super) fn first_after_the_clock_went_back(fault: Option<Fault>) -> u8 {
    let limits = Limits {
        processes: 3,
        ttl_millis: 60_000,
        step: Some(-100_000),
        fault,
        ..PLAIN
    };
    let take = |world: World, step| world.after(step, &limits).expect("nothing wrong");
    let mut world = World::new(&limits);
    for process in 0..3 {
        if process == 2 {
            world = take(world, Step::ClockJumps);
        }
        world = take(world, Step::Begin(process));
        while !world.net.is_empty() {
            world = take(world, Step::Deliver(0));
        }
    }
    let queue = &world.server.keys[0].queue;
    assert_eq!(queue.len(), 2);
    queue[0].token.process
}

#[test]
fn processes_keep_the_order_of_their_arrival_when_the_servers_clock_goes_back() {
    assert_eq!(first_after_the_clock_went_back(None), 1);
}

#[test]
fn a_server_whose_clock_jumps_by_a_minute_deceives_no_waiter() {
    let limits = Limits {
        ticks: if is_large() { 6 } else { 3 },
        step: Some(60_000),
        ..PLAIN
    };
    holds("forwards", &limits, 0);
}

#[test]
fn a_server_whose_clock_goes_back_gives_no_lower_fencing_token() {
    let limits = Limits {
        ticks: if is_large() { 3 } else { 1 },
        leases: 2,
        step: Some(-100_000),
        ..PLAIN
    };
    holds("backwards", &limits, 0);
}

/// Not promised: a jump that is no longer than the push is late cannot be told from a late push.
#[test]
fn a_jump_as_long_as_a_push_is_late_is_not_noticed() {
    let limits = Limits {
        ticks: 6,
        step: Some(1_500),
        ..PLAIN
    };
    let found = explore(&limits, usize::MAX, 0);
    let (wrong, _) = found.wrong.expect("it is outside of what is promised");
    assert_eq!(wrong, Wrong::WindowWithoutTheKey);
}

/// The worlds that are drawn by lot: everything at once, and more of it.
pub(super) fn by_lot(seed: u64) -> Limits {
    let small = u8::try_from(seed % 3).unwrap_or(0);
    let goes_back = seed.is_multiple_of(5);
    Limits {
        processes: 2 + small,
        ticks: 40,
        leases: 12,
        rounds: 6,
        line: 6,
        cancels: true,
        unanswered: true,
        timers: true,
        mischief: 3,
        longer_millis: seed.is_multiple_of(2).then_some(5_025),
        gaps: seed % 4 == 3,
        cooldown_millis: (seed % 4 == 1).then_some(1_500),
        rates: &[990_000, 1_000_000, 1_010_000],
        step: goes_back.then_some(-100_000),
        // What a stranger has then lasts as much longer.
        longest_wait: if goes_back { 160 } else { 60 },
        ..PLAIN
    }
}

#[test]
fn nothing_goes_wrong_on_ways_that_are_drawn_by_lot() {
    let seeds = if is_large() { 400_000 } else { 2_000 };
    for seed in 0..seeds {
        let limits = by_lot(seed);
        let outcome = simulate(&limits, seed, 300);
        assert!(outcome.is_ok(), "seed {seed}: {outcome:?}");
    }
}
