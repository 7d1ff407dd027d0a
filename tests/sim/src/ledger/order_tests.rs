//! The rules of tickets and orders, as `tests.rs` has it.

use lock_core::operator::{HolderProcess, KeyState};

use super::tests::{asks, calm, owns, rules, with, world};
use super::{Answer, Ledger, List, Order, Ordered, Owning, PassedOn, Seen, SeenHolder};
use crate::plan::{Topology, lock_name};
use crate::server::Refusal;
use crate::world::{Fault, Late, MILLI, SECOND};

/// A ledger in which key 0 has an owner from 2 s on, who has passed it on at 4 s, for 3 s.
fn passed_on() -> Ledger {
    let mut ledger = Ledger::default();
    owns(&mut ledger, Owning::Alone, 7, 2, 3);
    ledger.calls[0].left = Some(4 * SECOND);
    ledger.passes_on(PassedOn {
        by: 0,
        key: 0,
        token: 7,
        text: String::new(),
        asked: 4 * SECOND,
        made: 4 * SECOND,
        pick_up: 3 * SECOND,
        is_fetched: true,
        uses: Vec::new(),
    });
    ledger
}

/// Notes a use of the ticket at a time in seconds.
fn uses(ledger: &mut Ledger, at: u64, answer: Answer) {
    let call = asks(ledger, Owning::Alone, Some(0), at, Some(at));
    ledger.calls[call].answer = answer;
    ledger.tickets[0].uses.push(call);
}

#[test]
fn a_ticket_that_works_twice_breaks_a_rule() {
    for (second, broken) in [
        (Answer::NoTicket, vec![]),
        (Answer::Granted, vec!["a ticket works twice"]),
    ] {
        let mut ledger = passed_on();
        uses(&mut ledger, 5, Answer::Granted);
        uses(&mut ledger, 6, second);
        ledger.check_tickets(&calm());
        assert_eq!(rules(&ledger), broken);
    }
}

#[test]
fn a_ticket_has_the_ttl_of_a_call_inside_of_its_lock_if_that_is_longer() {
    for (inside, ttl) in [(30 * SECOND, 30 * SECOND), (MILLI, SECOND)] {
        let mut ledger = passed_on();
        ledger.is_entered_with(0, inside);
        let sim = world();
        let call = ledger.goes_on(0, 0, 0);
        sim.end();
        assert_eq!(ledger.calls[call].ttl, ttl);
    }
}

#[test]
fn a_refusal_uses_no_ticket_up_unless_its_commit_was_not_confirmed() {
    let unconfirmed =
        "Unavailable PostgreSQL has not confirmed the commit on its synchronous standbys";
    for (why, broken) in [
        (
            "Unavailable the disk is full",
            vec!["a good ticket does not work"],
        ),
        (unconfirmed, vec![]),
    ] {
        let mut ledger = passed_on();
        uses(&mut ledger, 5, Answer::Refused(why.to_owned()));
        uses(&mut ledger, 6, Answer::NoTicket);
        ledger.check_tickets(&calm());
        assert_eq!(rules(&ledger), broken);
    }
}

#[test]
fn a_refusal_that_begins_behind_a_request_may_use_a_ticket_up_where_replicas_acknowledge() {
    let broken = |acks: u16, at: u64| {
        let mut plan = with(Fault::Refuse {
            server: 0,
            refusal: Refusal::ReadOnly,
        });
        (plan.acks, plan.faults[0].at) = (acks, at * SECOND);
        let mut ledger = passed_on();
        uses(&mut ledger, 5, Answer::Refused("Unavailable".to_owned()));
        uses(&mut ledger, 6, Answer::NoTicket);
        ledger.check_tickets(&plan);
        rules(&ledger)
    };
    let rule = "a good ticket does not work";
    assert!(broken(1, 5).is_empty());
    assert_eq!(broken(0, 5), [rule]);
    assert_eq!(broken(1, 4), [rule]);
}

