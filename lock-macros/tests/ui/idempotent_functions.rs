//! Functions under `idempotent`, of every shape with every argument. Clippy reports some of them, with or without their
//! attribute.

use std::{fmt::Display, future::Future, pin::Pin, time::Duration};

use lock_core::once::{Database, Dialect, Row, Tx, Value};
use lock_core::{Error, LockManager, idempotent};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

const LEASE: Duration = Duration::from_secs(10);

struct Shop {
    locks: LockManager,
    id: u64,
}

struct Path<T>(T);

async fn step() {
    std::future::ready(()).await;
}

#[derive(Serialize, Deserialize)]
struct Receipt {
    number: u64,
}

#[derive(Serialize, Deserialize)]
struct Declined {
    forever: bool,
}

impl From<Error> for Declined {
    fn from(_: Error) -> Self {
        Self { forever: false }
    }
}

impl Shop {
    #[idempotent(
        key = "charge:<self.id>:<order>",
        ttl = LEASE,
        remember = "24h",
        fingerprint = "<cents>:<note.len()>",
        wait = "2s",
        max_hold = "30s",
        errors = |error| error.forever,
        manager = self.locks,
        guard = _lock,
    )]
    async fn charge(&self, order: u64, cents: u64, note: &str) -> Result<Receipt, Declined> {
        step().await;
        println!("{note}");
        if cents == 0 {
            return Err(Declined { forever: true });
        }
        Ok(Receipt { number: order })
    }
}

#[idempotent(key = "once:<uid>", ttl = "10s", remember = LEASE, fingerprint = none, on_lost = ignore)]
async fn remembered_patterns(
    Path(uid): Path<u64>,
    (first, _): (u32, u32),
    _unused: String,
) -> Result<u64, Error> {
    step().await;
    Ok(uid + u64::from(first))
}

#[idempotent(key = "once:<name>", ttl = "10s", remember = "1d", fingerprint = none, on_error = |_| Err(()))]
async fn remembered_generics<T>(name: impl Display, value: T) -> Result<T, ()>
where
    T: Serialize + DeserializeOwned,
{
    step().await;
    println!("{name}");
    Ok(value)
}

#[idempotent(key = "once:<n>", ttl = "10s", remember = "1d")]
fn a_remembered_future(n: u64) -> Pin<Box<dyn Future<Output = Result<u64, Error>> + Send>> {
    Box::pin(async move {
        step().await;
        Ok(n)
    })
}

#[idempotent(key = "mail:<message>:<names.len()>", remember = forever, fingerprint = "<text>", wait = "2s", tx = tx)]
async fn in_a_transaction<D: Database>(
    tx: &mut Tx<D>,
    message: u64,
    text: &str,
    mut names: Vec<String>,
) -> Result<usize, Error> {
    step().await;
    names.push(format!("{tx:?} {message} {text}"));
    Ok(names.len())
}

async fn of_any_database<D: Database>(tx: &mut Tx<D>) -> Result<usize, Error> {
    in_a_transaction(tx, 1, "text", Vec::new()).await
}

#[derive(Clone)]
struct NoDatabase;

impl Database for NoDatabase {
    type Tx = ();
    type Connection = ();
    type Error = std::io::Error;

    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    async fn begin(&self, _: &'static str) -> Result<(), Self::Error> {
        step().await;
        Ok(())
    }

    async fn read(&self, _: &'static str, _: &[Value<'_>]) -> Result<Option<Row>, Self::Error> {
        step().await;
        Ok(None)
    }

    async fn query(
        (): &mut (),
        _: &'static str,
        _: &[Value<'_>],
    ) -> Result<Option<Row>, Self::Error> {
        step().await;
        Ok(None)
    }

    async fn execute(
        (): &mut (),
        _: &'static str,
        _: &[Value<'_>],
    ) -> Result<u64, Self::Error> {
        step().await;
        Ok(0)
    }

    fn connection(tx: &mut ()) -> &mut () {
        tx
    }

    fn connection_ref(tx: &()) -> &() {
        tx
    }

    async fn commit((): ()) -> Result<(), Self::Error> {
        step().await;
        Ok(())
    }

    async fn rollback((): ()) -> Result<(), Self::Error> {
        step().await;
        Ok(())
    }
}

fn main() {
    let _ = of_any_database::<NoDatabase>;
    let _ = NoDatabase;
    let _ = LockManager::in_memory;
    let _ = Shop::charge;
    drop((remembered_patterns, a_remembered_future(1)));
    drop(remembered_generics("a", 1));
}
