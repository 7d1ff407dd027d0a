//! Seeing who holds locks, and freeing one whose holder hangs.
//!
//! An [`Operator`] is for people and their tools. It takes no lock, and a lock costs nothing more because of it.
//!
//! * [`inspect`](Operator::inspect) shows one key: its [`Holder`]s with their host, process and label, since when and
//!   for how long they hold it, their fencing tokens, and the queue.
//! * [`list`](Operator::list) shows the keys of a pattern, page by page.
//! * [`force`](Operator::force) frees a key from the holder that was *seen*. If another one holds it by then, nothing
//!   is done, so an order never hits a successor in another process.
//!
//! The guide's page "Operator" shows how to use them and what they do not promise.

mod force;
mod gather;
mod inspection;
mod list;

use std::fmt;
use std::sync::Arc;

pub use self::force::{Force, ForceFor};
pub use self::inspection::{Holder, HolderProcess, Inspection, KeyState, Waiter};
pub use self::list::Locks;
use crate::api::manager::LockManager;
use crate::base::error::Error;
pub use crate::base::identity::Identity;
use crate::base::key::LockKey;
use crate::engine::Engine;
use crate::engine::inquiry::error_of;
pub use crate::store::Forced;
use crate::store::{Inspect, Inspected, OperatorOperation, OperatorOutcome, Pattern};

/// Looks at locks and frees them, on behalf of a person. [`LockManager::operator`] makes it.
#[derive(Clone)]
pub struct Operator {
    engine: Arc<Engine>,
    name: Arc<str>,
}

impl LockManager {
    /// Returns the view of an operator, who sees all locks of the store and can free them.
    ///
    /// `name` says who that is, such as `ops@example`. It is logged with each lock that the operator frees. The guide's
    /// page "Production" has the rights that an operator needs beside those of locks.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
    /// use lock_core::LockManager;
    /// use lock_core::operator::Forced;
    ///
    /// let locks = LockManager::builder("memory:").label("checkout").connect().await?;
    /// let guard = locks.lock("order:42").acquire().await?;
    ///
    /// let operator = locks.operator("ops@example");
    /// let seen = operator.inspect("order:42").await?;
    /// let holder = &seen.holders()[0];
    /// println!("held for {:?} by {:?}", holder.held_for(), holder.identity());
    /// assert_eq!(holder.fencing_token(), Some(guard.fencing_token()));
    ///
    /// let forced = operator.force(holder).because("the job hangs, see ticket 7").await?;
    /// assert_eq!(forced, Forced::Told);
    /// guard.lost().await;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn operator(&self, name: impl Into<String>) -> Operator {
        Operator {
            engine: Arc::clone(self.engine()),
            name: name.into().into(),
        }
    }
}

impl Operator {
    /// Shows who holds a key and who waits for it.
    ///
    /// It is one round trip, and one more to read the identities. Meanwhile the processes of the holders are asked
    /// since when they hold the key, which takes 250 ms if one does not answer. Nothing is changed.
    ///
    /// # Errors
    ///
    /// * `Unavailable`: the store gave no answer.
    /// * `Misconfigured`: the store refuses the question for good, or the key holds data of another type.
    /// * `Invalid`: the key is out of bounds.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn inspect(&self, key: impl Into<LockKey>) -> Result<Inspection, Error> {
        let key = key.into().into_result()?;
        let inspected = inspected(&self.engine, &key).await?;
        let mut seen = gather::all(&self.engine, vec![(key, inspected)], true).await;
        seen.pop()
            .ok_or_else(|| Error::unavailable("the store's answer was not understood"))
    }

    /// Lists the locks whose keys fit a pattern, page by page.
    ///
    /// In the pattern `*` stands for any text, and each other character for itself: `order:*`, `*:42`, `*`.
    /// Every master of a cluster is asked. The list holds keys that are taken: held, cooling down, or with a record.
    ///
    /// A list is no snapshot. It has each lock that is held for as long as the listing takes, and may have or lack any
    /// other. A server walks through all of its keys for it, in small steps, so on a server with very many other keys
    /// a list takes long, and delays no one else.
    ///
    /// With the namespace `""` a lock of another library looks like any other text of the server, so such locks are
    /// left out.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
    /// # let locks = lock_core::LockManager::in_memory();
    /// let _guard = locks.lock("order:42").acquire().await?;
    /// let operator = locks.operator("ops@example");
    /// let mut list = operator.list("order:*");
    /// while let Some(page) = list.next_page().await? {
    ///     for seen in page {
    ///         println!("{}: {} wait", seen.key(), seen.waiter_count());
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    pub fn list(&self, pattern: &str) -> Locks {
        Locks::new(&self.engine, Pattern::new(pattern))
    }

    /// Prepares to free a key, or one share of it, from this holder. [`Force::because`] says why.
    ///
    /// # What it does
    ///
    /// The store frees the key if this very holder still has it. Else it does nothing. In the same step:
    ///
    /// * The next fencing token is above all tokens of the holder. If the store cannot note that, nothing is done.
    /// * The holder's process is told. Its lock is [`Lost`](crate::ErrorKind::Lost) at once: a body is dropped, and
    ///   [`lost`](crate::LockHandle::lost) resolves.
    /// * If a process listens there, the key cools down for one second, so that the work can stop. Then the first
    ///   waiter gets it. If no process listens, the first waiter gets the key at once.
    ///
    /// One line at the level WARN names the operator, the reason, the holder and its fencing token, but not the key.
    ///
    /// # What it does not promise
    ///
    /// This is the only call that can give a key two owners. A process that is stopped (`SIGSTOP`, a suspended machine)
    /// or whose runtime is blocked hears the order late, and works on until then. A resource that checks the fencing
    /// token refuses its writes. Without such a check, end that process first.
    ///
    /// A client of another library hears nothing, and its key is freed at once.
    ///
    /// A failover can lose an order, also with [`replica_acks`](crate::ManagerBuilder::replica_acks), because it waits for
    /// no replica. The key is the holder's again on the new master, so inspect it after a failover.
    pub fn force(&self, holder: &Holder) -> Force {
        Force::new(&self.engine, &self.name, holder)
    }
}

/// Asks the store about one key.
async fn inspected(engine: &Engine, key: &Arc<str>) -> Result<Inspected, Error> {
    let inspect = OperatorOperation::Inspect(Inspect {
        key: Arc::clone(key),
        register: None,
    });
    match engine.operate(inspect).await {
        Ok(OperatorOutcome::Inspected(inspected)) => Ok(*inspected),
        Ok(_) => Err(Error::unavailable("the store's answer was not understood")),
        Err(failure) => Err(error_of(failure, key)),
    }
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operator")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
