//! The rules of orders, as `tests.rs` has it.

use lock_core::operator::{HolderProcess, KeyState};

use super::tests::{calm, owns, rules, world};
use super::{Answer, Ledger, List, Order, Ordered, Owning, PassedOn, Seen, SeenHolder};
use crate::plan::{Topology, lock_name};
use crate::world::{Late, MILLI, SECOND};

/// Notes an order of 5 s for the owner with this token.
pub(super) fn orders(ledger: &mut Ledger, token: u64, result: Ordered) {
    ledger.orders.push(Order {
        process: 0,
        key: 0,
        token: Some(token),
        looked: 5 * SECOND,
        sent: 5 * SECOND,
        answered: Some(5 * SECOND),
        result,
        noted: 0,
        clock: 0,
    });
}

/// A ledger in which key 0 has an owner with token 7.
fn owned(until: u64) -> Ledger {
    let mut ledger = Ledger::default();
    owns(&mut ledger, Owning::Alone, 7, 2, until);
    ledger.calls[0].token = Some(7);
    ledger
}

#[test]
fn an_owner_that_outlives_an_order_breaks_a_rule() {
    let rule = "an owner believes in spite of an order";
    for (until, result, broken) in [
        (5, Ordered::Told, vec![]),
        (6, Ordered::Told, vec![rule]),
        (6, Ordered::Changed, vec![]),
    ] {
        let mut ledger = owned(until);
        orders(&mut ledger, 7, result);
        ledger.check_orders(&calm());
        assert_eq!(rules(&ledger), broken);
    }
}

#[test]
fn a_token_below_that_of_a_freed_owner_breaks_a_rule() {
    for (next, broken) in [
        (8_000, vec![]),
        (6, vec!["a token is not above that of a freed holder"]),
    ] {
        let mut ledger = owned(5);
        orders(&mut ledger, 7, Ordered::Told);
        owns(&mut ledger, Owning::Alone, next, 7, 8);
        ledger.calls[1].token = Some(next);
        ledger.check_orders(&calm());
        assert_eq!(rules(&ledger), broken);
    }
}

#[test]
fn a_loss_by_no_order_breaks_a_rule() {
    for (seen, broken) in [(7, vec![]), (9_000, vec!["a lock is freed by no order"])] {
        let mut ledger = owned(5);
        ledger.calls[0].answer = Answer::NotReleased("Lost: an operator freed the lock".to_owned());
        ledger.calls[0].left = Some(6 * SECOND);
        orders(&mut ledger, seen, Ordered::Told);
        ledger.check_orders(&calm());
        assert_eq!(rules(&ledger), broken);
    }
}

#[test]
fn an_inspection_that_misses_an_owner_or_sees_another_one_breaks_a_rule() {
    let strange = "an operator sees a token that no owner has";
    let holder = |token| SeenHolder {
        process: HolderProcess::Holds,
        token: Some(token),
    };
    for (holders, broken) in [
        (vec![holder(7)], vec![]),
        (vec![holder(9)], vec![strange]),
        (vec![], vec!["an operator misses an owner"]),
    ] {
        let mut ledger = owned(9);
        ledger.inspections.push(Seen {
            key: 0,
            asked: 5 * SECOND,
            answered: 5 * SECOND,
            state: match holders.is_empty() {
                true => KeyState::Free,
                false => KeyState::Held,
            },
            holders,
        });
        let sim = world();
        sim.change(|state| {
            let life = (2 * SECOND, Some(9 * SECOND));
            let taken = !broken.contains(&"an operator misses an owner");
            let lives = &mut state.hosts[0].lives;
            lives.extend(taken.then(|| (b"lockkit:k0".to_vec(), vec![life])));
        });
        let found = sim.judge(ledger, &calm(), Ledger::check_inspections);
        assert_eq!(found, broken);
    }
}

#[test]
fn only_on_postgres_a_ticket_is_picked_up_for_a_moment_behind_its_end() {
    let rule = "an operator misses an owner";
    for (topology, made, broken) in [
        (Topology::Postgres, 4, vec![]),
        (Topology::One, 4, vec![rule]),
        (Topology::Postgres, 3, vec![rule]),
        (Topology::Postgres, 5, vec![rule]),
    ] {
        let mut plan = calm();
        plan.topology = topology;
        let mut ledger = owned(9);
        ledger.passes_on(PassedOn {
            by: ledger.claims[0].call,
            key: 0,
            token: 7,
            text: String::new(),
            asked: made * SECOND,
            made: made * SECOND,
            pick_up: SECOND,
            is_fetched: false,
            uses: vec![],
        });
        ledger.inspections.push(Seen {
            key: 0,
            asked: 5 * SECOND,
            answered: 5 * SECOND,
            state: KeyState::Free,
            holders: vec![],
        });
        let found = world().judge(ledger, &plan, Ledger::check_inspections);
        assert_eq!(found, broken);
    }
}

#[test]
fn a_list_that_lacks_a_lock_or_names_it_twice_breaks_a_rule() {
    for (keys, broken) in [
        (vec!["k0"], vec![]),
        (vec![], vec!["a list lacks a lock"]),
        (vec!["k0", "k0"], vec!["a list names a lock twice"]),
    ] {
        let mut ledger = owned(9);
        ledger.lists.push(List {
            pattern: "k*",
            begun: 5 * SECOND,
            ended: Some(6 * SECOND),
            keys: keys.into_iter().map(str::to_owned).collect(),
        });
        ledger.check_lists(&calm());
        assert_eq!(rules(&ledger), broken);
    }
}

#[test]
fn an_operator_is_refused_without_a_fault_only_where_segments_take_longer_than_usual() {
    let rule = "an operator is refused without a fault";
    let no_answer = "the store gave no answer in time";
    for (why, sent, broken) in [
        (no_answer, 4_900, vec![]),
        (no_answer, 4_700, vec![rule]),
        ("the store is full", 4_900, vec![rule]),
    ] {
        let mut plan = calm();
        plan.processes.truncate(1);
        plan.processes[0].operation_timeout = 200 * MILLI;
        let mut ledger = Ledger::default();
        let error = (5 * SECOND, why.to_owned());
        ledger.operator_errors.push(error);
        let sim = world();
        sim.change(|state| {
            let late = Late {
                process: 0,
                sent: sent * MILLI,
                by: 20 * MILLI,
            };
            state.late.extend([late.clone(), late]);
        });
        assert_eq!(sim.judge(ledger, &plan, Ledger::check_inspections), broken);
    }
}

#[test]
fn a_replica_must_have_a_lock_that_was_passed_on_only_while_its_process_has_it() {
    let broken = |value: &[u8]| {
        let mut plan = calm();
        plan.topology = Topology::Replicas;
        let sim = world();
        sim.change(|state| {
            let card: [&[u8]; 3] = [b"SET", b"lockkit:!h:00000000000000aa", b"1\nhost-0"];
            state.stranger_runs(0, &card);
            state.stranger_runs(0, &[b"SET", lock_name(0).as_bytes(), value]);
        });
        sim.judge(Ledger::default(), &plan, |it, plan, state| {
            it.check_replicas(plan, state, 0, 0)
        })
    };
    let rule = "no replica has a lock that was passed on";
    assert_eq!(broken(b"00000000000000aa/0"), [rule]);
    assert!(broken(b"00000000000000bb/0").is_empty());
}
