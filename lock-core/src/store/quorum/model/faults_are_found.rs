//! The model finds each of its faults, in the smallest world that shows it.

use super::explore::explore;
use super::fault::{QuorumFault, Rule};
use super::steps::QuorumStep;
use super::world::{QuorumBounds, QuorumViolation, QuorumWorld};
use super::worlds::{
    AHEAD, ASKING_AGAIN, ONCE, PLAIN, RAISING, READING, REJOINING, REPEATING, TWO_READERS,
};

/// Explores until a state is wrong, and prints the violation and its steps.
fn found(name: &str, limits: &QuorumBounds) -> (QuorumViolation, Vec<QuorumStep>) {
    let found = explore(limits);
    let Some((wrong, way)) = found.wrong else {
        panic!("{name} is not found in {} states", found.states);
    };
    println!(
        "{name}: {wrong:?} after {} steps, {} states",
        way.len(),
        found.states
    );
    (wrong, way)
}

fn is_not_higher(wrong: QuorumViolation) -> bool {
    matches!(wrong, QuorumViolation::TokenNotHigher { .. })
}

fn two_hold(wrong: QuorumViolation) -> bool {
    wrong == QuorumViolation::TwoHold
}

macro_rules! found {
    ($($name:ident: $fault:ident, $wrong:ident, $world:expr;)+) => {$(
        #[test]
        fn $name() {
            let limits = QuorumBounds {
                fault: Some(QuorumFault::$fault),
                ..$world
            };
            let (wrong, way) = found(stringify!($name), &limits);
            assert!($wrong(wrong), "{wrong:?} after {way:?}");
        }
    )+};
}

const FORGETTING: QuorumBounds = QuorumBounds {
    restarts: true,
    ..ONCE
};

found! {
    a_number_that_is_accepted_twice: AnEqualNumberIsAccepted, is_not_higher, ONCE;
    a_block_that_is_forgotten:
        TheBlockIsForgotten, is_not_higher, QuorumBounds { guesses: AHEAD, ..ONCE };
    a_second_number_that_is_not_recorded: NotRecordedAtTheSecondRound, is_not_higher, PLAIN;
    registers_that_are_lost_unnoticed: RegistersAreLost, is_not_higher, FORGETTING;
    a_node_that_came_back_empty_and_votes: AnEmptyNodeVotes, two_hold, FORGETTING;
    numbers_that_are_not_like_the_time: NumbersAreCounted, is_not_higher, FORGETTING;
    a_minority_that_is_enough: AMinorityIsEnough, two_hold, ONCE;
    a_raise_without_a_majority: ARaiseNeedsNoMajority, is_not_higher, RAISING;
    a_vote_that_counts_twice: AVoteCountsTwice, two_hold, QuorumBounds { copies: 1, ..ONCE };
    an_answer_to_another_number: AnAnswerToAnotherNumber, is_not_higher, PLAIN;
    a_node_asked_again_before_its_vote_is_undone: AskedAgainBeforeItIsUndone, two_hold, ASKING_AGAIN;
    an_undoing_of_which_a_copy_is_late: UndoneWhenACopyIs, two_hold, ASKING_AGAIN;
    a_vote_that_is_renewed_and_then_undone: WhatIsBeingUndoneIsRenewed, two_hold, ASKING_AGAIN;
    a_vote_undone_beside_a_question: UndoneBesideAQuestion, two_hold, QuorumBounds { rounds: 0, ..REPEATING };
    a_vote_of_a_round_before: VotesOfARoundBeforeCount, two_hold, QuorumBounds { leases: [1, 1, 0], ..REPEATING };
    a_lease_that_rejoins_beside_its_undoing:
        RejoinsBesideAnUndoing, two_hold, QuorumBounds { rejoins: 1, ..ASKING_AGAIN };
    a_rejoining_lease_that_takes_the_key: ARejoiningLeaseTakesTheKey, two_hold, REJOINING;
    a_grant_after_the_deadline: GrantedAfterTheDeadline, two_hold, ONCE;
    a_reader_beside_a_lock: AReaderEntersBesideALock, two_hold, READING;
    a_lock_beside_readers: ALockEntersBesideReaders, two_hold, READING;
    a_reader_that_ends_all: OneReaderEndsAll, two_hold, TWO_READERS;
    a_readers_number_that_is_not_recorded: AReadersNumberIsNotRecorded, is_not_higher, READING;
}

/// Prints the steps, each with every node's number after it.
fn tell(limits: &QuorumBounds, wrong: QuorumViolation, way: &[QuorumStep]) {
    let mut world = QuorumWorld::new(limits);
    for step in way {
        match world.after(*step, limits) {
            Ok(after) => world = after,
            Err(_) => {
                println!("  {step:?}: {wrong:?}");
                return;
            }
        }
        let counts = world
            .nodes
            .map(|node| node.register.map_or(0, |(count, _)| count));
        println!("  {step:?}: the nodes are at {counts:?}");
    }
}

/// Shows why clients propose: the naive rule fails although nothing else goes wrong.
fn is_naive(rule: Rule, clocks: [u16; 3]) {
    let limits = QuorumBounds {
        rule,
        clocks,
        leases: [1, 1, 1],
        guesses: &[0],
        ..PLAIN
    };
    let (wrong, way) = found(&format!("{rule:?}"), &limits);
    tell(&limits, wrong, &way);
    assert!(is_not_higher(wrong), "{wrong:?}");
}

#[test]
fn the_highest_of_what_the_nodes_have_counted_is_given_twice() {
    is_naive(Rule::HighestCount, [0; 3]);
}

#[test]
fn the_highest_of_the_nodes_clocks_goes_back() {
    is_naive(Rule::HighestClock, [100, 100, 200]);
}
