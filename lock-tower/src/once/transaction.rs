//! The guard by which a handler uses its transaction.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use lock_core::once::{Database, Tx};

use super::run::Run;

/// The transaction of a request, while its handler uses it.
///
/// It dereferences to the connection of the database: with sqlx, `&mut *tx` runs a query. Dropping it puts the
/// transaction back for the layer, without I/O, and the layer commits or rolls back. A value that outlives its handler, in a
/// task or in the body of the response, makes the layer answer 500 `lock_transaction_lent`; when it is dropped, the
/// transaction is rolled back.
///
/// The handler must not send COMMIT, ROLLBACK or a statement that commits by itself, and must not ignore the error of a
/// statement: in PostgreSQL the transaction has failed with it, and the layer answers 503 in place of a success.
///
/// # Examples
///
/// A refusal of the bank stays in a table, although the request fails:
///
/// ```
/// use http::{Response, StatusCode};
/// use lock_core::once::Database;
/// use lock_tower::{Once, Refused};
///
/// async fn pay<D: Database>(once: Once<D>) -> Result<Response<String>, Refused> {
///     let mut tx = once.begin().await?;
///     // INSERT INTO declined …
///     tx.keep(); // commits what was written, whatever the status is
///     let mut declined = Response::new("declined".to_owned());
///     *declined.status_mut() = StatusCode::PAYMENT_REQUIRED;
///     Ok(declined)
/// }
/// ```
#[must_use = "it is the transaction in which the effects of the handler belong"]
pub struct OnceTx<D: Database> {
    /// `None` only while it is dropped.
    tx: Option<Tx<D>>,
    run: Arc<Run<D>>,
}

impl<D: Database> OnceTx<D> {
    pub(super) fn new(run: Arc<Run<D>>, tx: Tx<D>) -> Self {
        Self { tx: Some(tx), run }
    }

    /// Commits what was written, also if the handler answers with an error.
    ///
    /// Without it, an error leaves no writes. It decides nothing about the memory of the request: an error is not
    /// remembered unless [`Remember`](crate::Remember) says so, and the next request with the key runs.
    pub fn keep(&mut self) {
        self.run.keep_errors();
    }

    /// Returns the transaction of lock-core, for functions that claim operations of their own.
    ///
    /// All claims are committed together with the effect of the request.
    pub fn tx(&mut self) -> &mut Tx<D> {
        self.tx.as_mut().expect(HELD)
    }
}

const HELD: &str = "only the drop takes the transaction";

impl<D: Database> Deref for OnceTx<D> {
    type Target = D::Connection;

    fn deref(&self) -> &D::Connection {
        self.tx.as_ref().expect(HELD)
    }
}

impl<D: Database> DerefMut for OnceTx<D> {
    fn deref_mut(&mut self) -> &mut D::Connection {
        self.tx()
    }
}

impl<D: Database> Drop for OnceTx<D> {
    fn drop(&mut self) {
        if let Some(tx) = self.tx.take() {
            self.run.put_back(tx);
        }
    }
}

impl<D: Database> fmt::Debug for OnceTx<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnceTx").finish_non_exhaustive()
    }
}
