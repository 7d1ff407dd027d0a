//! Exactly once: an effect and its answer in one commit of your database (feature `once`).
//!
//! A process can be killed after it has charged a card and before it has recorded that. A lock cannot close this gap, because
//! the lock ends with the process. Your database can: the effect and a record of it are written in **one transaction**.
//!
//! A run *claims* its operation first, by a row in the table `lockkit_once`. Then it does its work in the same transaction,
//! *completes* the row with the answer, and commits. A repetition finds the row, and gets the answer.
//!
//! # What is guaranteed
//!
//! For one operation and the life of its record, the writes in the transaction are committed at most once, in one commit with
//! the answer. Every repetition gets this answer. This needs no lease, no clock of a process and no Redis. It needs one
//! database that keeps its commits. The lives of records end by the clock of the database; with SQLite, that is the clock of the
//! machine, and a clock that jumps forward ends them early.
//!
//! It is not guaranteed:
//!
//! * for effects outside of the transaction: other connections, other services;
//! * after the record's life, which must therefore exceed the time for which a client retries;
//! * after a failover to a replica that lacks the last commits: the database loses effect and record together, so the operation
//!   runs again, and its effect exists once. Use synchronous replication.
//!
//! # How to use it
//!
//! * In a tower service: `lock_tower::Replay::in_database`.
//! * A function, or the consumer of a queue: `#[idempotent(key = …, remember = …, tx = tx)]`, in the transaction of the caller.
//! * A closure, in a transaction of its own: `run` and `retry` (feature `idempotent`, as the attribute).
//! * [`Tx`] and [`Claim`] are what these are made of. They serve other middleware.
//!
//! The kit depends on no driver. [`once_sqlx!`](crate::once_sqlx) and [`once_deadpool!`](crate::once_deadpool) make a
//! [`Database`] of your version of sqlx or deadpool-postgres, and the trait is short enough to implement for another one.
//!
//! # The table
//!
//! [`SCHEMA_POSTGRES`] and [`SCHEMA_SQLITE`] are migrations, and [`create_table`] runs them. [`check`] at startup finds a missing
//! table or right. [`sweep`] deletes records whose life is over; run it in one job:
//!
//! ```
//! # async fn example<D: lock_core::once::Database>(locks: lock_core::LockManager, db: D) -> Result<(), lock_core::Error> {
//! use std::time::Duration;
//! use lock_core::once;
//!
//! once::create_table(&db).await?;
//! let minute = Duration::from_secs(60);
//! tokio::spawn(async move {
//!     let job = locks.every("lockkit-once", minute);
//!     job.run(|_| async {
//!         if let Err(error) = once::sweep(&db).await {
//!             eprintln!("old records stay for a minute more: {error}");
//!         }
//!     })
//!     .await
//! });
//! # Ok(()) }
//! ```

mod adapters;
mod admin;
mod claim;
mod database;
mod failure;
mod in_order;
#[cfg(feature = "idempotent")]
pub(crate) mod remembered;
#[cfg(feature = "idempotent")]
mod run;
mod statements;
mod tx;

pub use admin::{check, create_table, forget, sweep};
pub use claim::{Claim, Claimed, Found, Settled, peek};
pub use database::{CommitError, Database, Dialect, Row, Value};
pub use in_order::{in_background, in_order};
#[cfg(feature = "idempotent")]
pub use run::{Memory, retry, run};
pub use statements::{SCHEMA_POSTGRES, SCHEMA_SQLITE};
pub use tx::Tx;
