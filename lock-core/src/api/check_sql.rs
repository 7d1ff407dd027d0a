//! The check of a lock in a transaction of the application.

use crate::api::handle::LockHandle;
use crate::base::error::Error;

impl LockHandle {
    /// Returns SQL that checks this lock inside a transaction of the application's own database.
    ///
    /// Run the query with [`key`](Self::key) as `$1` and [`fencing_token`](Self::fencing_token) as `$2`, in the transaction
    /// that does the work. A row says that the lock is held, and no other owner gets the key until the transaction has ended.
    /// No row says that the lock has ended: roll back.
    ///
    /// So an owner that was paused cannot commit behind its successor, and no table of the application needs a column for
    /// fencing tokens. The manager must be connected to the same database, by `postgres://` (feature `postgres`).
    ///
    /// **Where in the transaction.** One query is enough, and it can be anywhere before the commit. At `REPEATABLE READ` and
    /// `SERIALIZABLE` make it the first one: a lock that was renewed since the first statement fails it by the error 40001. Do not
    /// run it inside a savepoint that may be rolled back: the key is then free for the next owner.
    ///
    /// **Cost.** One round trip and the lock of one row. Renewals pass by the transaction. A release waits for it, and so do
    /// `force` and the next owner after the ttl. So commit before you release, keep the transaction short, and
    /// set `idle_in_transaction_session_timeout`, because the transaction of a process that is stopped keeps the key taken.
    ///
    /// **Rights.** The role needs `SELECT` and `UPDATE` on `lockkit.cell`, and `USAGE` on the schema.
    ///
    /// **Until when.** Ask for the SQL before you release. From then on the lock is not passed on from task to task in this
    /// process, because the next owner has to wait for your transaction.
    ///
    /// A lock of several keys is checked key by key, each of [`keys`](Self::keys) with the same fencing token. The key must
    /// not contain a NUL character.
    ///
    /// # Errors
    ///
    /// `Invalid` if the manager is not connected to PostgreSQL, and for a reader or a permit, which is not the only owner.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(mut client: tokio_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let locks = lock_core::LockManager::connect("postgres://shop@db/shop").await?;
    /// let guard = locks.lock("stock:42").acquire().await?;
    ///
    /// let tx = client.transaction().await?;
    /// tx.execute("UPDATE stock SET amount = amount - 1 WHERE sku = 42", &[]).await?;
    /// let fence = i64::from(guard.fencing_token());
    /// match tx.query_opt(guard.check_sql()?, &[&guard.key(), &fence]).await? {
    ///     Some(_) => tx.commit().await?,
    ///     None => tx.rollback().await?, // The lock is another owner's.
    /// }
    /// guard.release().await?;
    /// # Ok(()) }
    /// ```
    pub fn check_sql(&self) -> Result<&'static str, Error> {
        if self.is_shared() {
            return Err(Error::invalid(
                "a reader or a permit cannot be checked by SQL, because it is not the only owner; check a plain lock",
            ));
        }
        let sql = self.engine.store.check_sql().ok_or_else(|| {
            Error::invalid(
                "only a lock on PostgreSQL can be checked by SQL; connect the manager to the database by postgres://",
            )
        })?;
        for lease in self.lease.members() {
            lease.will_be_checked();
        }
        Ok(sql)
    }
}

#[cfg(test)]
mod tests {
    use crate::{ErrorKind, LockManager};

    #[tokio::test]
    async fn a_lock_of_another_store_cannot_be_checked() {
        let locks = LockManager::in_memory();
        let guard = locks.lock("order:42").acquire().await.expect("free");
        let error = guard.check_sql().expect_err("no database");
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("postgres://"), "{error}");
    }
}
