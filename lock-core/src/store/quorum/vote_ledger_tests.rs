use std::task::{Context, Poll, Waker};

use super::*;

/// One question to node 0, unanswered when the lease ends.
fn ending() -> VoteLedger {
    let ledger = VoteLedger::default();
    assert!(ledger.claim(0));
    ledger.end();
    ledger.ends_at(0);
    ledger
}

#[test]
fn a_late_vote_is_left_to_the_end_that_was_sent_behind_it() {
    let ledger = ending();
    assert_eq!(ledger.agrees_late(0, false), Late::GivenBack);
    assert!(ledger.has_ended_at(0, true));
    // The answers may also arrive the other way round.
    let ledger = ending();
    assert!(ledger.has_ended_at(0, true));
    assert_eq!(ledger.agrees_late(0, false), Late::GivenBack);
}

#[test]
fn a_late_vote_that_the_end_did_not_find_is_undone() {
    let ledger = ending();
    assert_eq!(ledger.agrees_late(0, false), Late::GivenBack);
    assert!(!ledger.has_ended_at(0, false), "it came before the vote");
    let ledger = ending();
    assert!(ledger.has_ended_at(0, false), "there is nothing yet");
    assert_eq!(ledger.agrees_late(0, false), Late::Unwanted);
}

#[test]
fn a_late_vote_to_what_was_asked_twice_is_undone() {
    let ledger = ending();
    assert!(ledger.has_ended_at(0, true));
    assert_eq!(ledger.agrees_late(0, true), Late::Unwanted);
}

#[test]
fn what_an_end_finds_of_an_earlier_vote_says_nothing_of_a_later_one() {
    let ledger = VoteLedger::default();
    assert!(ledger.claim(0) && ledger.stands(0));
    ledger.resolved(0);
    assert!(ledger.claim(0));
    ledger.end();
    ledger.ends_at(0);
    assert!(ledger.has_ended_at(0, true));
    assert_eq!(ledger.agrees_late(0, false), Late::Unwanted);
}

/// A renewal that was sent before the earlier vote counts its node no more.
#[test]
fn what_an_end_finds_of_an_earlier_vote_that_counts_no_more_says_nothing_of_a_later_one() {
    let ledger = VoteLedger::default();
    assert!(ledger.claim_again(0));
    assert_eq!(ledger.agrees_late(0, false), Late::Counts);
    ledger.resolved(0);
    ledger.is_unheard(0);
    assert!(ledger.claim_again(0));
    ledger.end();
    ledger.ends_at(0);
    assert!(ledger.has_ended_at(0, true));
    assert_eq!(ledger.agrees_late(0, false), Late::Unwanted);
}

#[test]
fn a_node_is_asked_again_for_what_it_does_not_have_and_somebody_wants() {
    let ledger = VoteLedger::default();
    assert!(ledger.claim_again(0));
    assert!(!ledger.claim_again(0), "one question at a time");
    assert!(ledger.stands(0));
    ledger.resolved(0);
    assert!(!ledger.claim_again(0), "it has it");
    ledger.is_without(0);
    assert!(ledger.claim_again(0));
    ledger.end();
    assert!(!ledger.claim_again(1));
}

#[test]
fn a_vote_is_not_undone_beside_a_question() {
    let ledger = VoteLedger::default();
    assert!(ledger.claim(0) && ledger.stands(0));
    ledger.resolved(0);
    assert_eq!(ledger.to_undo(), only(0));
    assert!(ledger.claim(0), "for a higher number");
    assert_eq!(ledger.to_undo(), 0);
    assert!(ledger.doubt(0), "nobody will hear of it");
    assert_eq!(
        (ledger.to_undo(), ledger.left_in_doubt()),
        (only(0), only(0))
    );
}

#[test]
fn a_late_vote_counts_for_a_lease_that_is_wanted() {
    let ledger = VoteLedger::default();
    assert!(ledger.claim(0));
    assert_eq!(ledger.agrees_late(0, true), Late::Counts);
    assert_eq!(ledger.granted(), only(0));
}

/// A renewal proposes the lease by this number to a node that is without it.
#[test]
fn a_lease_has_the_highest_number_that_a_majority_has_accepted() {
    let ledger = VoteLedger::default();
    ledger.proposes(7);
    assert_eq!(ledger.number(), None, "no majority has accepted it yet");
    ledger.note_number(7);
    ledger.note_number(5);
    assert_eq!(ledger.number(), Some(7), "an answer may be late");
}

#[test]
fn a_question_that_waits_for_an_earlier_one_is_given_up_when_its_lease_is_over() {
    for is_over in [VoteLedger::pause, VoteLedger::end] {
        let ledger = VoteLedger::default();
        assert!(ledger.claim(0));
        let mut question = pin!(ledger.claimed(0, 1));
        let mut context = Context::from_waker(Waker::noop());
        assert!(question.as_mut().poll(&mut context).is_pending());
        is_over(&ledger);
        assert_eq!(question.as_mut().poll(&mut context), Poll::Ready(false));
    }
}

#[test]
fn a_question_that_waits_for_an_earlier_one_is_given_up_when_its_lease_proposes_a_higher_number() {
    for (next, may_ask) in [(1, true), (2, false)] {
        let ledger = VoteLedger::default();
        ledger.proposes(1);
        assert!(ledger.claim(0));
        let mut question = pin!(ledger.claimed(0, 1));
        let mut context = Context::from_waker(Waker::noop());
        assert!(question.as_mut().poll(&mut context).is_pending());
        ledger.proposes(next);
        ledger.resolved(0);
        assert_eq!(question.as_mut().poll(&mut context), Poll::Ready(may_ask));
    }
}
