//! Tests native async methods of traits.

use std::fmt::Display;
use std::future::Future;

use lock_core::{AsLockManager, Error, LockManager, distributed_lock};

use super::witness::{at_work, manager};

/// A trait with every kind of async method.
#[allow(async_fn_in_trait)]
pub trait Repository<K> {
    /// The type of a row.
    type Row: Display;
    /// The name of the table.
    const TABLE: &'static str;

    /// A method without a default.
    async fn save(&mut self, key: K, row: Self::Row) -> Result<String, Error>;

    /// A default method.
    #[distributed_lock(key = "<Self::TABLE>:<text>", ttl = "10s")]
    async fn save_text(&self, text: &str) -> Result<usize, Error> {
        at_work().await;
        Ok(text.len())
    }

    /// A default function without a receiver.
    #[distributed_lock(key = "count:<Self::TABLE>", ttl = "10s")]
    async fn count(of: &[K]) -> Result<usize, Error>
    where
        K: Sized,
    {
        at_work().await;
        Ok(of.len())
    }

    /// A default method with a pattern as its argument.
    #[distributed_lock(key = "<Self::TABLE>:<name>", ttl = "10s")]
    async fn rename(self, (name, _): (String, u64)) -> Result<(Self, String), Error>
    where
        Self: Sized,
    {
        at_work().await;
        Ok((self, name))
    }

    /// A method that declares its future `Send`.
    fn remove(&self, key: K) -> impl Future<Output = Result<u64, Error>> + Send;

    /// The same as a default method.
    #[distributed_lock(key = "touch:<key>", ttl = "10s")]
    fn touch(&self, key: u64) -> impl Future<Output = Result<u64, Error>> + Send
    where
        Self: Sync,
    {
        async move {
            at_work().await;
            Ok(key)
        }
    }
}

/// A table in memory.
#[derive(Clone, Debug)]
pub struct Table(pub LockManager);

impl AsLockManager for Table {
    fn as_lock_manager(&self) -> LockManager {
        self.0.clone()
    }
}

impl Repository<u64> for Table {
    type Row = String;
    const TABLE: &'static str = "rows";

    #[distributed_lock(key = "<Self::TABLE>:<key>", ttl = "10s", manager = self)]
    async fn save(&mut self, key: u64, row: Self::Row) -> Result<String, Error> {
        at_work().await;
        Ok(format!("{key}={row}"))
    }

    #[distributed_lock(key = "remove:<key>", ttl = "10s", manager = self.0)]
    async fn remove(&self, key: u64) -> Result<u64, Error> {
        at_work().await;
        Ok(key)
    }
}

/// Makes a table with the manager of the test, for types that keep a manager.
#[must_use]
pub fn table() -> Table {
    Table(manager())
}

#[cfg(test)]
mod tests {
    use super::super::witness::locked;
    use super::*;

    #[tokio::test]
    async fn implemented_methods_are_locked() {
        let (mut one, mut two) = (table(), table());
        let done = locked("rows:3", one.save(3, "a".into()), two.save(3, "b".into())).await;
        assert_eq!(done.expect("free"), "3=a");
        let done = locked("remove:3", one.remove(3), two.remove(3)).await;
        assert_eq!(done.expect("free"), 3);
    }

    #[tokio::test]
    async fn default_methods_are_locked() {
        let (one, two) = (table(), table());
        let done = locked("rows:abc", one.save_text("abc"), two.save_text("abc")).await;
        assert_eq!(done.expect("free"), 3);
        let done = locked("count:rows", Table::count(&[1]), Table::count(&[1, 2])).await;
        assert_eq!(done.expect("free"), 1);
        let done = locked("touch:4", one.touch(4), two.touch(4)).await;
        assert_eq!(done.expect("free"), 4);
        let call = |table: Table| table.rename(("n".into(), 1));
        let done = locked("rows:n", call(one), call(two)).await;
        assert_eq!(done.expect("free").1, "n");
    }
}
