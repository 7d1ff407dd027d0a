//! The settings of a replay whose records are in the database of the application.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use lock_core::once::{Claim, Database};
use lock_core::{Error, OperationId};

use super::{Replay, ReplayRules};
use crate::once::Typed;

impl Replay {
    /// Keeps the answers in the database of the application, in one commit with the effects of the handlers.
    ///
    /// For one key and the life of its record, the writes that a handler makes through [`Once::begin`](crate::Once::begin)
    /// are committed **at most once, in one commit with the answer**. Each success that a client gets is the committed answer,
    /// and every repetition gets the same one. This needs no lease, no clock of a process and no Redis. It needs one database
    /// that keeps its commits.
    ///
    /// It does not cover effects on other connections or in other services, and repetitions after the
    /// [life](Self::lasting) of a record.
    ///
    /// | answer of the handler | transaction | record |
    /// | --- | --- | --- |
    /// | 2xx and 303, without a gRPC error | committed | the answer |
    /// | the same, with [`Remember::Done`](crate::Remember), too large or of unknown length | committed before the first byte | done, without the answer |
    /// | the same, with [`Remember::Nothing`](crate::Remember) | committed | none; a repetition runs |
    /// | any other | rolled back | none; a repetition runs |
    /// | any other, with [`Remember::Answer`](crate::Remember) or `Done` | rolled back | the answer, in a commit of its own |
    /// | any other, after [`OnceTx::keep`](crate::OnceTx::keep) | committed | as above |
    /// | none: a panic, or a handler that was dropped | rolled back | none |
    ///
    /// * The lock is a courtesy. It refuses duplicates before they take a connection. If it is lost, nothing is done twice: the
    ///   database refuses the claim of the second run. So [`Outage::Pass`](crate::Outage::Pass) is safe in such a layer, and so
    ///   is `memory:` as the store of several processes.
    /// * If a COMMIT is not answered, the layer asks the database by another claim. The client gets the answer, or 503
    ///   `lock_unavailable` after a rollback. It gets 503 `lock_outcome_unknown` while nothing tells. In each case it sends the
    ///   same request again.
    /// * A record that cannot be read is answered with 500 `lock_unreadable`, and its handler does not run again.
    /// * A gRPC answer is read to its trailers before it is committed, as far as
    ///   [`largest_body`](Self::largest_body) and [`body_timeout`](crate::LockLayer::body_timeout) permit.
    /// * `shadow`, and a second layer with replay inside of this one, are errors. A plain lock layer outside or inside is fine.
    /// * Several keys are possible, and so is `lasting` up to ten years.
    ///
    /// The database needs a table: [`create_table`](lock_core::once::create_table) or a migration at the start of the service,
    /// and [`sweep`](lock_core::once::sweep) in a job.
    ///
    /// # Examples
    ///
    /// ```
    /// use lock_core::LockManager;
    /// use lock_core::once::Database;
    /// use lock_tower::{KeyTemplate, LockLayer, Replay, Replaying};
    ///
    /// #[derive(Clone)]
    /// struct User { id: u64 }
    ///
    /// // `db` is made by `lock_core::once_sqlx!` or `lock_core::once_deadpool!`.
    /// fn layer<D: Database>(locks: LockManager, db: D) -> Result<LockLayer<Replaying>, Box<dyn std::error::Error>> {
    ///     let key = KeyTemplate::new("pay:<ext.user>:<idempotency-key>")
    ///         .extension("user", |user: &User| user.id);
    ///     Ok(LockLayer::template(locks, key)?.replay(Replay::in_database(db))?)
    /// }
    /// ```
    pub fn in_database<D: Database>(database: D) -> Self {
        Self::default().with(|rules| rules.database = Some(Arc::new(Typed(database))))
    }
}

impl ReplayRules {
    /// Checks the life of a record in a database.
    pub(super) fn check_database(&self) -> Result<(), Error> {
        if self.database.is_some() {
            Claim::new(OperationId::new("", []), self.lifetime)?;
        }
        Ok(())
    }

    /// Reports a handler that has not used its transaction, once for each layer.
    pub(crate) fn warn_unused(&self, layer: &'static str) {
        if !self.warned_unused.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                layer,
                "a handler behind `in_database` has not used its transaction, so its effects and its answer are not in one \
                 commit; write through `Once::begin`"
            );
        }
    }
}