#[test]
fn a_good_ticket_that_does_not_work_breaks_a_rule() {
    for (at, broken) in [(6, vec!["a good ticket does not work"]), (8, vec![])] {
        let mut ledger = passed_on();
        uses(&mut ledger, at, Answer::NoTicket);
        ledger.check_tickets(&calm());
        assert_eq!(rules(&ledger), broken);
    }
}

#[test]
fn a_ticket_is_used_by_a_request_that_is_sent_again_behind_an_order() {
    for (broke, freed, broken) in [
        (true, true, vec![]),
        (false, true, vec!["a good ticket does not work"]),
        (true, false, vec!["a good ticket does not work"]),
    ] {
        let mut ledger = passed_on();
        uses(&mut ledger, 4, Answer::NoTicket);
        uses(&mut ledger, 4, Answer::NoTicket);
        ledger.calls[1].answered = Some(6 * SECOND);
        if freed {
            orders(&mut ledger, 7, Ordered::Freed);
        }
        let mut plan = calm();
        if broke {
            plan = with(Fault::EndConnections { server: 0 });
            plan.faults[0].at = 5 * SECOND;
        }
        ledger.check_tickets(&plan);
        assert_eq!(rules(&ledger), broken);
    }
}

#[test]
fn a_ticket_is_used_by_a_request_without_an_answer() {
    for (fault, broken) in [
        (Fault::EndConnections { server: 0 }, vec![]),
        (
            Fault::ForgetScripts { server: 9 },
            vec!["a good ticket does not work"],
        ),
    ] {
        let mut ledger = passed_on();
        uses(&mut ledger, 5, Answer::Refused("Unavailable".to_owned()));
        uses(&mut ledger, 6, Answer::NoTicket);
        let mut plan = with(fault);
        plan.faults[0].at = match plan.faults[0].fault {
            Fault::EndConnections { .. } => 5 * SECOND,
            // It is over for long.
            _ => 0,
        };
        ledger.check_tickets(&plan);
        assert_eq!(rules(&ledger), broken);
    }
}

#[test]
fn a_ticket_that_works_when_it_is_over_breaks_a_rule() {
    for (at, broken) in [
        (6, vec![]),
        (9, vec!["a ticket works when its time is over"]),
    ] {
        let mut ledger = passed_on();
        uses(&mut ledger, at, Answer::Granted);
        ledger.check_tickets(&calm());
        assert_eq!(rules(&ledger), broken);
    }
}

#[test]
fn an_owner_beside_a_ticket_breaks_a_rule() {
    for (from, broken) in [(6, vec!["too many owners at once"]), (8, vec![])] {
        let mut ledger = passed_on();
        owns(&mut ledger, Owning::Alone, 8, from, 9);
        let sim = world();
        ledger.check_tickets(&calm());
        sim.look(|state| ledger.check_owners(&calm(), state));
        sim.end();
        assert_eq!(rules(&ledger), broken);
    }
}

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
        sim.look(|state| ledger.check_inspections(&calm(), state));
        sim.end();
        assert_eq!(rules(&ledger), broken);
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
        let sim = world();
        sim.look(|state| ledger.check_inspections(&plan, state));
        sim.end();
        assert_eq!(rules(&ledger), broken);
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
        sim.look(|state| ledger.check_inspections(&plan, state));
        sim.end();
        assert_eq!(rules(&ledger), broken);
    }
}

#[test]
fn a_replica_must_have_a_lock_that_was_passed_on_only_while_its_process_has_it() {
    let broken = |value: &[u8]| {
        let mut plan = calm();
        plan.topology = Topology::Replicas;
        let mut ledger = Ledger::default();
        let sim = world();
        sim.change(|state| {
            let card: [&[u8]; 3] = [b"SET", b"lockkit:!h:00000000000000aa", b"1\nhost-0"];
            state.stranger_runs(0, &card);
            state.stranger_runs(0, &[b"SET", lock_name(0).as_bytes(), value]);
        });
        sim.look(|state| ledger.check_replicas(&plan, state, 0, 0));
        sim.end();
        rules(&ledger)
    };
    let rule = "no replica has a lock that was passed on";
    assert_eq!(broken(b"00000000000000aa/0"), [rule]);
    assert!(broken(b"00000000000000bb/0").is_empty());
}
