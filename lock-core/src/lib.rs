//! Distributed locks that are hard to get wrong.
//!
//! Each lock is a *lease* with a deadline, and the keeper renews it while you work. The owner
//! notices a *loss* before the server may grant the key to another client. Each grant has a
//! *fencing token* that a database can check. The locks are in Redis, in PostgreSQL, or in the process for tests
//! and single-process services.
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
//! # Promises and their limits
//!
//! * At most one client believes it owns a key, provided that:
//!   * the locks are on one Redis that loses no data,
//!   * the clients of that Redis release only their own locks,
//!   * its clock and yours run at the same speed within 1 %,
//!   * its clock does not jump ahead between a grant and the deadline, and for a waiter between its
//!     last refusal and the deadline.
//!
//!   Network delays and paused processes do not matter.
//! * [`Busy`](ErrorKind::Busy) is a fact. Over several servers it can also mean that callers who
//!   asked at the same time have split the votes. A store that does not answer is
//!   [`Unavailable`](ErrorKind::Unavailable), never "busy", and so is a manager that is draining.
//! * A loss is final, and the owner notices it before the server may grant the key to another
//!   client. The exceptions are a key deleted from outside or freed by an [operator](operator), a
//!   `FLUSHALL` and a failover, because they free the key at once:
//!   * The owner then notices the loss at its next renewal, after the lesser of ttl/3 and 10 s. If
//!     the lease is not renewed, or no renewal is answered, the owner notices the loss at its
//!     deadline.
//!   * A Redis server of version 7.0.5 or later tells an owner that its key was deleted or
//!     overwritten, and the owner renews at once. This begins with the first renewal, or
//!     [right after the grant](LockRequest::watch). It does not hold for a reader and a permit.
//!   * An owner that notices a free key hands it to the first waiter.
//!   * After a `FLUSHALL` on one server, owners and waiters are told at once.
//!   * An owner whose key an operator frees is told at once, and the key stays taken for a second.
//!     An owner that cannot hear it, because it is stopped, may work beside the next one.
//!   * If only the queue was deleted, or the owner is dead, waiters ask when the lease would have
//!     ended, after 30 s at the latest.
//! * Fencing tokens rise with every grant of a key. In two cases a token can be lower than an
//!   earlier one:
//!   * The server's clock is set back below the earlier token, or the slot of the key moves to a
//!     node of the cluster whose clock is behind, and the server has no note of that token: its
//!     lease ran out (the owner crashed, or the server refused the release), or the server lost its
//!     data, or it deleted the key and refused the note (it was full, or its user lacked a right).
//!   * A replica takes the server's place, lacks the last tokens, and has a clock that is behind.
//! * A cancelled acquire leaves no key behind, at whichever await it is dropped. If the store
//!   cannot be reached, or refuses the release, a key stays for its ttl at most. A release in the
//!   background is repeated for that long.
//! * The kit does **not** undo work that was sent before a loss. Only a resource that checks the
//!   [fencing token](FencingToken) can stop the effects of a process between its last check and its
//!   write. If one atomic `UPDATE` does the whole job, you need no lock.
//!
//! # More than one server
//!
//! With `redlock://` a lock belongs to a majority of independent servers (Redlock).
//! [`LockManager::quorum`] describes which failures such a lock survives. The rest of this section
//! is about a server and its replicas.
//!
//! With `redis-sentinel://` and `redis-cluster://`, a replica takes the place of a master that
//! fails, and the replica may lack the last locks. Then **two owners of a key are possible for a
//! while**. The old owner continues until it hears that the new master does not know its lock. It
//! hears that at its next renewal, which comes after the lesser of ttl/3 and 10 s. If no server
//! answers the renewal, the old owner stops at its deadline, at most a ttl later. The new owner has
//! the higher fencing token, as long as the new master's clock is not behind. So a resource that
//! checks the tokens refuses the old owner's writes after the first write of the new owner.
//!
//! These times start when the old master stops accepting the old owner's renewals. A cluster's
//! master that is cut off stops by itself, before another master takes its place. A master of
//! sentinels does not stop. A client that reaches any sentinel leaves that master within half a
//! second. A client that is cut off together with the master can continue until the partition ends.
//! To stop its renewals soon, set `min-replicas-to-write 1` and `min-replicas-max-lag 1` on the
//! servers. [`ManagerBuilder::replica_acks`] makes sure that replicas know of a lock before it
//! counts.
//!
//! While no new master has taken over, locks are [`Unavailable`](ErrorKind::Unavailable). A waiter
//! to which a lock is handed asks the server for it first, because the clocks of different servers
//! are not compared. In a cluster the braces of a key are a hash tag, as in `order:{42}`; other
//! braces are [`Invalid`](ErrorKind::Invalid).
//!
//! # Features
//!
//! * `macros` (default): the attribute and [`lock_key!`].
//! * `redis` (default): `redis://`, `redis-sentinel://`, `redis-cluster://` and `redlock://`, and
//!   the re-exported `redis` crate, as `redis1`.
//! * `postgres`: `postgres://`, a table of PostgreSQL, and `LockHandle::check_sql`, the check of a lock in a transaction.
//! * `postgres-tls`: the same with TLS, and [`ManagerBuilder::tls_certificates`].
//! * `axum`: [`Error`] as an axum response.
//! * `metrics`: counters, histograms and gauges for the recorder of the `metrics` crate that the
//!   application has installed. The guide's page "Observing" lists them, and the spans.
//! * `tls-rustls`: TLS to Redis, as `rediss://`, `rediss-sentinel://`, `rediss-cluster://` and `redlocks://`.
//! * `cron`: [`every`](LockManager::every) takes a cron expression in a time zone, `Cron`.
//! * `once`: effect and answer in one commit of your database, in the module `once`.
//! * `operation-id`: [`OperationId`] alone.
//! * `idempotent`: the attribute of that name, by serde, and [`ErrorKind::Reused`] and [`ErrorKind::Unreadable`].
//! * `test-util`: an embedded store that fails on command, and a manual clock.
//!
//! [`LockManager`], [`LockRequest`] and [`LockGuard`] are the API without the attribute.
#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        reason = "unit tests run on the real machine"
    )
)]
#![cfg_attr(
    all(
        doc,
        feature = "cron",
        feature = "idempotent",
        feature = "once",
        feature = "redis",
        feature = "test-util"
    ),
    doc = "\nThe [guide] shows how to use locks in a service, from the first key to production."
)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod active;
mod api;
#[cfg_attr(
    not(feature = "redis"),
    allow(
        dead_code,
        unused_imports,
        reason = "the embedded store has no settings to check"
    )
)]
mod audit;
#[cfg_attr(
    not(feature = "redis"),
    allow(dead_code, reason = "only a server's answers contain tokens")
)]
mod base;
mod engine;
mod keeper;
mod lease;
#[cfg(test)]
mod model;
#[cfg(feature = "once")]
pub mod once;
mod protocol;
mod queue;
#[cfg(feature = "idempotent")]
mod remembered;
#[cfg_attr(
    not(feature = "redis"),
    allow(
        dead_code,
        reason = "the embedded store does not use all parts that a server needs"
    )
)]
mod store;
mod timer;

