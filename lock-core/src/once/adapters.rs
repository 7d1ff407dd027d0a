//! Implementations of `Database` that expand in the user's crate, with the drivers of the user.
//!
//! A driver as an optional dependency would bind the kit's oldest Rust and its versions to those of the driver. sqlx-sqlite and
//! rusqlite even exclude each other in one lock file, because both link SQLite.

/// Makes a [`Database`](crate::once::Database) of a pool of your version of sqlx, 0.8.4 or later, or 0.9.
///
/// The type has the pool as its public field. The database is `sqlx::Postgres` or `sqlx::Sqlite`. Your crate needs `sqlx` as
/// a direct dependency of this name.
///
/// ```text
/// lock_core::once_sqlx!(pub struct Db(sqlx::Postgres));
///
/// let db = Db(pool.clone());
/// lock_core::once::create_table(&db).await?;
/// ```
///
/// A nested transaction of sqlx (a savepoint) must end before the transaction does. If it is leaked with `mem::forget`, `commit`
/// releases the savepoint only.
///
/// On PostgreSQL, do not drop the future of a nested `begin()`, as a timeout or a `select!` around a part of the body may do.
/// sqlx then rolls back the whole transaction and reports no error. Each later statement is committed by itself. Put the timeout
/// around the call of the kit.
#[macro_export]
macro_rules! once_sqlx {
    ($(#[$attribute:meta])* $vis:vis struct $name:ident($database:path)) => {
        $(#[$attribute])*
        #[derive(Clone, Debug)]
        $vis struct $name(pub ::sqlx::Pool<$database>);

        const _: () = {
            use $crate::once::{Database, Dialect, Row, Value};

            type Driver = $database;
            type Connection = <Driver as ::sqlx::Database>::Connection;

            const _: () = ::core::assert!(
                matches!(<Driver as ::sqlx::Database>::NAME.as_bytes(), b"PostgreSQL" | b"SQLite"),
                "the database of `once_sqlx!` is `sqlx::Postgres` or `sqlx::Sqlite`"
            );

            fn is_sqlite() -> bool {
                <Driver as ::sqlx::Database>::NAME == "SQLite"
            }

            type Open = ::sqlx::Transaction<'static, Driver>;

            /// Owns a transaction, and rolls it back when it is dropped.
            pub struct Tx(::core::option::Option<Open>);

            const OPEN: &str = "only its end takes the transaction";

            impl Tx {
                fn connection(&mut self) -> &mut Connection {
                    self.0.as_mut().expect(OPEN)
                }

                fn take(mut self) -> Open {
                    self.0.take().expect(OPEN)
                }
            }

            impl Drop for Tx {
                fn drop(&mut self) {
                    match self.0.take() {
                        ::core::option::Option::Some(open) if is_sqlite() => {
                            $crate::once::in_background(roll_back(open));
                        }
                        _ => {}
                    }
                }
            }

            /// Rolls back, also where SQLite has done so by itself, for example because the disk is full. sqlx does not see
            /// that. Its own ROLLBACK would then fail, and the connection would stay in the pool as one with an open transaction.
            async fn roll_back(mut open: Open) -> ::core::result::Result<(), ::sqlx::Error> {
                if is_sqlite() {
                    let _ = ::sqlx::query::<Driver>("BEGIN").execute(&mut *open).await;
                }
                open.rollback().await
            }

            fn bound(
                statement: &'static str,
                values: &[Value<'_>],
            ) -> impl ::sqlx::Execute<'static, Driver> + use<> {
                let mut query = ::sqlx::query::<Driver>(statement);
                for value in values {
                    query = match *value {
                        Value::Bytes(bytes) => query.bind(bytes.to_vec()),
                        Value::Int(number) => query.bind(number),
                    };
                }
                query
            }

            async fn one<'c, E>(
                executor: E,
                statement: &'static str,
                values: &[Value<'_>],
            ) -> ::core::result::Result<::core::option::Option<Row>, ::sqlx::Error>
            where
                E: ::sqlx::Executor<'c, Database = Driver>,
            {
                use ::sqlx::Row as _;
                match executor.fetch_optional(bound(statement, values)).await? {
                    ::core::option::Option::Some(row) => ::core::result::Result::Ok(
                        ::core::option::Option::Some(Row::new(row.try_get(0)?, row.try_get(1)?)),
                    ),
                    ::core::option::Option::None => {
                        ::core::result::Result::Ok(::core::option::Option::None)
                    }
                }
            }

            impl Database for $name {
                type Tx = Tx;
                type Connection = Connection;
                type Error = ::sqlx::Error;

                fn dialect(&self) -> Dialect {
                    if is_sqlite() { Dialect::Sqlite } else { Dialect::Postgres }
                }

                async fn begin(
                    &self,
                    statement: &'static str,
                ) -> ::core::result::Result<Self::Tx, Self::Error> {
                    let open = self.0.begin_with(statement).await?;
                    ::core::result::Result::Ok(Tx(::core::option::Option::Some(open)))
                }

                async fn read(
                    &self,
                    statement: &'static str,
                    values: &[Value<'_>],
                ) -> ::core::result::Result<::core::option::Option<Row>, Self::Error> {
                    one(&self.0, statement, values).await
                }

                async fn query(
                    tx: &mut Self::Tx,
                    statement: &'static str,
                    values: &[Value<'_>],
                ) -> ::core::result::Result<::core::option::Option<Row>, Self::Error> {
                    one(tx.connection(), statement, values).await
                }

                async fn execute(
                    tx: &mut Self::Tx,
                    statement: &'static str,
                    values: &[Value<'_>],
                ) -> ::core::result::Result<u64, Self::Error> {
                    let query = bound(statement, values);
                    let done = ::sqlx::Executor::execute(tx.connection(), query).await?;
                    ::core::result::Result::Ok(done.rows_affected())
                }

                fn connection(tx: &mut Self::Tx) -> &mut Self::Connection {
                    tx.connection()
                }

                fn connection_ref(tx: &Self::Tx) -> &Self::Connection {
                    tx.0.as_ref().expect(OPEN)
                }

                async fn commit(mut tx: Self::Tx) -> ::core::result::Result<(), Self::Error> {
                    if !is_sqlite() {
                        return tx.take().commit().await;
                    }
                    // sqlx would count the transaction as open for ever where COMMIT fails. It does not see this COMMIT.
                    let commit = ::sqlx::query::<Driver>("COMMIT");
                    let committed = commit.execute(tx.connection()).await;
                    let _ = roll_back(tx.take()).await;
                    committed.map(drop)
                }

                async fn rollback(tx: Self::Tx) -> ::core::result::Result<(), Self::Error> {
                    roll_back(tx.take()).await
                }

                fn code<'a>(
                    error: &'a (dyn ::std::error::Error + 'static),
                ) -> ::core::option::Option<::std::borrow::Cow<'a, str>> {
                    let error = error.downcast_ref::<::sqlx::Error>()?;
                    error.as_database_error()?.code()
                }
            }
        };
    };
}

/// Makes a [`Database`](crate::once::Database) of a pool of your version of deadpool-postgres.
///
/// The type has the pool as its public field. The handler has a shared reference to a `deadpool_postgres::ClientWrapper`, which
/// dereferences to `tokio_postgres::Client`. Your crate needs `deadpool-postgres` and `tokio-postgres` as direct dependencies.
///
/// ```text
/// lock_core::once_deadpool!(pub struct Db);
///
/// let db = Db(pool.clone());
/// lock_core::once::create_table(&db).await?;
/// ```
///
/// A transaction that is dropped closes its connection.
///
/// `tx.transaction()` does not compile, because the end of such a transaction would be that of the kit's. For a part that may
/// fail, send `SAVEPOINT` and `ROLLBACK TO` by `tx.batch_execute`.
#[macro_export]
macro_rules! once_deadpool {
    ($(#[$attribute:meta])* $vis:vis struct $name:ident) => {
        $(#[$attribute])*
        #[derive(Clone)]
        $vis struct $name(pub ::deadpool_postgres::Pool);

        const _: () = {
            use $crate::once::{CommitError, Database, Dialect, Row, Value};
            use ::core::option::Option;
            use ::core::result::Result;
            use ::deadpool_postgres::{ClientWrapper, Object, PoolError};

            /// Owns a client inside a transaction. A client that is dropped is closed, because its transaction is open.
            ///
            /// It gives no client by `&mut`. To begin a transaction with that has no effect, and to end it ends this one.
            pub struct Tx(Option<Object>);

            impl ::core::ops::Deref for Tx {
                type Target = ClientWrapper;

                fn deref(&self) -> &ClientWrapper {
                    self.0.as_ref().expect("only its end takes the client")
                }
            }

            impl Tx {
                /// Ends the transaction, and returns the client to the pool if that was answered.
                async fn end(self, statement: &'static str) -> Result<(), PoolError> {
                    self.batch_execute(statement).await?;
                    self.give_back();
                    Result::Ok(())
                }

                fn give_back(mut self) {
                    drop(self.0.take());
                }
            }

            impl Drop for Tx {
                fn drop(&mut self) {
                    if let Option::Some(client) = self.0.take() {
                        drop(Object::take(client));
                    }
                }
            }

            fn parameters<'a>(
                values: &'a [Value<'_>],
            ) -> Vec<&'a (dyn ::tokio_postgres::types::ToSql + Sync)> {
                let mut parameters: Vec<&(dyn ::tokio_postgres::types::ToSql + Sync)> =
                    Vec::with_capacity(values.len());
                for value in values {
                    match value {
                        Value::Bytes(bytes) => parameters.push(bytes),
                        Value::Int(number) => parameters.push(number),
                    }
                }
                parameters
            }

            async fn one(
                client: &ClientWrapper,
                statement: &'static str,
                values: &[Value<'_>],
            ) -> Result<Option<Row>, PoolError> {
                let statement = client.prepare_cached(statement).await?;
                match client.query_opt(&statement, &parameters(values)).await? {
                    Option::Some(row) => {
                        Result::Ok(Option::Some(Row::new(row.try_get(0)?, row.try_get(1)?)))
                    }
                    Option::None => Result::Ok(Option::None),
                }
            }

            impl Database for $name {
                type Tx = Tx;
                type Connection = Tx;
                type Error = PoolError;

                fn dialect(&self) -> Dialect {
                    Dialect::Postgres
                }

                async fn begin(&self, statement: &'static str) -> Result<Tx, PoolError> {
                    let tx = Tx(Option::Some(self.0.get().await?));
                    tx.batch_execute(statement).await?;
                    Result::Ok(tx)
                }

                /// Sends both statements at once.
                async fn begin_and_execute(
                    &self,
                    begin: &'static str,
                    statement: &'static str,
                    values: &[Value<'_>],
                ) -> Result<(Tx, u64), PoolError> {
                    let tx = Tx(Option::Some(self.0.get().await?));
                    let prepared = tx.prepare_cached(statement).await?;
                    let values = parameters(values);
                    let begun = tx.batch_execute(begin);
                    let rows = tx.execute(&prepared, &values);
                    let (begun, rows) = $crate::once::in_order(begun, rows).await?;
                    begun?;
                    Result::Ok((tx, rows?))
                }

                async fn read(
                    &self,
                    statement: &'static str,
                    values: &[Value<'_>],
                ) -> Result<Option<Row>, PoolError> {
                    one(&*self.0.get().await?, statement, values).await
                }

                async fn query(
                    tx: &mut Tx,
                    statement: &'static str,
                    values: &[Value<'_>],
                ) -> Result<Option<Row>, PoolError> {
                    one(tx, statement, values).await
                }

                async fn execute(
                    tx: &mut Tx,
                    statement: &'static str,
                    values: &[Value<'_>],
                ) -> Result<u64, PoolError> {
                    let statement = tx.prepare_cached(statement).await?;
                    Result::Ok(tx.execute(&statement, &parameters(values)).await?)
                }

                fn connection(tx: &mut Tx) -> &mut Tx {
                    tx
                }

                fn connection_ref(tx: &Tx) -> &Tx {
                    tx
                }

                async fn commit(tx: Tx) -> Result<(), PoolError> {
                    tx.end("COMMIT").await
                }

                /// Sends both at once. COMMIT rolls back if the statement has failed.
                async fn execute_and_commit(
                    tx: Tx,
                    statement: &'static str,
                    values: &[Value<'_>],
                ) -> Result<(), CommitError<PoolError>> {
                    // The client is closed with its transaction.
                    let not_sent = |error| CommitError::NotCommitted(PoolError::Backend(error));
                    let prepared = tx.prepare_cached(statement).await.map_err(not_sent)?;
                    let values = parameters(values);
                    let rows = tx.execute(&prepared, &values);
                    let commit = tx.batch_execute("COMMIT");
                    let sent = $crate::once::in_order(rows, commit).await;
                    let (rows, end) = sent.map_err(not_sent)?;
                    if end.is_ok() {
                        tx.give_back();
                    }
                    match (rows, end) {
                        (Result::Ok(_), Result::Ok(())) => Result::Ok(()),
                        // COMMIT was answered behind the failure of the statement, so it has rolled back.
                        (Result::Err(error), Result::Ok(())) if error.code().is_some() => {
                            Result::Err(CommitError::NotCommitted(PoolError::Backend(error)))
                        }
                        // Otherwise COMMIT may have been done. A pooler whose server is gone answers the first of the two by an
                        // error with a code, though the server has done both.
                        (Result::Err(error), _) | (Result::Ok(_), Result::Err(error)) => {
                            Result::Err(CommitError::Unknown(PoolError::Backend(error)))
                        }
                    }
                }

                async fn rollback(tx: Tx) -> Result<(), PoolError> {
                    tx.end("ROLLBACK").await
                }

                fn code<'a>(
                    error: &'a (dyn ::std::error::Error + 'static),
                ) -> Option<::std::borrow::Cow<'a, str>> {
                    let error = match error.downcast_ref() {
                        Option::Some(PoolError::Backend(error)) => error,
                        _ => error.downcast_ref::<::tokio_postgres::Error>()?,
                    };
                    error.code().map(|code| ::std::borrow::Cow::Borrowed(code.code()))
                }
            }
        };
    };
}
