//! The handle by which a handler gets its transaction.

use std::any::type_name;
use std::fmt;
use std::sync::Arc;

use http::Extensions;
use lock_core::once::Database;

use super::refusal::{Refusal, Refused};
use super::run::Run;
use super::transaction::OnceTx;
use crate::rejection::{Rejection, RejectionKind};

/// The transaction of a request behind a layer with [`Replay::in_database`](crate::Replay::in_database).
///
/// The layer puts it into the extensions of the request. With the feature `axum` it is also an extractor. It does nothing
/// until [`begin`](Self::begin), so a request whose body arrives slowly, or that fails before, holds no connection.
///
/// `D` is the type of the layer's database. Another type is answered with 500.
///
/// # Examples
///
/// With axum:
///
/// ```no_run
/// # #[cfg(feature = "axum")] {
/// use axum::http::StatusCode;
/// use lock_core::once::Database;
/// use lock_tower::{Once, Refused};
///
/// async fn pay<D: Database>(once: Once<D>, amount: String) -> Result<(StatusCode, String), Refused> {
///     let amount: u64 = match amount.parse() {
///         Ok(amount) => amount,
///         Err(_) => return Ok((StatusCode::BAD_REQUEST, "no amount".to_owned())), // no transaction yet
///     };
///     let mut tx = once.begin().await?;
///     let connection = &mut *tx; // INSERT INTO payments …
///     # let _ = connection;
///     Ok((StatusCode::CREATED, format!("{amount} paid"))) // the layer commits, and then answers
/// }
/// # }
/// ```
///
/// In a plain tower service:
///
/// ```
/// use http::{Request, Response, StatusCode};
/// use lock_core::once::Database;
/// use lock_tower::Once;
///
/// async fn pay<D: Database, B>(request: Request<B>) -> Response<String> {
///     let once = match Once::<D>::of(request.extensions()) {
///         Ok(once) => once,
///         Err(refused) => return refused.rejection().problem(),
///     };
///     let mut tx = match once.begin().await {
///         Ok(tx) => tx,
///         Err(refused) => return refused.rejection().problem(),
///     };
///     let connection = &mut *tx; // INSERT INTO payments …
///     # let _ = connection;
///     Response::new("paid".to_owned())
/// }
/// ```
pub struct Once<D: Database>(Arc<Run<D>>);

/// Marks, in its extensions, a request that has a transaction of a layer.
#[derive(Clone)]
pub(crate) struct Installed {
    /// The type of the layer's database.
    pub(super) database: &'static str,
}

impl<D: Database> Once<D> {
    pub(super) fn of_run(run: Arc<Run<D>>) -> Self {
        Self(run)
    }

    /// Returns the handle in the extensions of a request.
    ///
    /// # Errors
    ///
    /// The route is behind no layer with [`Replay::in_database`](crate::Replay::in_database), the layer does not lock the
    /// method, or its database has another type than `D`. The refusal is a 500, and the log says which.
    pub fn of(extensions: &Extensions) -> Result<Self, Refused> {
        if let Some(once) = extensions.get::<Self>() {
            return Ok(once.clone());
        }
        match extensions.get::<Installed>() {
            Some(installed) => tracing::error!(
                asked = type_name::<D>(),
                has = installed.database,
                "a handler asks for the transaction of another database than its layer has; use the same type in `Once` and \
                 in `Replay::in_database`"
            ),
            None => tracing::error!(
                asked = type_name::<D>(),
                "a handler asks for a transaction, and no layer with `Replay::in_database` has handled its request; put its \
                 route behind one that locks its method"
            ),
        }
        Err(Refused::new(Rejection::new(RejectionKind::Invalid)))
    }

    /// Begins the transaction of the request, and claims its operation in it.
    ///
    /// A later call continues the same transaction, after the guard of the call before was dropped. Dropping the guard ends
    /// nothing. When the handler has answered, the layer commits a success and rolls everything else back.
    ///
    /// With [`wait`](crate::LockLayer::wait), a claim of another run is waited for. The time counts once more here, after
    /// that for the lock.
    ///
    /// A request without a key ([`MissingKey::Pass`](crate::MissingKey::Pass)) gets a transaction without a claim.
    ///
    /// # Errors
    ///
    /// The handler returns the refusal, or any other response. **The layer replaces it** by the right one:
    ///
    /// | found | answer |
    /// | --- | --- |
    /// | the operation is done | the recorded answer, 422 for another request, or 409 `lock_done` without an answer |
    /// | another run works on it | 409 `lock_busy` |
    /// | the lock of the request was lost before | 503 `lock_unavailable` |
    /// | the database gives no answer, or no connection | 503 `lock_unavailable` |
    /// | the table or a right is missing | 500 `lock_misconfigured` |
    ///
    /// While a guard of an earlier call is alive, and after the handler has returned, it is 500 `lock_transaction_lent`. Such
    /// a refusal is not replaced.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the transaction is rolled back, and the next call begins another one.
    pub async fn begin(&self) -> Result<OnceTx<D>, Refused> {
        let has_key = self.0.has_key();
        match self.0.begin().await {
            Ok(tx) => Ok(OnceTx::new(Arc::clone(&self.0), tx)),
            Err(refusal) => {
                if matches!(refusal, Refusal::Lent) {
                    tracing::error!(
                        layer = self.0.layer(),
                        "a handler asks for its transaction while another guard has it, or after the handler has answered; \
                         drop the first guard before, and use the transaction in the handler only"
                    );
                }
                Err(Refused::new(refusal.rejection(has_key)))
            }
        }
    }
}

impl<D: Database> Clone for Once<D> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<D: Database> fmt::Debug for Once<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once").finish_non_exhaustive()
    }
}
