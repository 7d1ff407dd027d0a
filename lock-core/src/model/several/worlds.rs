//! Worlds without a fault, and the smallest ones that show each fault.

use super::world::{GroupFault, Key, Limits, World, Wrong};
use crate::model::seen::{ByHash, print};

const A: Key = 0;
const B: Key = 1;
const C: Key = 2;

/// Two processes that name two keys in different orders.
const TWO: Limits = Limits {
    wants: &[&[A, B], &[B, A]],
    crashes: 0,
    forgotten: 0,
    gives_up: false,
    fault: None,
};

struct Search {
    states: usize,
    complete: bool,
    wrong: Option<Wrong>,
}

/// Searches up to `most` states. One of `calm` states has to come to rest.
fn search(limits: &Limits, most: usize, calm: u64) -> Search {
    let start = World::new(limits);
    let mut seen: ByHash<()> = ByHash::default();
    seen.insert(print(&start), ());
    let mut layer = vec![start];
    while !layer.is_empty() {
        let mut next = Vec::new();
        for world in &layer {
            let mut checked = world.check(limits);
            if checked.is_ok() && print(world).is_multiple_of(calm) {
                checked = world.comes_to_rest(limits);
            }
            if let Err(wrong) = checked {
                return Search {
                    states: seen.len(),
                    complete: false,
                    wrong: Some(wrong),
                };
            }
            for (_, after) in world.steps(limits) {
                if seen.insert(print(&after), ()).is_none() {
                    next.push(after);
                }
            }
        }
        if seen.len() > most {
            return Search {
                states: seen.len(),
                complete: false,
                wrong: None,
            };
        }
        layer = next;
    }
    Search {
        states: seen.len(),
        complete: true,
        wrong: None,
    }
}

#[track_caller]
fn holds(limits: &Limits, calm: u64) {
    let most = if crate::model::worlds::is_large() {
        3_000_000
    } else {
        150_000
    };
    let found = search(limits, most, calm);
    println!(
        "{:?}: {} states, complete: {}",
        limits.wants, found.states, found.complete
    );
    assert_eq!(found.wrong, None, "after {} states", found.states);
}

#[test]
fn two_processes_that_name_two_keys_in_different_orders_both_get_them() {
    holds(&TWO, 1);
}

#[test]
fn a_process_that_dies_at_any_step_delays_the_other_and_no_more() {
    holds(&Limits { crashes: 2, ..TWO }, 1);
}

#[test]
fn a_waiter_that_gives_up_at_any_step_leaves_no_key() {
    holds(
        &Limits {
            gives_up: true,
            ..TWO
        },
        3,
    );
}

#[test]
fn a_waiter_that_a_queue_forgets_asks_again() {
    holds(
        &Limits {
            forgotten: 1,
            ..TWO
        },
        3,
    );
}

#[test]
fn pairs_and_singles_of_three_processes_never_deadlock() {
    const WORLDS: [&[&[Key]]; 5] = [
        &[&[A, B], &[B, A], &[B]],
        &[&[A, B], &[B, A], &[A]],
        &[&[A, B], &[B, C], &[C, A]],
        &[&[A, B, C], &[C, A], &[B]],
        &[&[A, B], &[A, B], &[A], &[B]],
    ];
    for wants in WORLDS {
        holds(&Limits { wants, ..TWO }, 1);
        let limits = Limits {
            wants,
            crashes: 1,
            forgotten: 1,
            gives_up: true,
            fault: None,
        };
        holds(&limits, 7);
    }
}

/// Returns the violation in the first of these worlds that shows the fault.
#[track_caller]
fn found(fault: GroupFault) -> Wrong {
    const WORLDS: [&[&[Key]]; 5] = [
        &[&[A, B], &[B, A]],
        &[&[A, B], &[B, A], &[B]],
        &[&[A, B], &[B, A], &[A]],
        &[&[A, B], &[B, C], &[C, A]],
        &[&[A, B], &[A, B], &[A], &[B]],
    ];
    for wants in WORLDS {
        for forgotten in [0, 1] {
            let limits = Limits {
                wants,
                forgotten,
                fault: Some(fault),
                ..TWO
            };
            let found = search(&limits, 150_000, 1);
            if let Some(wrong) = found.wrong {
                println!("{fault:?}: {wrong:?} in {wants:?}, {} states", found.states);
                return wrong;
            }
        }
    }
    panic!("{fault:?} was not found");
}

#[test]
fn keys_in_the_given_order_deadlock() {
    assert_eq!(found(GroupFault::GivenOrder), Wrong::Deadlock);
}

#[test]
fn a_waiter_in_all_queues_deadlocks() {
    assert_eq!(found(GroupFault::QueuedInAll), Wrong::Deadlock);
}

#[test]
fn a_waiter_that_keeps_its_key_while_it_takes_the_rest_deadlocks() {
    assert_eq!(found(GroupFault::KeepsTheOne), Wrong::Deadlock);
}

#[test]
fn one_token_for_all_attempts_loses_a_key() {
    assert_eq!(found(GroupFault::OneToken), Wrong::HoldsWithoutKey);
}