#[doc(hidden)]
pub use api::private as __private;
#[cfg(feature = "test-util")]
pub use api::test_util;
#[cfg(lock_sim)]
pub use base::machine::simulated as machine;
#[cfg(any(test, lock_sim))]
#[doc(hidden)]
pub use protocol::scripts as protocol_by_words;
#[cfg(all(lock_sim, feature = "postgres"))]
#[doc(hidden)]
pub use store::cell_by_words;

pub use api::builder::ManagerBuilder;
pub use api::every::{Every, Tick};
pub use api::guard::LockGuard;
pub use api::handle::LockHandle;
pub use api::held_lock::{Drained, HeldLock};
pub use api::installed::{AsLockManager, Scope};
pub use api::keep::KeptLock;
pub use api::leader::{Leader, LeaderView, Leadership};
pub use audit::{Finding, FindingKind};
pub use base::acks::Acks;
#[cfg(any(feature = "tls-rustls", feature = "postgres-tls"))]
pub use base::certificates::TlsCertificates;
#[cfg(any(feature = "redis", feature = "postgres"))]
pub use base::credentials::Credentials;
#[cfg(feature = "cron")]
pub use base::cron::Cron;
pub use base::error::{Error, ErrorKind};
pub use base::fence::FencingToken;
pub use base::from_error::FromLockError;
pub use base::key::{KeyValue, LockKey};
#[cfg(feature = "operation-id")]
pub use base::operation::OperationId;
pub use base::schedule::{Interval, Schedule};
#[cfg(feature = "macros")]
#[doc = include_str!("docs/distributed_lock.md")]
pub use lock_macros::distributed_lock;
#[cfg(feature = "idempotent")]
#[doc = include_str!("docs/idempotent.md")]
pub use lock_macros::idempotent;
#[cfg(feature = "macros")]
#[doc = include_str!("docs/lock_key.md")]
pub use lock_macros::lock_key;

#[cfg(all(doc, feature = "macros"))]
#[doc = include_str!("docs/attribute_errors.md")]
pub mod _attribute_errors {}
#[cfg(all(doc, feature = "idempotent"))]
#[doc = include_str!("docs/idempotent_errors.md")]
pub mod _idempotent_errors {}
// Its examples and links use all these features.
#[cfg(all(
    doc,
    feature = "cron",
    feature = "idempotent",
    feature = "once",
    feature = "redis",
    feature = "test-util"
))]
#[path = "docs/guide.rs"]
pub mod guide;
pub use api::acquire::{Acquire, TryAcquire};
pub use api::manager::LockManager;
pub use api::middleware;
pub use api::operator;
#[cfg(feature = "redis")]
pub use api::redis_client::RedisClient;
pub use api::request::LockRequest;
pub use api::run::Run;
pub use base::options::{Interop, OnLost, Reentrancy, ReleaseMode, Renew, Wait, Watch};
pub use base::ticket::Ticket;
pub use engine::reentry::LockScope;
#[cfg(feature = "redis")]
pub use redis as redis1;
#[cfg(feature = "idempotent")]
pub use remembered::Remember;
#[cfg(feature = "postgres")]
pub use store::POSTGRES_SCHEMA;
