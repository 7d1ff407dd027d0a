//! Opens sellers, each with a connection and a manager of its own, as if it were a process.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lock_core::{LockManager, Renew};
use tokio::runtime::Runtime;

use crate::Result;
use crate::db::Database;
use crate::seller::Seller;

static NEXT: AtomicU32 = AtomicU32::new(0);

pub(crate) struct Market {
    pub(crate) database: Database,
    locks: String,
    /// The statements block their thread. Only the locks are async.
    runtime: Runtime,
}

impl Market {
    /// Without a URL, the locks are in a store of this process that all sellers of this market share.
    pub(crate) fn new(database: Database, redis_url: Option<String>) -> Result<Market> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        Ok(Market {
            database,
            locks: redis_url.unwrap_or_else(|| format!("memory:inventory-{number}")),
            runtime,
        })
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
