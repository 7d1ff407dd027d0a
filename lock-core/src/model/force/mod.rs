//! A model of orders of an operator: every order of messages between processes, the server, and the operator.
//!
//! The server's steps are those of `force.lua`, `acquire.lua`, `extend.lua` and `release.lua`. Messages arrive in any
//! order, late, and an order twice. A process may stop for a while, or lose its connection. Time does not pass by itself.
//! A lease may run out at any moment at which its process does not believe in it, or stands still. The grace may end at
//! any moment at which no running process still has to hear of the order.
//!
//! In every state:
//!
//! * An order takes no key from a holder that the operator has not seen.
//! * A fencing token after an order is above all tokens that the freed holder may use, and above all used ones.
//! * Only a freed holder that has stopped, or that had no connection when the order came, works beside the next owner.
//! * No renewal and no release of a freed holder changes anything.

mod parts;
mod server;
mod world;

use super::visit::visit;
use parts::{ForceBounds, ForceFault, ForceWrong, START};
use world::ForceWorld;

const SMALL: ForceBounds = ForceBounds {
    processes: 2,
    leases: 1,
    orders: 1,
    order_copies: 1,
    failures: 1,
    expiries: 0,
    renewals: 1,
    ticks: 0,
    steps_back: 0,
    mark: 0,
    fault: None,
};

/// The mark is ahead of the clock, because the clock was set back before.
const BEHIND: ForceBounds = ForceBounds {
    mark: START + 3,
    renewals: 0,
    ..SMALL
};

/// The clock is set back while an order is on its way which names the holder's fencing token.
const STEPS_BACK: ForceBounds = ForceBounds {
    steps_back: 1,
    renewals: 0,
    ..SMALL
};

fn search(bounds: ForceBounds) -> Result<usize, (ForceWrong, usize)> {
    visit(ForceWorld::new(bounds), |world| world.next(bounds))
}

#[test]
fn an_order_frees_the_holder_that_was_seen_and_the_next_owner_is_safe() {
    let still = ForceBounds {
        renewals: 0,
        ..SMALL
    };
    let mut worlds = vec![
        SMALL,
        BEHIND,
        STEPS_BACK,
        ForceBounds {
            order_copies: 2,
            ..still
        },
        ForceBounds {
            expiries: 1,
            ..still
        },
        ForceBounds { ticks: 1, ..still },
        ForceBounds { orders: 2, ..still },
        ForceBounds {
            leases: 2,
            failures: 0,
            ..still
        },
        ForceBounds {
            processes: 3,
            failures: 0,
            ..still
        },
    ];
    if super::worlds::is_large() {
        worlds.extend([
            ForceBounds {
                order_copies: 2,
                expiries: 1,
                ticks: 1,
                ..SMALL
            },
            ForceBounds { leases: 2, ..SMALL },
            ForceBounds {
                processes: 3,
                ..still
            },
            ForceBounds {
                failures: 2,
                ..SMALL
            },
        ]);
    }
    for bounds in worlds {
        let states = search(bounds).expect("nothing is wrong");
        println!("{bounds:?}: {states} states");
        assert!(states > 1_000, "{states}");
    }
}

#[test]
fn each_fault_of_an_order_is_found() {
    use ForceFault::*;
    for (fault, bounds, wrong) in [
        (ByKey, SMALL, ForceWrong::UnseenHolder),
        (MarkNotRaised, SMALL, ForceWrong::TokenTooLow),
        (MarkWithoutPasses, SMALL, ForceWrong::TokenTooLow),
        (MarkWithoutClock, SMALL, ForceWrong::TokenTooLow),
        (MarkWithoutMark, BEHIND, ForceWrong::TokenTooLow),
        (MarkWithoutHolder, STEPS_BACK, ForceWrong::TokenTooLow),
        (NoGrace, SMALL, ForceWrong::TwoOwners),
        (HolderNotTold, SMALL, ForceWrong::TwoOwners),
        (ToldBeforeGrant, SMALL, ForceWrong::TwoOwners),
        (OwnTokenStays, SMALL, ForceWrong::LateCommand),
    ] {
        let fault = Some(fault);
        let (found, steps) = search(ForceBounds { fault, ..bounds }).expect_err("it is found");
        println!("{fault:?}: {found:?} after {steps} steps");
        assert_eq!(found, wrong, "{fault:?}");
    }
}
