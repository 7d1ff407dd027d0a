//! The worlds without a seeded fault.

use super::explore::{Exploration, explore};
use super::fault::ModelFault;
use super::world::{Limits, Step, World, Wrong};

/// Two processes request the lock once, each request is answered, and no waiter leaves.
pub(super) const PLAIN: Limits = Limits {
    processes: 2,
    ticks: 4,
    leases: 1,
    rounds: 2,
    line: 0,
    cancels: false,
    unanswered: false,
    timers: false,
    disruptions: 0,
    // The ttl is a little above three seconds, so that it ends after three ticks of a fast server
    // clock.
    ttl_millis: 3_015,
    longer_millis: None,
    gaps: false,
    cooldown_millis: None,
    records: false,
    step: None,
    rates: &[1_010_000],
    longest_wait: 8,
    fault: None,
};

pub(super) fn is_large() -> bool {
    std::env::var("LOCK_MODEL").is_ok_and(|size| size == "large")
}

/// Searches all states of a world.
pub(super) fn holds(name: &str, limits: &Limits, calm: u64) -> Exploration<Wrong, Step> {
    let found = explore::<World>(limits, calm);
    assert_eq!(found.wrong, None, "after {} states", found.states);
    println!(
        "{name}: {} states, {} steps deep",
        found.states, found.depth
    );
    found
}

#[test]
fn a_lock_passes_from_process_to_process() {
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
fn requests_stay_unanswered_and_arrive_late() {
    let limits = Limits {
        ticks: if is_large() { 4 } else { 2 },
        cancels: true,
        unanswered: true,
        ..PLAIN
    };
    holds("unanswered", &limits, 0);
}

#[test]
fn a_lock_passes_from_task_to_task_and_to_other_processes() {
    let limits = Limits {
        ticks: if is_large() { 3 } else { 1 },
        line: if is_large() { 2 } else { 1 },
        ..PLAIN
    };
    holds("cohort", &limits, 0);
}

#[test]
fn processes_die_foreign_owners_appear_and_messages_are_repeated() {
    let limits = Limits {
        ticks: if is_large() { 4 } else { 2 },
        disruptions: if is_large() { 2 } else { 1 },
        ..PLAIN
    };
    holds("disruptions", &limits, 0);
}

#[test]
fn a_nested_body_extends_the_lease_while_renewals_are_late() {
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
        disruptions: u8::from(is_large()),
        gaps: true,
        ..PLAIN
    };
    holds("gaps", &limits, 0);
}

#[test]
fn late_messages_do_not_change_a_cooldown() {
    let limits = Limits {
        ticks: if is_large() { 4 } else { 2 },
        unanswered: true,
        disruptions: u8::from(is_large()),
        cooldown_millis: Some(1_500),
        ..PLAIN
    };
    holds("cooldown", &limits, 0);
}

/// Every waiter has the lock in time once nothing fails any more.
///
/// The test starts from every state of these worlds, and also stops one process.
#[test]
fn every_waiter_gets_the_lock() {
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

/// Returns the seconds that a waiter waits behind stopped waiters.
///
/// One process has the lock, and others wait. All waiters but the last are stopped. The owner
/// releases the lock `asked` seconds after the last request, and is then killed if `killed` is set.
pub(super) fn behind_stopped(
    stopped: u8,
    asked: u8,
    killed: bool,
    fault: Option<ModelFault>,
) -> u64 {
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
    let waited = world.ticks_to_rest(stand_still, &limits);
    waited.expect("every waiter gets the lock")
}

#[test]
fn each_stopped_process_costs_only_its_grant() {
    // Two seconds last up to three ticks.
    assert!(behind_stopped(1, 0, false, None) <= 3);
    assert!(behind_stopped(3, 0, false, None) <= 9);
    // The grant itself tells the next waiter.
    assert!(behind_stopped(1, 2, true, None) <= 3);
    assert!(behind_stopped(2, 2, true, None) <= 6);
    // A waiter that asked a moment ago was assumed to be alive, so only the last timer helps.
    assert!(behind_stopped(1, 0, true, None) <= 30);
}

/// Returns the seconds that a waiter without a ticket waits after the release.
///
/// One process has the lock, and another waits. The server refused all writes at the waiter's last
/// request.
pub(super) fn refused_a_place(fault: Option<ModelFault>) -> u64 {
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
    // The first request asks for no ticket. It is refused, and repeated for a ticket.
    for step in [Step::Deliver(0), Step::Deliver(0), Step::Refuse(0)] {
        world = take(world, step);
    }
    let world = deliver_all(world);
    let world = take(world, Step::End(0));
    let waited = world.ticks_to_rest(0, &limits);
    waited.expect("the waiter gets there")
}

#[test]
fn a_waiter_without_a_ticket_gets_a_free_lock_soon() {
    assert!(refused_a_place(None) <= 2);
}

/// Returns the seconds that a waiter waits after the owner has left a gap.
pub(super) fn behind_a_gap(fault: Option<ModelFault>) -> u64 {
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
    assert_eq!(world.server.current(), None, "the key is left free");
    let waited = world.ticks_to_rest(0, &limits);
    waited.expect("the waiter gets there")
}

#[test]
fn a_waiter_gets_the_lock_soon_after_a_gap() {
    assert!(behind_a_gap(None) <= 1);
}

/// Returns the first process in the queue after the server's clock went back.
///
/// One process has the lock, and another waits. Then the clock goes back, and a third process
/// arrives.
pub(super) fn first_after_the_clock_went_back(fault: Option<ModelFault>) -> u8 {
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
    let queue: Vec<_> = world.server.waiting().collect();
    assert_eq!(queue.len(), 2);
    queue[0].0.process
}

#[test]
fn processes_keep_the_order_of_their_arrival_when_the_servers_clock_goes_back() {
    assert_eq!(first_after_the_clock_went_back(None), 1);
}

#[test]
fn a_clock_that_jumps_by_a_minute_makes_no_second_owner() {
    let limits = Limits {
        ticks: if is_large() { 6 } else { 3 },
        step: Some(60_000),
        ..PLAIN
    };
    holds("forwards", &limits, 0);
}

#[test]
fn a_clock_that_goes_back_makes_no_lower_fencing_token() {
    let limits = Limits {
        ticks: if is_large() { 3 } else { 1 },
        leases: 2,
        step: Some(-100_000),
        ..PLAIN
    };
    holds("backwards", &limits, 0);
}

/// A jump no longer than a push's delay looks like a late push.
#[test]
fn a_jump_as_long_as_the_delay_of_a_push_is_not_noticed() {
    let limits = Limits {
        ticks: 6,
        step: Some(1_500),
        ..PLAIN
    };
    let found = explore::<World>(&limits, 0);
    let (wrong, _) = found.wrong.expect("the kit promises nothing here");
    assert_eq!(wrong, Wrong::OwnerWithoutKey);
}
