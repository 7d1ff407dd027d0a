//! A PostgreSQL that gets other statements than the kit sends.

use std::marker::PhantomData;

use lock_core::once::{CommitError, Database, Dialect, Row, Value};

use super::postgres::Postgres;

/// Says what becomes of a statement.
pub(super) trait Alteration: Send + Sync + 'static {
    fn altered(sql: &'static str) -> String;
}

pub(super) struct Altered<A> {
    db: Postgres,
    alteration: PhantomData<A>,
}

impl<A: Alteration> Altered<A> {
    pub(super) fn new(db: Postgres) -> Self {
        let alteration = PhantomData;
        Self { db, alteration }
    }
}

impl<A: Alteration> Clone for Altered<A> {
    fn clone(&self) -> Self {
        Self::new(self.db.clone())
    }
}

/// A test has few statements.
fn altered<A: Alteration>(sql: &'static str) -> &'static str {
    A::altered(sql).leak()
}

impl<A: Alteration> Database for Altered<A> {
    type Tx = <Postgres as Database>::Tx;
    type Connection = <Postgres as Database>::Connection;
    type Error = <Postgres as Database>::Error;

    fn dialect(&self) -> Dialect {
        self.db.dialect()
    }

    async fn begin(&self, sql: &'static str) -> Result<Self::Tx, Self::Error> {
        self.db.begin(altered::<A>(sql)).await
    }

    async fn begin_and_execute(
        &self,
        begin: &'static str,
        sql: &'static str,
        values: &[Value<'_>],
    ) -> Result<(Self::Tx, u64), Self::Error> {
        let (begin, sql) = (altered::<A>(begin), altered::<A>(sql));
        self.db.begin_and_execute(begin, sql, values).await
    }

    async fn read(
        &self,
        sql: &'static str,
        values: &[Value<'_>],
    ) -> Result<Option<Row>, Self::Error> {
        self.db.read(altered::<A>(sql), values).await
    }

    async fn query(
        tx: &mut Self::Tx,
        sql: &'static str,
        values: &[Value<'_>],
    ) -> Result<Option<Row>, Self::Error> {
        Postgres::query(tx, altered::<A>(sql), values).await
    }

    async fn execute(
        tx: &mut Self::Tx,
        sql: &'static str,
        values: &[Value<'_>],
    ) -> Result<u64, Self::Error> {
        Postgres::execute(tx, altered::<A>(sql), values).await
    }

    fn connection(tx: &mut Self::Tx) -> &mut Self::Connection {
        Postgres::connection(tx)
    }

    fn connection_ref(tx: &Self::Tx) -> &Self::Connection {
        Postgres::connection_ref(tx)
    }

    async fn commit(tx: Self::Tx) -> Result<(), Self::Error> {
        Postgres::commit(tx).await
    }

    async fn execute_and_commit(
        tx: Self::Tx,
        sql: &'static str,
        values: &[Value<'_>],
    ) -> Result<(), CommitError<Self::Error>> {
        Postgres::execute_and_commit(tx, altered::<A>(sql), values).await
    }

    async fn rollback(tx: Self::Tx) -> Result<(), Self::Error> {
        Postgres::rollback(tx).await
    }
}
