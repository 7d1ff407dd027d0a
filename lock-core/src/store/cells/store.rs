//! A store over cells, as the engine sees it.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use super::Cells;
use super::driver::CellStore;
use crate::audit::Finding;
use crate::base::share::ShareLimit;
use crate::store::{
    BoxFuture, Events, Failure, Lane, Operation, Outcome, Place, Store, StoreLimits,
};

/// The most permits of a key, because a document is written whole.
const MOST_PERMITS: u32 = 1_000;

impl<C: Cells + 'static> Store for CellStore<C> {
    fn execute(&self, operation: Operation, _: Lane) -> BoxFuture<'_, Outcome> {
        Box::pin(self.run(operation))
    }

    fn background(self: Arc<Self>, events: Events) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let identity = events.identity.clone();
            tokio::join!(
                self.cells.background(events),
                self.keep_card(identity),
                self.handed_off.check(|look| self.run(look)),
            );
        })
    }

    fn ready(&self) -> BoxFuture<'_, Result<(), Failure>> {
        self.cells.ready()
    }

    fn ping(&self) -> BoxFuture<'_, Result<(), Failure>> {
        self.cells.ping()
    }

    fn audit(&self) -> BoxFuture<'_, Result<Vec<Finding>, Failure>> {
        self.cells.audit()
    }

    fn place(&self, _: &[Arc<str>]) -> Place {
        Place::Together
    }

    fn limits(&self) -> StoreLimits {
        StoreLimits {
            late_duplicate: self.cells.late_duplicate(),
            // The number of a write leaves no more fencing tokens.
            long_cohorts: false,
            ..StoreLimits::default()
        }
    }

    fn check_sql(&self) -> Option<&'static str> {
        self.cells.check_sql()
    }

    fn refuses_share(&self, limit: ShareLimit) -> Option<&'static str> {
        (!limit.is_reader() && limit.count() > MOST_PERMITS).then_some(
            "a lock in this store has at most 1 000 permits, because all its owners are in one value; use Redis for more",
        )
    }

    fn refuses_interop(&self) -> Option<&'static str> {
        Some(
            "`interop` is for clients of other libraries on a Redis server, and this store has none; leave it out",
        )
    }
}

impl<C: Cells> Debug for CellStore<C> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.cells.fmt(f)
    }
}
