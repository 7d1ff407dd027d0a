//! The purpose of a lease: a tick and a leadership may end in one way only.

use super::ActiveLease;
use crate::base::error::Error;
use crate::base::sync::lock;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Role {
    #[default]
    Lock,
    /// The run of a tick, whose end keeps the key taken until the next tick.
    Tick,
    Leadership,
}

impl Role {
    /// Checks that a lease with this role may leave a record in its key.
    pub(crate) fn check_record(self) -> Result<(), Error> {
        match self {
            Role::Lock => Ok(()),
            Role::Tick => Err(Error::invalid(
                "a tick leaves no record, because its key cools down until the next tick begins; store the result of a run \
                 elsewhere, for example under `tick.ends()`",
            )),
            Role::Leadership => Err(Error::invalid(
                "a leadership leaves no record, because no candidate could lead while the record stands; store it elsewhere",
            )),
        }
    }

    /// Checks that a lease with this role may be passed on by a ticket.
    pub(crate) fn check_ticket(self) -> Result<(), Error> {
        match self {
            Role::Lock => Ok(()),
            Role::Tick => Err(Error::invalid(
                "a tick has no ticket, because another run of the same tick could then begin; let the run wait for the work",
            )),
            Role::Leadership => Err(Error::invalid(
                "a leadership has no ticket, because its candidate would stand again beside the bearer; resign, and let the \
                 other process stand as a candidate",
            )),
        }
    }
}

impl ActiveLease {
    pub(crate) fn role(&self) -> Role {
        lock(&self.state).role
    }

    /// Gives the lease its role, before any body runs under it.
    pub(crate) fn serves_as(&self, role: Role) {
        lock(&self.state).role = role;
    }
}
