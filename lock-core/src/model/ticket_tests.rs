//! The searches of the model of tickets.

use super::super::visit::visit;
use super::*;

fn search(bounds: Bounds) -> Result<usize, (TicketWrong, usize)> {
    visit(Tickets::new(bounds), |world| {
        let all = world.next(bounds)?;
        for after in &all {
            after.check(bounds.fault)?;
        }
        Ok(all)
    })
}

const SMALL: Bounds = Bounds {
    users: 2,
    losses: 1,
    doubles: 1,
    fault: None,
};

#[test]
fn a_ticket_is_used_once_whatever_happens_to_its_messages() {
    for bounds in [
        SMALL,
        Bounds { losses: 2, ..SMALL },
        Bounds {
            users: 3,
            losses: 0,
            doubles: 0,
            ..SMALL
        },
    ] {
        let states = search(bounds).expect("nothing is wrong");
        println!("{states} states");
        assert!(states > 1_000, "{states}");
    }
}

#[test]
fn each_fault_of_a_ticket_is_found() {
    for (fault, wrong) in [
        (TokenAsTicket, TicketWrong::TwoOwners),
        (SwapDoesNotCompare, TicketWrong::OwnerWithoutKey),
        (SwapCreates, TicketWrong::Orphan),
        (SecondCopyRefused, TicketWrong::Orphan),
        (SwapNotUndone, TicketWrong::Orphan),
        (SecondTokenFirst, TicketWrong::Orphan),
    ] {
        let fault = Some(fault);
        let (found, steps) = search(Bounds { fault, ..SMALL }).expect_err("the fault is found");
        println!("{fault:?}: {found:?} after {steps} steps");
        assert_eq!(found, wrong, "{fault:?}");
    }
}
