//! The database of a layer, whose type the layer does not know.

use std::any::type_name;
use std::sync::Arc;

use http::Extensions;
use lock_core::once::{Database, Found, peek};
use lock_core::{Error, OperationId};

use super::handle::{Installed, Once};
use super::run::{AnyRun, Run, Terms};
use crate::lock::BoxFuture;

/// What a layer does with its database.
pub(crate) trait AnyDatabase: Send + Sync {
    /// Reads the record of an operation, outside of a transaction.
    fn peek(&self, operation: OperationId) -> BoxFuture<Result<Option<Found>, Error>>;

    /// Starts a run, and puts its handle into the extensions of the request.
    fn start(&self, terms: Terms, extensions: &mut Extensions) -> Arc<dyn AnyRun>;
}

/// A database of a known type.
pub(crate) struct Typed<D>(pub(crate) D);

impl<D: Database> AnyDatabase for Typed<D> {
    fn peek(&self, operation: OperationId) -> BoxFuture<Result<Option<Found>, Error>> {
        let database = self.0.clone();
        Box::pin(async move { peek(&database, operation).await })
    }

    fn start(&self, terms: Terms, extensions: &mut Extensions) -> Arc<dyn AnyRun> {
        let run = Arc::new(Run::new(self.0.clone(), terms));
        extensions.insert(Installed {
            database: type_name::<D>(),
        });
        extensions.insert(Once::of_run(Arc::clone(&run)));
        run
    }
}
