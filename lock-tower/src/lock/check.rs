//! The check of a request's lock in a transaction of the handler.

use lock_core::Error;

use super::LockContext;

impl LockContext {
    /// Returns the key of the lock, without the namespace.
    ///
    /// It is `None` if the request [has no lock](Self::is_locked). A key may contain what the client sent, so it does not
    /// belong into a log.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        Some(self.lock.as_ref()?.handle.key())
    }

    /// Returns SQL that checks the lock inside a transaction of the handler, if the locks are in its PostgreSQL.
    ///
    /// Run the query with [`key`](Self::key) as `$1` and [`fencing_token`](Self::fencing_token) as `$2`, in the transaction
    /// that does the work. A row says that the request has its lock, and no other request gets the key before the commit. No
    /// row says that the lock was lost: roll back. [`LockHandle::check_sql`](lock_core::LockHandle::check_sql) has the
    /// details.
    ///
    /// # Errors
    ///
    /// `Invalid` if the locks are not in PostgreSQL, for the lock of a [fallback](crate::Outage::Fallback), for a reader or a
    /// permit, and if the request [has no lock](Self::is_locked).
    ///
    /// # Examples
    ///
    /// ```
    /// use http::StatusCode;
    /// use lock_tower::LockContext;
    ///
    /// async fn deduct(lock: LockContext, mut client: tokio_postgres::Client) -> Result<StatusCode, Box<dyn std::error::Error>> {
    ///     let (Some(key), Some(fence)) = (lock.key(), lock.fencing_token().map(i64::from)) else {
    ///         return Ok(StatusCode::SERVICE_UNAVAILABLE); // the layer let the request pass without a lock
    ///     };
    ///     let tx = client.transaction().await?;
    ///     tx.execute("UPDATE stock SET amount = amount - 1 WHERE sku = 42", &[]).await?;
    ///     if tx.query_opt(lock.check_sql()?, &[&key, &fence]).await?.is_none() {
    ///         return Ok(StatusCode::CONFLICT); // the lock is another request's; dropping `tx` rolls back
    ///     }
    ///     tx.commit().await?;
    ///     Ok(StatusCode::CREATED)
    /// }
    /// # let _ = deduct;
    /// ```
    pub fn check_sql(&self) -> Result<&'static str, Error> {
        match &self.lock {
            Some(lock) => lock.handle.check_sql(),
            None => Err(Error::invalid(
                "the layer let this request pass without a lock, so there is no lock to check; ask `is_locked` first",
            )),
        }
    }
}
