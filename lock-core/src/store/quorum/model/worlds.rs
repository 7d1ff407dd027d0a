//! Worlds without a violation.

use super::explore::{QuorumFound, explore};
use super::fault::Rule;
use super::world::QuorumBounds;
use crate::model::is_large;

/// Two clients, of which one wants the lock twice. Their clocks agree, and their numbers collide.
pub(super) const PLAIN: QuorumBounds = QuorumBounds {
    leases: [2, 1, 0],
    readers: [false; 3],
    attempts: 0,
    rounds: 1,
    repeats: 0,
    rejoins: 0,
    raises: 0,
    guesses: &[0],
    apart: false,
    copies: 0,
    restarts: false,
    clocks: [0; 3],
    rule: Rule::ClientsPropose,
    fault: None,
};

/// Each of two clients wants the lock once.
pub(super) const ONCE: QuorumBounds = QuorumBounds {
    leases: [1, 1, 0],
    ..PLAIN
};

/// Each also asks once more after a failed attempt.
pub(super) const ASKING_AGAIN: QuorumBounds = QuorumBounds {
    attempts: 1,
    rounds: 0,
    ..ONCE
};

/// One client's clock may be ahead of the other's by less than a block of tokens.
pub(super) const AHEAD: &[u16] = &[0, 16];
/// One client's clock may be ahead by more than a block.
const FAR_AHEAD: &[u16] = &[0, 16, 200];

/// Explores all states of a world.
fn holds(name: &str, limits: &QuorumBounds) -> QuorumFound {
    let found = explore(limits);
    assert_eq!(found.wrong, None, "{name}, after {} states", found.states);
    println!(
        "{name}: {} states, {} steps deep",
        found.states, found.depth
    );
    found
}

/// The world of an ordinary test, or the large one.
fn small_or(large: &[QuorumBounds], small: QuorumBounds) -> Vec<QuorumBounds> {
    if is_large() {
        large.to_vec()
    } else {
        vec![small]
    }
}

#[test]
fn a_lock_goes_from_client_to_client() {
    let large = [
        QuorumBounds {
            guesses: FAR_AHEAD,
            rounds: 2,
            ..PLAIN
        },
        QuorumBounds {
            leases: [2, 2, 0],
            guesses: AHEAD,
            ..PLAIN
        },
    ];
    for limits in small_or(&large, PLAIN) {
        let found = holds("two clients", &limits);
        assert!(found.states > 100_000, "{}", found.states);
    }
}

#[test]
fn three_clients_want_one_lock() {
    let once = QuorumBounds {
        leases: [1; 3],
        ..PLAIN
    };
    let large = [
        QuorumBounds {
            guesses: AHEAD,
            ..once.clone()
        },
        QuorumBounds {
            leases: [2, 1, 1],
            ..PLAIN
        },
    ];
    for limits in small_or(&large, once) {
        holds("three clients", &limits);
    }
}

#[test]
fn a_lease_asks_again_while_its_votes_are_undone() {
    let large = [QuorumBounds {
        rounds: 1,
        guesses: AHEAD,
        ..ASKING_AGAIN
    }];
    for limits in small_or(&large, ASKING_AGAIN) {
        holds("asking again", &limits);
    }
}

#[test]
fn answers_come_late() {
    let once = QuorumBounds {
        apart: true,
        guesses: AHEAD,
        ..ONCE
    };
    let large = [
        QuorumBounds {
            apart: true,
            ..PLAIN
        },
        QuorumBounds {
            apart: true,
            rounds: 1,
            ..ASKING_AGAIN
        },
    ];
    for limits in small_or(&large, once) {
        holds("late answers", &limits);
    }
}

#[test]
fn questions_are_sent_twice() {
    let once = QuorumBounds {
        copies: 1,
        guesses: AHEAD,
        ..ONCE
    };
    let large = [
        QuorumBounds { copies: 2, ..PLAIN },
        QuorumBounds {
            copies: 1,
            ..ASKING_AGAIN
        },
    ];
    for limits in small_or(&large, once) {
        holds("copies", &limits);
    }
}

#[test]
fn a_server_comes_back_without_its_data() {
    let once = QuorumBounds {
        restarts: true,
        ..ONCE
    };
    let large = [
        QuorumBounds {
            restarts: true,
            guesses: AHEAD,
            ..PLAIN
        },
        QuorumBounds {
            restarts: true,
            ..ASKING_AGAIN
        },
    ];
    for limits in small_or(&large, once) {
        holds("a restart", &limits);
    }
}

