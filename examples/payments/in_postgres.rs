//! The payments in PostgreSQL (feature `postgres`), without TLS.

use std::error::Error;

use deadpool_postgres::{Config, PoolError, Runtime};
use lock_core::once;
use tokio_postgres::types::ToSql;
use tokio_postgres::{NoTls, Row};

use crate::store::{Payment, Store, Table};

lock_core::once_deadpool!(
    /// A pool of connections.
    pub(crate) struct Postgres
);

/// Has one process at a time create the tables. Two at once would collide in the database's catalogue.
const SCHEMA_LOCK: &str = "SELECT pg_advisory_xact_lock(7031)";

/// Opens the database that the URL names.
pub(crate) async fn open(url: &str) -> Result<Postgres, Box<dyn Error>> {
    let mut config = Config::new();
    config.url = Some(url.to_owned());
    let db = Postgres(config.create_pool(Some(Runtime::Tokio1), NoTls)?);
    let tables = Table::create_all("BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY");
    let create = format!("BEGIN; {SCHEMA_LOCK}; {tables} COMMIT");
    db.0.get().await?.batch_execute(&create).await?;
    once::create_table(&db).await?;
    Ok(db)
}

impl Store for Postgres {
    async fn pay(
        connection: &mut Self::Connection,
        table: Table,
        operation: String,
        amount: u32,
    ) -> Result<Payment, PoolError> {
        let insert = connection.prepare_cached(&table.insert()).await?;
        let (amount, process) = (i64::from(amount), i64::from(std::process::id()));
        let values: [&(dyn ToSql + Sync); 3] = [&operation, &amount, &process];
        if let Some(row) = connection.query_opt(&insert, &values).await? {
            return Ok(read(&row)?);
        }
        let earlier = connection
            .query_one(&table.earlier(), &[&operation])
            .await?;
        Ok(read(&earlier)?)
    }

    async fn list(&self, table: Table) -> Result<Vec<Payment>, PoolError> {
        let rows = self.0.get().await?.query(&table.all(), &[]).await?;
        Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
    }
}

fn read(row: &Row) -> Result<Payment, tokio_postgres::Error> {
    Ok(Payment {
        id: row.try_get(0)?,
        operation: row.try_get(1)?,
        amount: row.try_get(2)?,
        process: row.try_get(3)?,
    })
}
