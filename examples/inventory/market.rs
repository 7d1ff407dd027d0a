//! Opens sellers, each with a connection and a manager of its own, as if it were a process.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lock_core::{LockManager, Renew};
use tokio::runtime::Runtime;

use crate::Result;
use crate::db::Database;
use crate::seller::Seller;
use crate::ways::Way;

static NEXT: AtomicU32 = AtomicU32::new(0);

pub(crate) struct Market {
    pub(crate) database: Database,
    locks: String,
    /// The statements block their thread. Only the locks are async.
    runtime: Runtime,
}

impl Market {
    /// Without a Redis, the locks are in the PostgreSQL of the stock, or in a store of this process that all sellers of this
    /// market share.
    pub(crate) fn new(database: Database, redis_url: Option<String>) -> Result<Market> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let url = redis_url.or_else(|| database.locks().map(str::to_owned));
        Ok(Market {
            locks: url.unwrap_or_else(|| format!("memory:inventory-{number}")),
            database,
            runtime,
        })
    }

    /// Returns the ways that are possible with this database and these locks.
    pub(crate) fn ways(&self) -> impl Iterator<Item = Way> {
        let has_its_locks = self.database.locks() == Some(self.locks.as_str());
        let ways = Way::ALL.into_iter();
        ways.filter(move |way| *way != Way::CheckedLock || has_its_locks)
    }

    pub(crate) fn seller(&self, number: i64, ttl: Duration, renew: Renew) -> Result<Seller> {
        Ok(Seller {
            session: self.database.session()?,
            locks_rows: self.database.locks_rows(),
            locks: self.runtime.block_on(LockManager::connect(&self.locks))?,
            runtime: self.runtime.handle().clone(),
            ttl,
            renew,
            number,
            attempts: 0,
        })
    }
}
