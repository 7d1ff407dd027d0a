//! Passing a held lock on to another process.

use std::time::Duration;

use crate::api::guard::LockGuard;
use crate::api::handle::LockHandle;
use crate::api::manager::LockManager;
use crate::base::error::Error;
use crate::base::options::checked_pick_up_time;
use crate::base::ticket::Ticket;

impl LockHandle {
    /// Ends the lock in this process, and returns a ticket with which another process goes on with it.
    ///
    /// The lock stays taken in the store: no other caller is granted it between this owner and the next one. The next
    /// owner calls [`LockManager::resume`] within `pick_up_time`, and gets a guard with the same
    /// [fencing token](Self::fencing_token). After `pick_up_time` the key is free. The ticket works once.
    ///
    /// From the first poll of this method on, the lock is not held here any more: [`is_valid`](Self::is_valid) is
    /// `false`, a body runs on without a lock, and a release does nothing and returns `Ok`. A cooldown and a record do
    /// not travel. The next owner sets its own on its guard.
    ///
    /// # Errors
    ///
    /// * `Lost`: the lock was lost, released or passed on before.
    /// * `Unavailable`: the store did not confirm the ticket. The background gives the lock back.
    /// * `Misconfigured`: the store refuses the request. The background gives the lock back.
    /// * `Invalid`: the time is out of bounds, which are those of a ttl; a call that has
    ///   [entered](Self::scope) the lock still runs, or it is [kept](Self::keep); the lock is a reader's or a permit, that of a
    ///   [`Tick`](crate::Tick) or a [`Leadership`](crate::Leadership), or has
    ///   [several keys](LockManager::lock_all); or the locks are on several servers (`redlock://`). The lock is held as
    ///   before.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, there is no ticket, and the background gives the lock back.
    ///
    /// # Examples
    ///
    /// A request answers 202, and a worker finishes the job under the lock of the request.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
    /// # let (locks, locks_of_the_worker) = (lock_core::LockManager::connect("memory:tickets").await?, lock_core::LockManager::connect("memory:tickets").await?);
    /// use std::time::Duration;
    ///
    /// // In the web process.
    /// let guard = locks.lock("report:7").acquire().await?;
    /// let fence = guard.fencing_token();
    /// let job = guard.ticket(Duration::from_secs(300)).await?.to_string();
    ///
    /// // In the worker.
    /// let guard = locks_of_the_worker.resume(job.parse()?).await?;
    /// assert_eq!(guard.fencing_token(), fence);
    /// assert!(locks_of_the_worker.resume(job.parse()?).await.is_err(), "it works once");
    /// guard.release().await
    /// # }
    /// ```
    pub async fn ticket(&self, pick_up_time: Duration) -> Result<Ticket, Error> {
        let checked = checked_pick_up_time(pick_up_time, self.engine.max_ttl);
        let ticket = match checked {
            Ok(pick_up) => self.engine.hand_out(&self.lease, pick_up).await,
            Err(error) => Err(error),
        };
        ticket.map_err(|error| error.with_key(&self.lease.key))
    }
}

impl LockManager {
    /// Goes on with a lock that another owner has passed on by a [ticket](LockHandle::ticket).
    ///
    /// The guard has the key, the ttl and the [fencing token](LockHandle::fencing_token) of that owner, and is renewed.
    /// The manager must use the same store and the same [namespace](crate::ManagerBuilder::namespace).
    ///
    /// Of several calls with one ticket, in any processes, one gets the lock. After a failover of the server
    /// (`redis-sentinel://`, `redis-cluster://`) a second one may get it, with the same fencing token, until the first
    /// owner's next renewal. [`replica_acks`](crate::ManagerBuilder::replica_acks) closes this gap.
    ///
    /// # Errors
    ///
    /// * `Lost`: the ticket was used before, or its time is over. Lock the key anew.
    /// * `Unavailable`: the store gave no answer within the manager's
    ///   [`operation_timeout`](crate::ManagerBuilder::operation_timeout), or the manager is draining. If the request may
    ///   have arrived, the background gives the lock back, and the ticket is used up. Otherwise the ticket is as good as
    ///   before. A second call with it tells: it gets the lock or `Lost`.
    /// * `Misconfigured`: the store refuses the request. The ticket is as good as before.
    /// * `Invalid`: the locks are on several servers (`redlock://`).
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the background gives the lock back, unless another call with the ticket comes first.
    ///
    /// # Examples
    ///
    /// See [`LockHandle::ticket`].
    pub async fn resume(&self, ticket: Ticket) -> Result<LockGuard, Error> {
        let engine = self.engine();
        let acquired = engine.resume(&ticket).await;
        let acquired = acquired.map_err(|error| error.with_key(&ticket.key))?;
        Ok(LockGuard::new(engine, acquired, Duration::ZERO))
    }
}
