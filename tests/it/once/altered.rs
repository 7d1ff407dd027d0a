//! A database whose statements a test sees and can replace.

use std::borrow::Cow;
use std::sync::Arc;

use lock_core::once::{CommitError, Database, Dialect, Row, Value};

/// Gets each statement, and returns the one that is sent in its place. The statements that a driver writes itself,
/// `COMMIT` and `ROLLBACK`, cannot be replaced.
pub(super) type Hook = Arc<dyn Fn(&'static str) -> &'static str + Send + Sync>;

#[derive(Clone)]
pub(super) struct Hooked<D> {
    db: D,
    hook: Hook,
}

/// A transaction of such a database.
pub(super) struct Open<T> {
    tx: T,
    hook: Hook,
}

impl<D> Hooked<D> {
    pub(super) fn new(
        db: D,
        hook: impl Fn(&'static str) -> &'static str + Send + Sync + 'static,
    ) -> Self {
        let hook = Arc::new(hook);
        Self { db, hook }
    }

    fn open<T>(&self, tx: T) -> Open<T> {
        let hook = Arc::clone(&self.hook);
        Open { tx, hook }
    }
}

/// Returns a hook that replaces a part of each statement. A test has few statements.
pub(super) fn replaced(
    from: &'static str,
    to: &'static str,
) -> impl Fn(&'static str) -> &'static str {
    move |sql| sql.replace(from, to).leak()
}

impl<D: Database> Database for Hooked<D> {
    type Tx = Open<D::Tx>;
    type Connection = D::Connection;
    type Error = D::Error;

    fn dialect(&self) -> Dialect {
        self.db.dialect()
    }

    async fn begin(&self, sql: &'static str) -> Result<Self::Tx, D::Error> {
        let tx = self.db.begin((self.hook)(sql)).await?;
        Ok(self.open(tx))
    }

    async fn begin_and_execute(
        &self,
        begin: &'static str,
        sql: &'static str,
        values: &[Value<'_>],
    ) -> Result<(Self::Tx, u64), D::Error> {
        let (begin, sql) = ((self.hook)(begin), (self.hook)(sql));
        let (tx, rows) = self.db.begin_and_execute(begin, sql, values).await?;
        Ok((self.open(tx), rows))
    }

    async fn read(&self, sql: &'static str, values: &[Value<'_>]) -> Result<Option<Row>, D::Error> {
        self.db.read((self.hook)(sql), values).await
    }

    async fn query(
        open: &mut Self::Tx,
        sql: &'static str,
        values: &[Value<'_>],
    ) -> Result<Option<Row>, D::Error> {
        let sql = (open.hook)(sql);
        D::query(&mut open.tx, sql, values).await
    }

    async fn execute(
        open: &mut Self::Tx,
        sql: &'static str,
        values: &[Value<'_>],
    ) -> Result<u64, D::Error> {
        let sql = (open.hook)(sql);
        D::execute(&mut open.tx, sql, values).await
    }

    fn connection(open: &mut Self::Tx) -> &mut D::Connection {
        D::connection(&mut open.tx)
    }

    fn connection_ref(open: &Self::Tx) -> &D::Connection {
        D::connection_ref(&open.tx)
    }

    async fn commit(open: Self::Tx) -> Result<(), D::Error> {
        (open.hook)("COMMIT");
        D::commit(open.tx).await
    }

    async fn execute_and_commit(
        open: Self::Tx,
        sql: &'static str,
        values: &[Value<'_>],
    ) -> Result<(), CommitError<D::Error>> {
        let sql = (open.hook)(sql);
        (open.hook)("COMMIT");
        D::execute_and_commit(open.tx, sql, values).await
    }

    async fn rollback(open: Self::Tx) -> Result<(), D::Error> {
        (open.hook)("ROLLBACK");
        D::rollback(open.tx).await
    }

    fn code<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<Cow<'a, str>> {
        D::code(error)
    }
}
