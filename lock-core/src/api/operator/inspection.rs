//! What an operator sees of one key.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::base::fence::FencingToken;
use crate::base::holder_token::HolderToken;
use crate::base::identity::Identity;

/// Shows one key at one moment. [`Operator::inspect`](super::Operator::inspect) makes it.
#[derive(Clone)]
pub struct Inspection {
    pub(super) key: Arc<str>,
    pub(super) state: KeyState,
    pub(super) remaining: Option<Duration>,
    pub(super) holders: Vec<Holder>,
    pub(super) holder_count: usize,
    pub(super) waiters: Vec<Waiter>,
    pub(super) waiter_count: usize,
    pub(super) mark: Option<FencingToken>,
}

impl Inspection {
    /// Returns the key.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns whether the key is held, or why it is taken without a holder.
    #[must_use]
    pub fn state(&self) -> KeyState {
        self.state
    }

    /// Returns how long the key stays taken if no holder renews it; `None` if it is free or has no end.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        self.remaining
    }

    /// Returns the holders: one, or several if they share the key. At most 1 000 are named.
    #[must_use]
    pub fn holders(&self) -> &[Holder] {
        &self.holders
    }

    /// Returns the number of holders, those included that are not named.
    #[must_use]
    pub fn holder_count(&self) -> usize {
        self.holder_count
    }

    /// Returns the first waiters in their order, at most 100. A list leaves them out.
    ///
    /// A process waits once for all of its tasks. A waiter that asks again and again, because no push reaches it, may
    /// not be in the queue.
    #[must_use]
    pub fn waiters(&self) -> &[Waiter] {
        &self.waiters
    }

    /// Returns the number of waiters in the queue, those included that are not named.
    #[must_use]
    pub fn waiter_count(&self) -> usize {
        self.waiter_count
    }

    /// Returns the highest fencing token that the server has noted: of any key of the server, or of its slot in a
    /// cluster. A lock that is held may have a higher one.
    #[must_use]
    pub fn high_water_mark(&self) -> Option<FencingToken> {
        self.mark
    }
}

impl fmt::Debug for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inspection")
            .field("state", &self.state)
            .field("holders", &self.holders)
            .field("waiter_count", &self.waiter_count)
            .finish_non_exhaustive()
    }
}

/// Says why a key is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyState {
    /// It is not taken.
    Free,
    /// A process or a client of another library holds it.
    Held,
    /// Its last holder has ended, and left a cooldown, or an operator has freed it a moment ago.
    CoolingDown,
    /// Its last holder has ended, and left a record. A layer of `lock_tower` with `wait` leaves its cooldowns so.
    Recorded,
}

impl fmt::Display for KeyState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KeyState::Free => "free",
            KeyState::Held => "held",
            KeyState::CoolingDown => "cooling down",
            KeyState::Recorded => "recorded",
        })
    }
}

/// Names one holder of a key, as it was seen. [`Operator::force`](super::Operator::force) frees the key from it.
#[derive(Clone)]
#[doc(alias = "owner")]
pub struct Holder {
    pub(super) key: Arc<str>,
    pub(super) token: HolderToken,
    pub(super) remaining: Option<Duration>,
    pub(super) identity: Option<Identity>,
    pub(super) process: HolderProcess,
    pub(super) held_for: Option<Duration>,
    pub(super) fence: Option<FencingToken>,
}

impl Holder {
    /// Returns the key that it holds.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns a name for this very hold, 16 hex digits.
    ///
    /// Two holds of a key have different names, those of one process too, but tasks of one process that pass the lock on, for
    /// up to a second, have one name. A page can name the hold in a form, and compare it to a new inspection. The name tells
    /// nothing of the token.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{:016x}", self.token.id())
    }

    /// Returns the host, process and label, if its manager has left them in the store.
    ///
    /// `None` for an anonymous manager, and for a client of another library.
    #[must_use]
    pub fn identity(&self) -> Option<&Identity> {
        self.identity.as_ref()
    }

    /// Returns what the holder's process answers.
    #[must_use]
    pub fn process(&self) -> HolderProcess {
        self.process
    }

    /// Returns for how long it has held the key, by its own clock, if its process answered.
    #[must_use]
    pub fn held_for(&self) -> Option<Duration> {
        self.held_for
    }

    /// Returns its fencing token, if its process answered.
    #[must_use]
    pub fn fencing_token(&self) -> Option<FencingToken> {
        self.fence
    }

    /// Returns how long the hold lasts if it is not renewed; `None` if it has no end.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        self.remaining
    }

    /// Returns whether it shares the key with others, as a reader or with a permit.
    #[must_use]
    pub fn is_share(&self) -> bool {
        self.token.is_share()
    }
}

impl fmt::Debug for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Holder")
            .field("identity", &self.identity)
            .field("process", &self.process)
            .field("held_for", &self.held_for)
            .field("remaining", &self.remaining)
            .field("fencing_token", &self.fence)
            .finish_non_exhaustive()
    }
}

/// Says what the process of a holder answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HolderProcess {
    /// It runs, and holds the key. The runtime of its work may be blocked, except on one Redis and with sentinels, where that
    /// runtime answers.
    Holds,
    /// It runs, and does not hold the key any more: it has lost or released the lock, and the store has not heard, or
    /// it has passed the lock on by a [ticket](crate::LockHandle::ticket), with which no process has gone on yet.
    Ended,
    /// It did not answer within 250 ms: it is stopped, the runtime that answers is blocked, or it is an older version.
    Silent,
    /// No process listens there. It is gone, or has no connection to the store.
    Gone,
    /// It is a client of another library.
    Foreign,
}

impl fmt::Display for HolderProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HolderProcess::Holds => "holds the lock",
            HolderProcess::Ended => "runs, and has given up the lock",
            HolderProcess::Silent => "does not answer",
            HolderProcess::Gone => "its process is gone",
            HolderProcess::Foreign => "is a client of another library",
        })
    }
}

/// Names a process that waits for a key.
#[derive(Clone, Debug)]
pub struct Waiter {
    pub(super) identity: Option<Identity>,
    pub(super) waiting_for: Duration,
}

impl Waiter {
    /// Returns the host, process and label, if its manager has left them in the store.
    #[must_use]
    pub fn identity(&self) -> Option<&Identity> {
        self.identity.as_ref()
    }

    /// Returns the time since its arrival in the queue.
    #[must_use]
    pub fn waiting_for(&self) -> Duration {
        self.waiting_for
    }
}
