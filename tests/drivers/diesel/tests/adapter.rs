use std::borrow::Cow;
use std::error::Error;

use diesel::deserialize::{self, QueryableByName};
use diesel::pg::Pg;
use diesel::query_builder::{BoxedSqlQuery, SqlQuery};
use diesel::result::{DatabaseErrorKind, Error as DieselError};
use diesel::row::NamedRow;
use diesel::sql_types::{BigInt, Binary, Nullable};
use diesel_async::pooled_connection::PoolError::QueryError;
use diesel_async::pooled_connection::deadpool::{Object, Pool, PoolError};
use diesel_async::{AnsiTransactionManager, AsyncPgConnection, RunQueryDsl, TransactionManager};
use lock_core::once::{Database, Dialect, Row, Value};

#[derive(Clone)]
pub struct Db(pub Pool<AsyncPgConnection>);

/// A connection inside a transaction. If it is dropped, it is closed, and the pool opens a new one.
pub struct Tx(Option<Object<AsyncPgConnection>>);

impl Drop for Tx {
    fn drop(&mut self) {
        drop(self.0.take().map(Object::take));
    }
}

impl Database for Db {
    type Tx = Tx;
    type Connection = AsyncPgConnection;
    type Error = PoolError;

    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    async fn begin(&self, statement: &'static str) -> Result<Tx, PoolError> {
        let mut tx = Tx(Some(self.0.get().await?));
        // diesel must know of the transaction. Else `connection.transaction(…)` in a handler would commit it.
        let begun =
            AnsiTransactionManager::begin_transaction_sql(Self::connection(&mut tx), statement);
        begun.await.map_err(failed)?;
        Ok(tx)
    }

    async fn read(
        &self,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> Result<Option<Row>, PoolError> {
        one(&mut *self.0.get().await?, statement, values).await
    }

    async fn query(
        tx: &mut Tx,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> Result<Option<Row>, PoolError> {
        one(Self::connection(tx), statement, values).await
    }

    async fn execute(
        tx: &mut Tx,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> Result<u64, PoolError> {
        let rows = bound(statement, values).execute(Self::connection(tx)).await;
        Ok(rows.map_err(failed)? as u64)
    }

    fn connection(tx: &mut Tx) -> &mut AsyncPgConnection {
        tx.0.as_mut().expect("only its end takes the connection")
    }

    fn connection_ref(tx: &Tx) -> &AsyncPgConnection {
        tx.0.as_ref().expect("only its end takes the connection")
    }

    async fn commit(mut tx: Tx) -> Result<(), PoolError> {
        let committed = AnsiTransactionManager::commit_transaction(outermost(&mut tx)?);
        committed.await.map_err(failed)?;
        drop(tx.0.take()); // back to the pool
        Ok(())
    }

    async fn rollback(mut tx: Tx) -> Result<(), PoolError> {
        let rolled_back = AnsiTransactionManager::rollback_transaction(outermost(&mut tx)?);
        rolled_back.await.map_err(failed)?;
        drop(tx.0.take());
        Ok(())
    }

    /// diesel hides the SQLSTATE. Some messages stand for one, if the server speaks English (`lc_messages`).
    fn code<'a>(error: &'a (dyn Error + 'static)) -> Option<Cow<'a, str>> {
        let error = match error.downcast_ref() {
            Some(PoolError::Backend(QueryError(error))) => error,
            _ => error.downcast_ref()?,
        };
        let DieselError::DatabaseError(kind, information) = error else {
            return None;
        };
        let code = match (kind, information.message()) {
            (DatabaseErrorKind::SerializationFailure, _) => "40001",
            (DatabaseErrorKind::ReadOnlyTransaction, _) => "25006",
            (_, "deadlock detected") => "40P01",
            (_, "division by zero") => "22012",
            (_, "relation \"lockkit_once\" does not exist") => "42P01",
            (_, "permission denied for table lockkit_once") => "42501",
            _ => return None,
        };
        Some(code.into())
    }
}

/// If a handler has dropped the future of `connection.transaction(…)`, that savepoint is open, and diesel would end it alone.
fn outermost(tx: &mut Tx) -> Result<&mut AsyncPgConnection, PoolError> {
    let connection = Db::connection(tx);
    let status = AnsiTransactionManager::transaction_manager_status_mut(connection);
    match status.transaction_depth().map_err(failed)?.map(u32::from) {
        Some(1) => Ok(connection),
        _ => Err(failed(DieselError::BrokenTransactionManager)),
    }
}

fn failed(error: DieselError) -> PoolError {
    PoolError::Backend(QueryError(error))
}

async fn one(
    connection: &mut AsyncPgConnection,
    statement: &'static str,
    values: &[Value<'_>],
) -> Result<Option<Row>, PoolError> {
    let rows = bound(statement, values).load(connection).await;
    let row = rows.map_err(failed)?.pop();
    Ok(row.map(|columns: Columns| columns.0))
}

fn bound(statement: &'static str, values: &[Value<'_>]) -> BoxedSqlQuery<'static, Pg, SqlQuery> {
    let mut query = diesel::sql_query(statement).into_boxed::<Pg>();
    for value in values {
        query = match *value {
            Value::Bytes(bytes) => query.bind::<Binary, _>(bytes.to_vec()),
            Value::Int(number) => query.bind::<BigInt, _>(number),
        };
    }
    query
}

struct Columns(Row);

impl QueryableByName<Pg> for Columns {
    fn build<'a>(row: &impl NamedRow<'a, Pg>) -> deserialize::Result<Self> {
        let run = row.get_value::<Binary, _, _>(0)?; // by number, because not every column has a name
        Ok(Self(Row::new(
            run,
            row.get_value::<Nullable<Binary>, _, _>(1)?,
        )))
    }
}
