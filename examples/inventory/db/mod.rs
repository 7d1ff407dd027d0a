//! Talks to SQLite, PostgreSQL and MySQL or MariaDB with the same statements.
//!
//! All values of this example are whole numbers, so that one small trait covers the three drivers.

#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
mod sqlite;

use std::sync::Arc;

use lock_core::LockGuard;
use tempfile::TempDir;

use crate::Result;

/// Makes the tables anew. Their names begin with the name of this example, because `DATABASE_URL` may name a
/// database that has other tables.
///
/// `piece` is null in all ways but one. A unique index accepts any number of nulls.
const SCHEMA: [&str; 4] = [
    "DROP TABLE IF EXISTS inventory_example_products",
    "DROP TABLE IF EXISTS inventory_example_orders",
    "CREATE TABLE inventory_example_products
        (id BIGINT PRIMARY KEY, stock BIGINT NOT NULL, version BIGINT NOT NULL, fence BIGINT NOT NULL)",
    "CREATE TABLE inventory_example_orders
        (seller BIGINT NOT NULL, number BIGINT NOT NULL, piece BIGINT UNIQUE, PRIMARY KEY (seller, number))",
];

/// One connection. Statements have `?` for each value.
pub(crate) trait Session: Send {
    /// Runs a statement that has no values.
    fn run(&mut self, statement: &str) -> Result<()>;

    /// Runs a statement that writes.
    fn write(&mut self, statement: &str, values: &[i64]) -> Result<Written>;

    /// Returns the whole numbers of the first row.
    fn read(&mut self, statement: &str, values: &[i64]) -> Result<Option<Vec<i64>>>;

    /// Asks in a transaction whether a lock of this database is held. Its next owner then waits for the commit.
    fn holds(&mut self, _: &LockGuard) -> Result<bool> {
        Err("only PostgreSQL has locks".into())
    }

    /// Begins a transaction that will write.
    fn begin(&mut self) -> Result<()> {
        self.run("BEGIN")
    }
}

/// Tells what a statement has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// The number of rows that the statement has found.
    Rows(u64),
    /// A unique index has refused the row, or the database has chosen this transaction to end a deadlock.
    Refused,
}

/// The place of the tables.
#[derive(Clone, Debug)]
pub(crate) enum Database {
    Sqlite(Arc<TempDir>),
    #[cfg(feature = "postgres")]
    Postgres(String),
    #[cfg(feature = "mysql")]
    MySql(String),
}

impl Database {
    /// Makes a SQLite file in a temporary folder, which is removed with the last clone of this value.
    pub(crate) fn sqlite() -> Result<Database> {
        let folder = tempfile::Builder::new()
            .prefix("lock-inventory-")
            .tempdir()?;
        Ok(Database::Sqlite(Arc::new(folder)))
    }

    pub(crate) fn of_url(url: &str) -> Result<Database> {
        match url.split_once("://").map_or("", |(scheme, _)| scheme) {
            #[cfg(feature = "postgres")]
            "postgres" | "postgresql" => Ok(Database::Postgres(url.to_owned())),
            #[cfg(feature = "mysql")]
            "mysql" => Ok(Database::MySql(url.to_owned())),
            #[cfg(feature = "mysql")]
            "mariadb" => Ok(Database::MySql(url.replacen("mariadb", "mysql", 1))),
            #[cfg(not(feature = "postgres"))]
            "postgres" | "postgresql" => Err("run the example with `--features postgres`".into()),
            #[cfg(not(feature = "mysql"))]
            "mysql" | "mariadb" => Err("run the example with `--features mysql`".into()),
            _ => Err("DATABASE_URL must begin with postgres://, mysql:// or mariadb://".into()),
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Database::Sqlite(_) => "SQLite",
            #[cfg(feature = "postgres")]
            Database::Postgres(_) => "PostgreSQL",
            #[cfg(feature = "mysql")]
            Database::MySql(_) => "MySQL or MariaDB",
        }
    }

    /// Returns the URL by which a manager has its locks in this database too.
    pub(crate) fn locks(&self) -> Option<&str> {
        match self {
            #[cfg(feature = "postgres")]
            Database::Postgres(url) => Some(url),
            _ => None,
        }
    }

    /// SQLite has no `SELECT … FOR UPDATE`.
    pub(crate) fn locks_rows(&self) -> bool {
        !matches!(self, Database::Sqlite(_))
    }

    pub(crate) fn session(&self) -> Result<Box<dyn Session>> {
        Ok(match self {
            Database::Sqlite(folder) => Box::new(sqlite::Sqlite::open(folder.path())?),
            #[cfg(feature = "postgres")]
            Database::Postgres(url) => Box::new(postgres::Postgres::connect(url)?),
            #[cfg(feature = "mysql")]
            Database::MySql(url) => Box::new(mysql::MySql::connect(url)?),
        })
    }

    /// Makes empty tables with one product.
    pub(crate) fn restock(&self, stock: i64) -> Result<()> {
        let mut session = self.session()?;
        for statement in SCHEMA {
            session.run(statement)?;
        }
        let product = "INSERT INTO inventory_example_products (id, stock, version, fence) VALUES (1, ?, 0, 0)";
        session.write(product, &[stock])?;
        Ok(())
    }

    pub(crate) fn drop_tables(&self) -> Result<()> {
        let mut session = self.session()?;
        SCHEMA[..2].iter().try_for_each(|drop| session.run(drop))
    }
}