/// A contested attempt withdraws its votes and asks in another round.
pub(super) const REPEATING: QuorumBounds = QuorumBounds {
    repeats: 1,
    ..PLAIN
};

#[test]
fn an_attempt_that_is_contested_is_repeated() {
    let once = QuorumBounds {
        leases: [1, 1, 0],
        ..REPEATING
    };
    let large = [
        QuorumBounds {
            rounds: 0,
            ..REPEATING
        },
        QuorumBounds {
            leases: [1; 3],
            rounds: 0,
            ..REPEATING
        },
        QuorumBounds {
            repeats: 2,
            guesses: AHEAD,
            ..ONCE
        },
        QuorumBounds {
            restarts: true,
            repeats: 1,
            ..ONCE
        },
        QuorumBounds {
            repeats: 1,
            copies: 1,
            ..ONCE
        },
        QuorumBounds {
            repeats: 1,
            ..ASKING_AGAIN
        },
    ];
    for limits in small_or(&large, once) {
        holds("repeating", &limits);
    }
}

/// A node that was without a lock takes it while it is held.
pub(super) const REJOINING: QuorumBounds = QuorumBounds {
    rejoins: 1,
    rounds: 0,
    ..PLAIN
};

#[test]
fn a_lease_that_is_held_is_taken_by_the_node_that_was_without_it() {
    let large = [
        QuorumBounds {
            rounds: 1,
            rejoins: 2,
            ..REJOINING
        },
        QuorumBounds {
            attempts: 1,
            ..REJOINING
        },
        QuorumBounds {
            restarts: true,
            guesses: AHEAD,
            ..REJOINING
        },
        QuorumBounds {
            copies: 1,
            ..REJOINING
        },
    ];
    for limits in small_or(&large, REJOINING) {
        holds("rejoining", &limits);
    }
}

/// One of two held leases takes a fencing token from another key, as a lock of several keys does.
pub(super) const RAISING: QuorumBounds = QuorumBounds { raises: 1, ..ONCE };

#[test]
fn a_lease_that_is_held_takes_the_token_of_another_key() {
    let large = [
        QuorumBounds { raises: 1, ..PLAIN },
        QuorumBounds {
            rejoins: 1,
            guesses: AHEAD,
            ..RAISING
        },
        QuorumBounds {
            restarts: true,
            ..RAISING
        },
        QuorumBounds {
            raises: 1,
            ..ASKING_AGAIN
        },
    ];
    for limits in small_or(&large, RAISING) {
        holds("raising", &limits);
    }
}

/// A reader and a writer.
pub(super) const READING: QuorumBounds = QuorumBounds {
    readers: [true, false, false],
    ..ONCE
};

/// Two readers and a writer, whose clocks may be apart by more than a block, so that none needs a second round.
pub(super) const TWO_READERS: QuorumBounds = QuorumBounds {
    leases: [1; 3],
    readers: [true, true, false],
    rounds: 0,
    guesses: &[0, 200],
    ..PLAIN
};

#[test]
fn two_readers_and_a_writer_want_one_key() {
    let large = [
        QuorumBounds {
            rounds: 1,
            guesses: &[0],
            ..TWO_READERS
        },
        QuorumBounds {
            attempts: 1,
            ..TWO_READERS
        },
        QuorumBounds {
            leases: [1, 1, 2],
            ..TWO_READERS
        },
        QuorumBounds {
            readers: [true, false, false],
            ..TWO_READERS
        },
        QuorumBounds {
            rejoins: 1,
            ..TWO_READERS
        },
    ];
    for limits in small_or(&large, TWO_READERS) {
        holds("two readers and a writer", &limits);
    }
}

#[test]
fn a_reader_asks_again_while_its_votes_are_undone() {
    let again = QuorumBounds {
        attempts: 1,
        rounds: 0,
        ..READING
    };
    let large = [
        QuorumBounds {
            leases: [2, 1, 0],
            rounds: 1,
            guesses: AHEAD,
            ..READING
        },
        QuorumBounds {
            copies: 1,
            guesses: AHEAD,
            ..READING
        },
        QuorumBounds {
            restarts: true,
            ..READING
        },
        QuorumBounds {
            repeats: 1,
            rejoins: 1,
            rounds: 0,
            ..READING
        },
        QuorumBounds {
            apart: true,
            ..again.clone()
        },
    ];
    for limits in small_or(&large, again) {
        holds("a reader asks again", &limits);
    }
}
