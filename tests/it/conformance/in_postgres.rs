//! Makes managers on a PostgreSQL that all tests share.

use std::sync::LazyLock;

use lock_core::{LockManager, ManagerBuilder};
use lock_tests::SqlServer;

use crate::postgres::Table;

/// A namespace of its own, because all tests share the server.
#[derive(Debug)]
pub(super) struct Postgres(Table<'static>);

impl Postgres {
    pub(super) fn in_namespace(namespace: &str) -> Postgres {
        static SERVER: LazyLock<SqlServer> =
            LazyLock::new(|| SqlServer::postgres_with(&["fsync=off", "max_connections=500"]));
        Postgres(Table::new(&SERVER, namespace))
    }

    pub(super) fn builder(&self) -> ManagerBuilder {
        LockManager::builder(self.0.server().url()).namespace(self.0.namespace())
    }

    pub(super) fn table(&self) -> &Table<'static> {
        &self.0
    }
}
