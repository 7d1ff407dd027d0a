//! A model of hints: a held lease, a server that watches its key, and changes by other clients.
//!
//! The real [`Lease`](crate::lease::Lease) decides when to renew. The server's step is that of `extend.lua` and
//! `extend_watch.lua` behind `CLIENT CACHING YES`, with `NOLOOP`: a write of the connection itself drops its entry and
//! pushes nothing. Answers and pushes arrive in any order and late, pushes twice, and none of them once the connection
//! has ended. Time passes in ticks. The process sends a renewal at the tick at which it is due.
//!
//! In every state:
//!
//! * Each change of a watched key is pushed, and leads to a renewal, at once or when the limit allows it.
//! * Only an answer, or time, ends the lease.
//! * Two renewals by hints are 250 ms apart. A push about an earlier lease of the key makes none.
//! * After the last change no chain of hints goes on, and no lease is left whose key was taken.

mod fault;
mod world;

use super::seen::print;
use super::visit::visit;
use fault::{HintFault, HintWrong};
use world::{HintWorld, Limits};

fn search(limits: Limits) -> Result<usize, (HintWrong, usize)> {
    visit(HintWorld::new(limits), |world| {
        if print(world).is_multiple_of(16) || world.now == 0 {
            world.comes_to_rest(limits.fault)?;
        }
        world.next(limits)
    })
}

const SMALL: Limits = Limits {
    ends: 14,
    changes: 2,
    copies: 0,
    losses: 0,
    timeouts: 0,
    watched: true,
    fault: None,
};

#[test]
fn a_hint_makes_a_renewal_due_whose_answer_decides_and_no_chain_goes_on() {
    let mut worlds = vec![
        SMALL,
        Limits {
            watched: false,
            ..SMALL
        },
        Limits {
            changes: 1,
            copies: 1,
            ..SMALL
        },
        Limits {
            changes: 1,
            losses: 1,
            ..SMALL
        },
        Limits {
            ends: 8,
            changes: 1,
            timeouts: 1,
            ..SMALL
        },
    ];
    if super::worlds::is_large() {
        worlds.extend([
            Limits {
                changes: 3,
                ..SMALL
            },
            Limits {
                ends: 28,
                changes: 1,
                losses: 1,
                ..SMALL
            },
            Limits {
                changes: 1,
                timeouts: 1,
                ..SMALL
            },
            Limits {
                ends: 8,
                changes: 1,
                losses: 1,
                timeouts: 1,
                ..SMALL
            },
        ]);
    }
    for limits in worlds {
        let states = search(limits).expect("nothing is wrong");
        println!("{limits:?}: {states} states");
        assert!(states > 1_000, "{states}");
    }
}

#[test]
fn each_fault_of_a_hint_is_found() {
    use HintFault::*;
    for (fault, limits, wrong) in [
        (PushEndsTheLease, SMALL, HintWrong::LostWithoutAnswer),
        (OwnRenewalsArePushed, SMALL, HintWrong::NeverRests),
        (NoLimit, SMALL, HintWrong::TooManyRenewals),
        (Loop, SMALL, HintWrong::NeverRests),
        (KeyNotReadAgain, SMALL, HintWrong::ChangeNotPushed),
        (ForgottenInTheLimit, SMALL, HintWrong::NoRenewal),
        (ForgottenInFlight, SMALL, HintWrong::NoRenewal),
        (
            OfAnEarlierLease,
            Limits {
                watched: false,
                ..SMALL
            },
            HintWrong::HintOfAnEarlierLease,
        ),
        (
            EndOfConnectionForgotten,
            Limits { losses: 1, ..SMALL },
            HintWrong::NoRenewal,
        ),
    ] {
        let fault = Some(fault);
        let (found, steps) = search(Limits { fault, ..limits }).expect_err("it is found");
        println!("{fault:?}: {found:?} after {steps} steps");
        assert_eq!(found, wrong, "{fault:?}");
    }
}
