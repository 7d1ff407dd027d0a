//! The choices of a layer: what happens when something is not as it should be.

use lock_core::LockManager;

/// What happens to a request from which no key can be made, because the header (or cookie, …) that
/// names its user is not there.
///
/// There is no third choice: one lock shared by all that do not say who they are would let any of
/// them stop all the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MissingKey {
    /// It is answered with 400 and the code `lock_key_missing`.
    #[default]
    Reject,
    /// It runs without a lock, and its [`LockContext`](crate::LockContext) says so.
    Pass,
}

/// What happens to a handler whose request is dropped while it runs: its client has gone, or a
/// timeout outside has ended it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Disconnect {
    /// It runs to its end and holds the lock until then. Nothing is half done; the work is done for
    /// nobody.
    #[default]
    RunToEnd,
    /// It is dropped at its next await, as without this layer, and the key stays taken for the
    /// layer's [ttl](crate::LockLayer::ttl): what it has sent to others may still take effect, and a
    /// repeated request must not overlap with that. Refusals say `lock_cooling_down`.
    HoldUntilTtl,
    /// It is dropped at its next await, as without this layer, and the lock is released. For
    /// handlers that are one transaction, which a drop rolls back.
    Release,
}

/// When the lock of a request that was handled is given back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReleaseAt {
    /// Before the head of the answer is sent: a client that has read it finds the lock free.
    #[default]
    Head,
    /// When the body of the answer has ended, failed or was dropped: for answers that are made while
    /// they are sent. The lock is renewed until then, however slowly the client reads. The cooldown
    /// of an answer that was a success by its head counts from then on, also if its client leaves
    /// half way; not if its body ends with an error.
    ///
    /// The end of a body without a known length is sent when the lock is released (or
    /// [`release_timeout`](crate::LockLayer::release_timeout) is over); one with a known length has
    /// no such end, and the lock may be held for a moment after the client has read all of it.
    BodyEnd,
}

/// What happens to a request when the store gives no answer.
///
/// It is for [`Unavailable`](lock_core::ErrorKind::Unavailable) only: a store that will never accept
/// what it is asked is a mistake in the set-up, and 500 whatever is chosen here. A manager that
/// [drains](LockManager::drain) is no outage, but a process that ends: 503.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Outage {
    /// It is answered with 503 and `Retry-After`. Without the store nothing is done.
    #[default]
    Reject,
    /// It runs without a lock, and its [`LockContext`](crate::LockContext) says so. During an outage
    /// duplicates run.
    Pass,
    /// It runs under a lock of this manager alone: give it one of
    /// [`LockManager::in_memory`](LockManager::in_memory), and the same one to all layers whose keys
    /// belong together.
    ///
    /// Such a layer takes the lock of this manager first for every request, and that of the store
    /// beside it: two requests of one key never run together *in this process*, in an outage, after
    /// it and in between. It does **not** keep requests apart that reach different processes while
    /// the store is away, and the fencing tokens of those rise by the processes' own clocks.
    ///
    /// Drain this manager too at shutdown.
    Fallback(LockManager),
}

/// What a refusal looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefusalFormat {
    /// `application/problem+json` (RFC 9457), for whoever asks.
    #[default]
    Problem,
    /// A small HTML page for requests whose `Accept` prefers `text/html`, as native forms do;
    /// problem+json for all others.
    ByAccept,
}
