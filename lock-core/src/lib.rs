//! Distributed locks that are hard to get wrong.
//!
//! A lock here is a *lease* with a deadline that renews itself while you work, a *loss* that is
//! noticed before the server may give the key away, and a *fencing token* that a database can check.
//! It lives in Redis, or in the process for tests and single-process services.
//!
//! ```
//! # #[cfg(feature = "macros")] mod example {
//! use lock_core::{LockManager, distributed_lock};
//!
//! #[distributed_lock(key = "order:<uid>", ttl = "10s")]
//! async fn place_order(uid: u64) -> Result<String, lock_core::Error> {
//!     Ok(format!("an order of user {uid}")) // runs once at a time for each user
//! }
//!
//! #[tokio::main]
//! # pub
//! async fn main() -> Result<(), lock_core::Error> {
//!     let locks = LockManager::connect("memory:").await?; // "redis://127.0.0.1:6379"
//!     locks.install()?;
//!     place_order(42).await?;
//!     Ok(())
//! }
//! # }
//! # #[cfg(feature = "macros")] fn main() { example::main().unwrap() }
//! # #[cfg(not(feature = "macros"))] fn main() {}
//! ```
//!
//! # What is promised, and what is not
//!
//! * Two owners of one key never believe in it at the same time, whatever the network delays or the
//!   processes pause, on one Redis that loses no data, whose clients release only their own locks,
//!   and whose clock runs as fast as yours within 1 % without jumping ahead between a grant (to a
//!   waiter: its last refusal) and the deadline.
//! * [`Busy`](ErrorKind::Busy) is a fact; over several servers it can also mean that callers who asked at
//!   once have split the votes. A store that does not answer is [`Unavailable`](ErrorKind::Unavailable), never
//!   "busy"; so is a manager that is draining.
//! * Loss is one-way, and noticed before the server may give the key away. A key that is deleted
//!   from outside, a `FLUSHALL` or a failover gives it away at once: noticed at the next renewal, at
//!   most the lesser of ttl/3 and 10 s later, or, where the lease is not renewed or no renewal is answered,
//!   at its deadline. The owner that notices gives a free key to the first waiter.
//!   A `FLUSHALL` on one server is told to owners and waiters at once. Waiters whose queue alone was deleted, or
//!   whose owner is dead, ask when the lease would have ended, at the latest after 30 s.
//! * Fencing tokens rise with every grant of a key. There are two exceptions, in which a token can be lower than
//!   those before: the server's clock is set back, and an owner crashes or the server loses its data before the
//!   clock has caught up; or a replica takes the server's place that lacks the last tokens and whose clock is behind.
//! * A cancelled acquire leaves no key behind, at whichever await it is dropped (if the store is out
//!   of reach, or refuses the release: none for longer than its ttl). A release in the background is repeated
//!   for as long.
//! * **Not** promised: that work sent before the loss is undone. What a process does between its
//!   last check and the effect, only a resource can stop that checks the
//!   [fencing token](FencingToken). If one atomic `UPDATE` does the whole job, you need no lock.
//!
//! # More than one server
//!
//! With `redlock://` the lock is a majority's of servers that know nothing of one another:
//! [`LockManager::quorum`] says what that survives. The rest of this is about a server and its replicas.
//!
//! With `redis-sentinel://` and `redis-cluster://` a replica takes the place of a master that fails, and
//! may not have heard of the last locks. Then **two owners of a key are possible for a while**: the old
//! one until it hears that the new master does not know its lock. That is at its next renewal, the lesser
//! of ttl/3 and 10 s after the last one, or where no server answers it at its deadline, at most a ttl after
//! it. Whoever gets the key from the new master has the higher fencing token, as long as that server's
//! clock is not behind, so a resource that checks them refuses the old owner's writes from the first
//! write of the new one on.
//!
//! That clock starts when the old owner's renewals are not accepted any more. A cluster's master that is
//! cut off stops by itself, before another takes its place. A master of sentinels does not: a client that
//! reaches any of them leaves it within half a second, but one that is cut off together with it can go
//! on for as long as that lasts. Set `min-replicas-to-write 1` and `min-replicas-max-lag 1` there: then
//! nothing is renewed soon after. [`ManagerBuilder::replica_acks`] makes sure that replicas know of a lock
//! before it counts.
//!
//! While nobody has taken the place yet, locks are [`Unavailable`](ErrorKind::Unavailable). A waiter that
//! is given a lock asks the server for it first: the servers' clocks are not compared with one another.
//! In a cluster the braces of a key belong to a hash tag, `order:{42}`; others are
//! [`Invalid`](ErrorKind::Invalid).
//!
//! # Features
//!
//! * `macros` (default): the attribute and [`lock_key!`].
//! * `redis` (default): `redis://`, `redis-sentinel://` and `redis-cluster://`, and the `redis` crate re-exported.
//! * `axum`: [`Error`] as an axum response.
//! * `tls-rustls`: TLS, as `rediss://`, `rediss-sentinel://`, `rediss-cluster://` and `redlocks://`.
//! * `test-util`: an embedded store that fails on command, and a clock to move by hand.
//!
//! The parts of a lock without the attribute are in [`LockManager`], [`LockRequest`] and
//! [`LockGuard`].
#![cfg_attr(docsrs, feature(doc_cfg))]

mod active;
mod api;
#[cfg_attr(
    not(feature = "redis"),
    allow(
        dead_code,
        unused_imports,
        reason = "the embedded store has no settings to look at"
    )
)]
mod audit;
#[cfg_attr(
    not(feature = "redis"),
    allow(dead_code, reason = "only a server's answers have tokens to read")
)]
mod base;
mod engine;
mod keeper;
mod lease;
#[cfg(test)]
mod model;
mod queue;
#[cfg_attr(
    not(feature = "redis"),
    allow(
        dead_code,
        reason = "the embedded store has no use for all that a server needs"
    )
)]
mod store;
mod timer;

#[doc(hidden)]
pub use api::private as __private;
#[cfg(feature = "test-util")]
pub use api::test_util;

pub use api::builder::ManagerBuilder;
pub use api::from_error::FromLockError;
pub use api::guard::LockGuard;
pub use api::handle::LockHandle;
pub use api::held_lock::{Drained, HeldLock};
pub use api::installed::{AsLockManager, Scope};
pub use audit::{Finding, FindingKind};
pub use base::acks::Acks;
pub use base::error::{Error, ErrorKind};
pub use base::fence::FencingToken;
pub use base::key::{KeyValue, LockKey};
#[cfg(feature = "macros")]
#[doc = include_str!("docs/distributed_lock.md")]
pub use lock_macros::distributed_lock;
#[cfg(feature = "macros")]
#[doc = include_str!("docs/lock_key.md")]
pub use lock_macros::lock_key;

#[cfg(all(doc, feature = "macros"))]
#[doc = include_str!("docs/attribute_errors.md")]
pub mod _attribute_errors {}
pub use api::acquiring::{Acquire, TryAcquire};
pub use api::manager::LockManager;
pub use api::request::LockRequest;
pub use api::run::Run;
pub use base::options::{Interop, OnLost, Reentrancy, ReleaseMode, Renew, Wait};
pub use engine::reentry::LockScope;
#[cfg(feature = "redis")]
pub use redis;
