//! The payments, in one of two databases.

use lock_core::once::Database;
use serde::Serialize;

/// The three tables have the same columns.
#[derive(Clone, Copy)]
pub(crate) enum Table {
    /// Has the operation as a unique column.
    Payments,
    Unguarded,
    Once,
}

#[derive(Serialize)]
pub(crate) struct Payment {
    pub(crate) id: i64,
    pub(crate) operation: String,
    pub(crate) amount: i64,
    /// The process that took the payment.
    pub(crate) process: i64,
}

/// A database in which payments are taken.
pub(crate) trait Store: Database {
    /// Takes a payment in a transaction. It takes one per operation where the operation is a unique column.
    fn pay(
        connection: &mut Self::Connection,
        table: Table,
        operation: String,
        amount: u32,
    ) -> impl Future<Output = Result<Payment, Self::Error>> + Send;

    fn list(&self, table: Table) -> impl Future<Output = Result<Vec<Payment>, Self::Error>> + Send;
}

impl Table {
    /// Creates the tables, which differ in one word: `UNIQUE`.
    pub(crate) fn create_all(id: &str) -> String {
        let create = |table: Table, unique: &str| {
            let name = table.name();
            format!(
                "CREATE TABLE IF NOT EXISTS {name} \
                 (id {id}, operation TEXT NOT NULL {unique}, amount BIGINT NOT NULL, process BIGINT NOT NULL);\n"
            )
        };
        create(Table::Payments, "UNIQUE") + &create(Table::Unguarded, "") + &create(Table::Once, "")
    }

    /// Its parameters are operation, amount and process. It returns no row if the column is unique and an earlier run has paid.
    pub(crate) fn insert(self) -> String {
        let name = self.name();
        format!(
            "INSERT INTO {name} (operation, amount, process) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING \
             RETURNING id, operation, amount, process"
        )
    }

    /// Reads the payment of an earlier run. Its parameter is the operation.
    pub(crate) fn earlier(self) -> String {
        self.select("WHERE operation = $1")
    }

    pub(crate) fn all(self) -> String {
        self.select("ORDER BY id")
    }

    fn select(self, rest: &str) -> String {
        let name = self.name();
        format!("SELECT id, operation, amount, process FROM {name} {rest}")
    }

    fn name(self) -> &'static str {
        match self {
            Table::Payments => "payments",
            Table::Unguarded => "unguarded_payments",
            Table::Once => "once_payments",
        }
    }
}
