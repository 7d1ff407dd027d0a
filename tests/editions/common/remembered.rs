//! Tests functions that run once for a key.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use lock_core::once::{Database, Tx};
use lock_core::{Error, LockManager, idempotent};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// An error that may be final.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Declined {
    /// No attempt succeeds.
    Forever,
    /// The lock was not granted.
    Lock,
}

impl From<Error> for Declined {
    fn from(_: Error) -> Self {
        Self::Lock
    }
}

/// A receipt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    run: u64,
    note: String,
}

/// Counts its runs.
#[derive(Clone, Debug)]
pub struct Till {
    locks: LockManager,
    runs: Arc<AtomicU64>,
}

impl Till {
    /// Every argument on a method.
    #[idempotent(
        key = "charge:<order>",
        ttl = "10s",
        remember = "1d",
        fingerprint = "<cents>:<note.len()>",
        wait = "2s",
        max_hold = "1h",
        renew = true,
        on_lost = cancel,
        errors = |error| *error == Declined::Forever,
        manager = self.locks,
        guard = _lock,
    )]
    pub async fn charge(&self, order: u64, cents: u64, note: &str) -> Result<Receipt, Declined> {
        let run = self.runs.fetch_add(1, Ordering::SeqCst) + 1;
        if cents == 0 {
            return Err(Declined::Forever);
        }
        let note = note.to_owned();
        Ok(Receipt { run, note })
    }
}

/// A trait with a default method.
#[async_trait]
pub trait Mailer: Sync {
    /// Sends a mail.
    async fn send(&self, id: (u64, String)) -> Result<u64, Error>;

    /// Handles a message in a transaction.
    async fn handle<D: Database>(&self, tx: &mut Tx<D>, message: u64) -> Result<u64, Error>;

    /// Is not overridden.
    #[idempotent(key = "default:<id>", ttl = "10s", remember = "1h")]
    async fn by_default(&self, id: u64) -> Result<u64, Error> {
        Ok(id)
    }
}

#[async_trait]
impl Mailer for Till {
    #[idempotent(key = "mail:<id>", ttl = "10s", remember = "1h", manager = self.locks)]
    async fn send(&self, (id, _): (u64, String)) -> Result<u64, Error> {
        Ok(id + self.runs.fetch_add(1, Ordering::SeqCst))
    }

    #[idempotent(key = "message:<message>", remember = forever, tx = tx)]
    async fn handle<D: Database>(&self, tx: &mut Tx<D>, message: u64) -> Result<u64, Error> {
        let text = format!("{:?}", tx);
        Ok(message + self.runs.load(Ordering::SeqCst) + u64::from(text.is_empty()))
    }
}

/// A type parameter as the result.
#[idempotent(key = "generic:<N>", ttl = "10s", remember = "1h", fingerprint = none)]
pub async fn generic<T, const N: usize>(value: T, all: [u8; N]) -> Result<(T, usize), Error>
where
    T: Serialize + DeserializeOwned,
{
    Ok((value, all.len()))
}

/// A boxed future.
#[idempotent(key = "boxed:<n>", ttl = "10s", remember = "1h")]
pub fn boxed(n: u64) -> Pin<Box<dyn Future<Output = Result<u64, Error>> + Send + 'static>> {
    Box::pin(async move { Ok(n) })
}

/// The caller's transaction, with parameters that the body takes.
#[idempotent(key = "in-tx:<message>", remember = "7d", fingerprint = "<text>", wait = "1s", tx = tx)]
pub async fn in_transaction<D: Database>(
    tx: &mut Tx<D>,
    message: u64,
    text: &str,
    mut more: Vec<String>,
) -> Result<Vec<String>, Error> {
    more.push(format!("{:?} {} {}", tx, message, text));
    Ok(more)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn till() -> Till {
        Till {
            locks: LockManager::in_memory(),
            runs: Arc::default(),
        }
    }

    fn is_send<F: Future + Send>(future: F) -> F {
        future
    }

    #[tokio::test]
    async fn a_method_runs_once() {
        let till = till();
        let first = is_send(till.charge(7, 5, "tea")).await.expect("free");
        assert_eq!(till.charge(7, 5, "tea").await, Ok(first));
        assert_eq!(till.charge(7, 5, "milk").await, Err(Declined::Lock));
        assert_eq!(till.charge(8, 0, "").await, Err(Declined::Forever));
        assert_eq!(till.charge(8, 0, "").await, Err(Declined::Forever));
        assert_eq!(till.runs.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn methods_of_traits_run_once() {
        let till = till();
        let send = || till.send((7, String::new()));
        assert_eq!(send().await.expect("free"), 7);
        assert_eq!(send().await.expect("kept"), 7);
        let locks = till.locks.clone();
        let call = locks.scope(till.by_default(3)).await;
        assert_eq!(call.expect("free"), 3);
    }

    #[tokio::test]
    async fn other_functions_run_once() {
        let locks = LockManager::in_memory();
        let first = locks.scope(is_send(generic(5_u8, [0; 2]))).await;
        assert_eq!(first.expect("free"), (5, 2));
        let second = locks.scope(generic(9_u8, [0; 2])).await;
        assert_eq!(second.expect("kept"), (5, 2));
        assert_eq!(locks.scope(boxed(3)).await.expect("free"), 3);
    }

    /// The tests of the workspace run such functions on databases. Here they need to compile.
    #[test]
    fn a_call_in_a_transaction_is_send() {
        async fn all<D: Database>(till: &Till, mut tx: Tx<D>) -> Result<(), Error> {
            assert_eq!(till.handle(&mut tx, 1).await?, 1);
            drop(in_transaction(&mut tx, 1, "text", Vec::new()).await?);
            tx.commit().await
        }
        fn check<D: Database>(till: &Till, tx: Tx<D>) {
            drop(is_send(all(till, tx)));
        }
        let _ = check::<NoDatabase>;
    }

    /// A database that gives no transaction.
    #[derive(Clone)]
    struct NoDatabase;

    impl Database for NoDatabase {
        type Tx = ();
        type Connection = ();
        type Error = std::io::Error;

        fn dialect(&self) -> lock_core::once::Dialect {
            lock_core::once::Dialect::Sqlite
        }

        async fn begin(&self, _: &'static str) -> std::io::Result<()> {
            Err(std::io::ErrorKind::Unsupported.into())
        }

        async fn read(
            &self,
            _: &'static str,
            _: &[lock_core::once::Value<'_>],
        ) -> std::io::Result<Option<lock_core::once::Row>> {
            Err(std::io::ErrorKind::Unsupported.into())
        }

        async fn query(
            (): &mut (),
            _: &'static str,
            _: &[lock_core::once::Value<'_>],
        ) -> std::io::Result<Option<lock_core::once::Row>> {
            Err(std::io::ErrorKind::Unsupported.into())
        }

        async fn execute(
            (): &mut (),
            _: &'static str,
            _: &[lock_core::once::Value<'_>],
        ) -> std::io::Result<u64> {
            Err(std::io::ErrorKind::Unsupported.into())
        }

        fn connection(tx: &mut ()) -> &mut () {
            tx
        }

        fn connection_ref(tx: &()) -> &() {
            tx
        }

        async fn commit((): ()) -> std::io::Result<()> {
            Err(std::io::ErrorKind::Unsupported.into())
        }

        async fn rollback((): ()) -> std::io::Result<()> {
            Err(std::io::ErrorKind::Unsupported.into())
        }
    }
}
