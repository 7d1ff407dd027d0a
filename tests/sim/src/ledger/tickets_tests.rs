//! The rules of tickets, as `tests.rs` has it.

use super::order_tests::orders;
use super::tests::{asks, calm, owns, rules, with, world};
use super::{Answer, Ledger, Ordered, Owning, PassedOn};
use crate::server::Refusal;
use crate::world::{Fault, MILLI, SECOND};

/// A ledger in which key 0 has an owner from 2 s on, who has passed it on at 4 s, for 3 s.
pub(super) fn passed_on() -> Ledger {
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
pub(super) fn uses(ledger: &mut Ledger, at: u64, answer: Answer) {
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
        let _world = world();
        let call = ledger.goes_on(0, 0, 0);
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

/// The connection of a use breaks behind the answer to the other use.
#[test]
fn a_ticket_is_used_by_a_request_that_loses_its_answer_later() {
    let rule = "a good ticket does not work";
    for (answered, broken) in [(8, vec![]), (6, vec![rule])] {
        let mut ledger = passed_on();
        uses(&mut ledger, 5, Answer::Refused("Unavailable".to_owned()));
        ledger.calls[1].answered = Some(answered * SECOND);
        uses(&mut ledger, 6, Answer::NoTicket);
        let mut plan = with(Fault::EndConnections { server: 0 });
        plan.faults[0].at = 7 * SECOND;
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
        assert_eq!(sim.judge(ledger, &calm(), Ledger::check_owners), broken);
    }
}
