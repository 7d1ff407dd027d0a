//! The worlds without a seeded fault.

use super::world::{READ, ShareLimits, ShareWorld, Wanted};
use crate::model::explore::explore;
use crate::model::worlds::is_large;

pub(super) const WRITE: Wanted = Wanted::Exclusive;
pub(super) const ONE: Wanted = Wanted::Share(1);
pub(super) const TWO: Wanted = Wanted::Share(2);

/// Two readers and a writer, without a failure.
pub(super) const PLAIN: ShareLimits = ShareLimits {
    clients: &[(READ, 3), (READ, 3), (WRITE, 3)],
    ticks: 4,
    losses: 0,
    doubles: 0,
    crashes: 0,
    deletions: 0,
    gives_up: false,
    renews: false,
    downgrade: None,
    fault: None,
};

/// A writer that may go on as a reader, beside a reader and another writer.
pub(super) const DOWNGRADE: ShareLimits = ShareLimits {
    clients: &[(WRITE, 3), (READ, 3), (READ, 3), (WRITE, 3)],
    downgrade: Some((0, 1)),
    ..PLAIN
};

/// A writer that goes on as a reader, and whose first question may arrive a second time.
pub(super) const LATE_QUESTION: ShareLimits = ShareLimits {
    clients: &[(WRITE, 2), (READ, 2), (WRITE, 2)],
    ticks: 2,
    doubles: 1,
    ..DOWNGRADE
};

/// Searches all states of a world.
#[track_caller]
fn holds(name: &str, limits: &ShareLimits) {
    let found = explore::<ShareWorld>(limits, if is_large() { 16 } else { 256 });
    println!(
        "{name}: {} states, {} steps deep, longest wait {}",
        found.states, found.depth, found.longest_wait
    );
    assert_eq!(found.wrong, None, "{name}, after {} states", found.states);
    // A ttl and a grant.
    assert!(found.longest_wait <= 5, "{}", found.longest_wait);
}

/// Chooses the size of a number by `LOCK_MODEL`.
fn large(large: u8, small: u8) -> u8 {
    if is_large() { large } else { small }
}

macro_rules! holds {
    ($($name:ident: $limits:expr;)+) => {$(
        #[test]
        fn $name() {
            holds(stringify!($name), &$limits);
        }
    )+};
}

holds! {
    readers_and_a_writer_take_turns: ShareLimits {
        ticks: large(2, 1),
        renews: true,
        ..PLAIN
    };
    readers_beside_a_writer_that_gives_up: ShareLimits {
        ticks: large(3, 1),
        gives_up: true,
        ..PLAIN
    };
    two_permits_for_three_clients: ShareLimits {
        clients: &[(TWO, 3), (TWO, 3), (TWO, 3)],
        ticks: large(4, 2),
        ..PLAIN
    };
    permits_whose_limits_differ: ShareLimits {
        clients: &[(Wanted::Share(3), 3), (TWO, 3), (ONE, 3)],
        ticks: large(5, 2),
        ..PLAIN
    };
    readers_and_permits: ShareLimits {
        clients: &[(READ, 3), (TWO, 3), (READ, 3)],
        ticks: large(4, 2),
        ..PLAIN
    };
    permits_beside_a_writer: ShareLimits {
        clients: &[(TWO, 3), (ONE, 3), (WRITE, 3)],
        ticks: large(4, 2),
        ..PLAIN
    };
    ttls_that_differ: ShareLimits {
        clients: &[(READ, 4), (READ, 2), (WRITE, 2)],
        ticks: large(2, 1),
        renews: true,
        ..PLAIN
    };
    a_client_that_crashes: ShareLimits {
        ticks: large(4, 2),
        crashes: 1,
        ..PLAIN
    };
    a_message_that_is_lost: ShareLimits {
        ticks: large(3, 1),
        losses: 1,
        ..PLAIN
    };
    a_message_that_arrives_twice: ShareLimits {
        ticks: large(2, 0),
        doubles: 1,
        ..PLAIN
    };
    a_message_that_arrives_twice_and_late: ShareLimits {
        clients: &[(TWO, 3), (WRITE, 3)],
        ticks: large(4, 2),
        doubles: 1,
        renews: true,
        ..PLAIN
    };
    a_writer_that_goes_on_as_a_reader: ShareLimits {
        clients: &[(WRITE, 3), (READ, 3), (READ, 3), (READ, 3)],
        ticks: large(3, 0),
        ..DOWNGRADE
    };
    a_downgrade_between_two_writers: ShareLimits {
        ticks: large(2, 1),
        renews: is_large(),
        ..DOWNGRADE
    };
    a_downgrade_that_crashes: ShareLimits {
        clients: &[(WRITE, 3), (READ, 3), (READ, 3)],
        ticks: large(6, 3),
        crashes: 1,
        ..DOWNGRADE
    };
    a_downgrade_that_is_given_up_and_arrives_late: ShareLimits {
        clients: &[(WRITE, 3), (READ, 3), (READ, 3)],
        ticks: large(6, 2),
        losses: 1,
        gives_up: true,
        ..DOWNGRADE
    };
    a_downgrade_beside_a_message_that_arrives_twice: ShareLimits {
        ticks: large(3, 2),
        renews: is_large(),
        ..LATE_QUESTION
    };
    a_key_that_is_deleted: ShareLimits {
        ticks: large(3, 1),
        deletions: 1,
        ..PLAIN
    };
    two_writers_and_a_reader: ShareLimits {
        clients: &[(WRITE, 3), (READ, 3), (WRITE, 3)],
        ticks: large(3, 2),
        gives_up: is_large(),
        ..PLAIN
    };
}
