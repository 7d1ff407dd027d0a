//! Settings of a request that few services need.

use crate::api::request::LockRequest;
use crate::base::error::Error;
use crate::base::options::{Interop, Renew, Watch};

impl LockRequest {
    /// Sets whether clients of other libraries lock the same key. Default: [`Interop::Off`].
    ///
    /// Such clients stand in no queue, and ask again and again. While processes of this kit wait
    /// for one another, such a client never finds the key free. With [`Interop::On`] the key is
    /// free for 50 ms about once a second. Set it in every request for the key.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
    /// # let locks = lock_core::LockManager::in_memory();
    /// use lock_core::{Interop, Wait};
    ///
    /// // A Python worker takes "stock" by redis-py, in the same Redis.
    /// let stock = locks.lock("stock").wait(Wait::Forever).interop(Interop::On);
    /// stock.run(async { /* count it */ }).await?;
    /// # Ok(()) }
    /// ```
    pub fn interop(mut self, interop: Interop) -> Self {
        self.interop = interop;
        self
    }

    /// Sets from when on the store tells the owner at once that its key was deleted, overwritten or has expired.
    /// Default: [`Watch::AfterRenewal`].
    ///
    /// An owner whose key is deleted from outside notices it at its next renewal. A Redis server of version 7.0.5 or
    /// later also tells it, and the owner renews at once. The server does so from the first renewal on. With
    /// [`Watch::AtOnce`] that renewal comes right after the grant, for work that must stop as soon as an operator deletes
    /// its key. It costs two more commands for each lock, and one push when the lock is released.
    ///
    /// The setting of the call that acquires the lock counts. A call that enters a held lock changes nothing.
    ///
    /// # Errors
    ///
    /// A lock with [`Renew::Off`], a reader and a permit cannot be watched: the request is `Invalid`.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
    /// # let locks = lock_core::LockManager::in_memory();
    /// use lock_core::Watch;
    ///
    /// let import = locks.lock("import").watch(Watch::AtOnce);
    /// import.run(async { /* dropped soon after a `DEL` of its key */ }).await?;
    /// # Ok(()) }
    /// ```
    pub fn watch(mut self, watch: Watch) -> Self {
        self.watch = watch;
        self
    }
}

/// Checks that a lock can be watched.
pub(super) fn check_watch(watch: Watch, renew: Renew, is_share: bool) -> Result<(), Error> {
    if watch == Watch::AfterRenewal {
        return Ok(());
    }
    if renew == Renew::Off {
        return Err(Error::invalid(
            "a lock that is not renewed cannot be watched, because the server watches a key from a renewal on; leave \
             `watch` or `renew` out",
        ));
    }
    if is_share {
        return Err(Error::invalid(
            "a reader or a permit cannot be watched, because each owner beside it changes the key; leave `watch` out",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::base::options::{Renew, Watch};

    #[tokio::test]
    async fn a_check_refuses_a_watch_that_the_acquisition_refuses() {
        let locks = crate::LockManager::in_memory();
        let watched = || locks.lock("k").watch(Watch::AtOnce);
        for request in [watched().renew(Renew::Off), watched().read()] {
            let checked = request.check().expect_err("cannot be watched");
            let acquired = request.acquire().await.expect_err("cannot be watched");
            assert!(checked.is_invalid(), "{checked}");
            assert_eq!(checked.to_string(), acquired.to_string());
        }
        assert!(watched().check().is_ok());
    }
}
