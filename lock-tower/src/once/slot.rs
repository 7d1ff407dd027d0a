//! The slot in which the layer and the handler exchange the transaction of a request.

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lock_core::once::{Database, Tx};

use super::refusal::Refusal;

/// Holds the transaction while no guard of the handler has it.
pub(super) struct Slot<D: Database>(Mutex<State<D>>);

enum State<D: Database> {
    /// The handler has not asked for it.
    Unused,
    Beginning,
    Idle(Tx<D>),
    /// A guard has it.
    Lent,
    Refused(Refusal),
    /// The handler has answered or is gone, and the transaction is the layer's.
    Closed(Option<Tx<D>>),
}

/// The state in which the handler has left its transaction.
pub(crate) enum AtEnd {
    Unused,
    /// It is open. `keeps_errors`: an error commits it, too.
    Open {
        keeps_errors: bool,
    },
    /// A guard that outlives the handler has it.
    Lent,
    Refused(Refusal),
}

/// The transaction that a handler asks for.
pub(super) enum Entered<'a, D: Database> {
    /// It was begun before.
    Again(Tx<D>),
    First(Beginning<'a, D>),
}

/// A transaction that is being begun. If it is dropped, the next call begins another one.
pub(super) struct Beginning<'a, D: Database>(&'a Slot<D>);

impl<D: Database> Slot<D> {
    pub(super) fn new() -> Self {
        Self(Mutex::new(State::Unused))
    }

    /// Lends the transaction, or has the caller begin it.
    pub(super) fn enter(&self) -> Result<Entered<'_, D>, Refusal> {
        let mut state = self.state();
        match mem::replace(&mut *state, State::Lent) {
            State::Idle(tx) => Ok(Entered::Again(tx)),
            State::Unused => {
                *state = State::Beginning;
                Ok(Entered::First(Beginning(self)))
            }
            State::Refused(refusal) => {
                *state = State::Refused(refusal.clone());
                Err(refusal)
            }
            other => {
                *state = other;
                Err(Refusal::Lent)
            }
        }
    }

    /// Takes the transaction back from a guard, or rolls it back if the handler is gone.
    pub(super) fn put_back(&self, tx: Tx<D>) {
        let mut state = self.state();
        if matches!(*state, State::Lent) {
            *state = State::Idle(tx);
            return;
        }
        // Its drop may wake tasks.
        drop(state);
        drop(tx);
    }

    /// Closes the slot, because the handler has answered.
    pub(super) fn close(&self, keeps_errors: bool) -> AtEnd {
        let mut state = self.state();
        let (tx, at_end) = match mem::replace(&mut *state, State::Closed(None)) {
            State::Unused => (None, AtEnd::Unused),
            State::Idle(tx) => (Some(tx), AtEnd::Open { keeps_errors }),
            State::Beginning | State::Lent => (None, AtEnd::Lent),
            State::Refused(refusal) => (None, AtEnd::Refused(refusal)),
            State::Closed(tx) => (tx, AtEnd::Lent),
        };
        *state = State::Closed(tx);
        at_end
    }

    /// Closes the slot, and takes the transaction out of it.
    pub(super) fn take(&self) -> Option<Tx<D>> {
        match mem::replace(&mut *self.state(), State::Closed(None)) {
            State::Closed(tx) => tx,
            State::Idle(tx) => Some(tx),
            _ => None,
        }
    }

    fn state(&self) -> MutexGuard<'_, State<D>> {
        // Every statement leaves the state consistent, so a panic while it is locked does no harm.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<D: Database> Beginning<'_, D> {
    /// Lends the transaction that was begun. If the handler is gone meanwhile, it is rolled back.
    pub(super) fn end(self, begun: Result<Tx<D>, Refusal>) -> Result<Tx<D>, Refusal> {
        let mut state = self.0.state();
        if !matches!(*state, State::Beginning) {
            drop(state);
            return Err(Refusal::Lent);
        }
        *state = match &begun {
            Ok(_) => State::Lent,
            Err(refusal) => State::Refused(refusal.clone()),
        };
        begun
    }
}

impl<D: Database> Drop for Beginning<'_, D> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        if matches!(*state, State::Beginning) {
            *state = State::Unused;
        }
    }
}
