//! Enums of the layer's settings that decide what happens in an exceptional case.

use lock_core::LockManager;

/// Decides what happens to a request that lacks the value its key is made from.
///
/// There is no third choice. One lock shared by all unidentified clients would let each of them
/// block all the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MissingKey {
    /// The layer answers with 400 and the code `lock_key_missing`.
    #[default]
    Reject,
    /// The request runs without a lock, and its [`LockContext`](crate::LockContext) says so.
    Pass,
}

/// Decides what happens to a running handler when its request is dropped.
///
/// A request is dropped when its client disconnects or when a timeout outside of the layer ends it. The decision also
/// applies to a handler that its layer [runs without a lock](crate::LockContext#requests-without-a-lock). A request of a
/// method that is not locked is dropped as without the layer.
///
/// If one lock layer is inside of another, the outer one decides. So a timeout between the two ends the handler, as one
/// inside of both does, because the outer lock is released then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Disconnect {
    /// The handler runs to its end and holds the lock until then.
    ///
    /// No work is left half done, but no client receives its result.
    #[default]
    RunToEnd,
    /// The handler is dropped at its next await, and the key stays taken for the layer's ttl.
    ///
    /// Requests that the handler sent to other services may still take effect, and a repeated
    /// request must not overlap with them. Refusals have the code `lock_cooling_down`. The time is
    /// the layer's [ttl](crate::LockLayer::ttl). It is a cooldown, so it outlives the process. Beside
    /// [`permits`](crate::LockLayer::permits) the layer is [`Invalid`](crate::LockLayer::checked). The key of a reader, and
    /// of a request without a lock, is not held.
    HoldUntilTtl,
    /// The handler is dropped at its next await, and the lock is released.
    ///
    /// This suits a handler that is one transaction, because a drop rolls the transaction back.
    Release,
}

/// Decides when the lock of a handled request is released.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReleaseAt {
    /// Before the head of the response is sent.
    ///
    /// A client that has read the response finds the lock free. With the feature `replay`, a gRPC answer whose
    /// length is unknown holds the lock until its end, because its trailers say whether the call has succeeded.
    #[default]
    Head,
    /// When the body of the response has ended, has failed or was dropped.
    ///
    /// This suits responses that are produced while they are sent. The layer renews the lock until
    /// then, however slowly the client reads. The cooldown of a successful response counts from that
    /// moment, even if the client disconnects halfway. A body that ends with an error has no
    /// cooldown.
    ///
    /// If the body has no known length or has trailers, its end is sent when the lock is released or when
    /// [`release_timeout`](crate::LockLayer::release_timeout) is over. Another body of known length has no
    /// such end, so the layer may hold the lock for a moment after the client has read all of it.
    BodyEnd,
}

/// Decides what happens to a request when the store does not answer.
///
/// It applies to [`Unavailable`](lock_core::ErrorKind::Unavailable) only. A store that will never
/// accept the request is a configuration error, which is answered with 500 in every case. A manager
/// that [drains](LockManager::drain) belongs to a process that ends, which is answered with 503 in
/// every case.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Outage {
    /// The layer answers with 503 and `Retry-After`.
    #[default]
    Reject,
    /// The request runs without a lock, and its [`LockContext`](crate::LockContext) says so.
    ///
    /// Duplicates run during an outage. With `Replay::in_database` (feature `once`) none does: the database refuses the
    /// claim of a second run, so this is the best choice there.
    Pass,
    /// The request runs under a lock of this manager alone.
    ///
    /// Pass a manager made by [`LockManager::in_memory`](LockManager::in_memory). Layers whose keys
    /// belong together need the same manager.
    ///
    /// Such a layer takes the lock of the store first for every request, and the lock of this manager
    /// after it. Two requests of one key therefore never run together *in this process*:
    /// neither during an outage, nor after it, nor in between. The layer does **not** separate
    /// requests that reach different processes while the store is away. The fencing tokens of those
    /// requests follow the clocks of the processes.
    ///
    /// With the feature `replay`, this manager keeps the answers of the requests that ran, or lost their lock,
    /// while the store was away, and their duplicates get them in this process only. While the store is away, a
    /// duplicate of a request whose answer is in the store gets 503, if this process ran that request. In another
    /// process it runs again.
    ///
    /// [`LockManager::forget`] at the store frees a key in this process, too, if the store has confirmed the release
    /// of the request within [`release_timeout`](crate::LockLayer::release_timeout). Otherwise, and for a cooldown of
    /// [several keys](crate::LockLayer::and), forget the key at this manager, too.
    ///
    /// Drain this manager at shutdown, too.
    Fallback(LockManager),
}

/// Decides the format of a refusal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefusalFormat {
    /// `application/problem+json` (RFC 9457) for every client.
    #[default]
    Problem,
    /// A small HTML page for clients that prefer `text/html`, and problem+json for all others.
    ///
    /// Browsers prefer `text/html` when they submit a native form. The header `Accept` decides.
    ByAccept,
}

/// Decides how much a layer with [replay](crate::LockLayer::replay) remembers of a request.
#[cfg(feature = "replay")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remember {
    /// Every duplicate gets the answer, which stands in the store for its lifetime.
    Answer,
    /// The request is done, and its answer is not kept, because it is secret or too large.
    ///
    /// Duplicates are refused with 409 `lock_done`, without `Retry-After`.
    Done,
    /// Nothing is kept. The next request with this key runs.
    Nothing,
}
