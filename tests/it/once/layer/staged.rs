//! A database whose COMMITs fail, wait, or are left open.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lock_core::once::{Database, Dialect, Row, Value};
use tokio::sync::Semaphore;

/// A database under the control of a test.
pub(crate) struct Staged<D: Database> {
    db: D,
    control: Arc<Control<D>>,
}

/// What happens to the next COMMIT.
pub(crate) enum OnCommit {
    /// The connection breaks before it is sent.
    IsNotSent,
    /// The connection breaks before it is answered.
    IsNotAnswered,
    /// The connection breaks, and the server still has the COMMIT before it.
    StaysOpen,
    /// It waits for a permit.
    Waits(Arc<Semaphore>),
}

pub(crate) struct Control<D: Database> {
    next: Mutex<VecDeque<OnCommit>>,
    open: Mutex<Vec<D::Tx>>,
    begun: AtomicUsize,
    waiting: AtomicUsize,
    /// From this number of transactions on, the database is away.
    ends: AtomicUsize,
}

pub(crate) struct StagedTx<D: Database> {
    tx: D::Tx,
    control: Arc<Control<D>>,
}

#[derive(Debug)]
pub(crate) enum Failed<E> {
    Driver(E),
    /// The connection has broken.
    Cut,
}

impl<D: Database> Staged<D> {
    pub(crate) fn new(db: D) -> Self {
        let control = Control {
            next: Mutex::default(),
            open: Mutex::default(),
            begun: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            ends: AtomicUsize::new(usize::MAX),
        };
        Self {
            db,
            control: Arc::new(control),
        }
    }

    /// Decides about the COMMIT after those that are decided.
    pub(crate) fn on_commit(&self, on: OnCommit) {
        locked(&self.control.next).push_back(on);
    }

    /// Has the server carry out the COMMITs that were left open.
    pub(crate) async fn commit_open(&self) {
        let open: Vec<_> = locked(&self.control.open).drain(..).collect();
        assert!(!open.is_empty(), "no COMMIT was left open");
        for tx in open {
            D::commit(tx).await.expect("a commit");
        }
    }

    /// Returns how many transactions were begun.
    pub(crate) fn begun(&self) -> usize {
        self.control.begun.load(Ordering::SeqCst)
    }

    /// Returns how many COMMITs have begun to wait for a permit.
    pub(crate) fn waiting(&self) -> usize {
        self.control.waiting.load(Ordering::SeqCst)
    }

    /// Lets so many more transactions begin, and then is away.
    pub(crate) fn ends_after(&self, more: usize) {
        let last = self.begun() + more;
        self.control.ends.store(last, Ordering::SeqCst);
    }

    fn is_away(&self) -> bool {
        self.begun() >= self.control.ends.load(Ordering::SeqCst)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<D: Database> Database for Staged<D> {
    type Tx = StagedTx<D>;
    type Connection = D::Connection;
    type Error = Failed<D::Error>;

    fn dialect(&self) -> Dialect {
        self.db.dialect()
    }

    async fn begin(&self, statement: &'static str) -> Result<Self::Tx, Self::Error> {
        if self.is_away() {
            return Err(Failed::Cut);
        }
        self.control.begun.fetch_add(1, Ordering::SeqCst);
        let tx = self.db.begin(statement).await.map_err(Failed::Driver)?;
        // No database answers at once.
        tokio::task::yield_now().await;
        let control = Arc::clone(&self.control);
        Ok(StagedTx { tx, control })
    }

    async fn read(
        &self,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> Result<Option<Row>, Self::Error> {
        if self.is_away() {
            return Err(Failed::Cut);
        }
        let row = self.db.read(statement, values).await;
        row.map_err(Failed::Driver)
    }

    async fn query(
        tx: &mut Self::Tx,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> Result<Option<Row>, Self::Error> {
        let row = D::query(&mut tx.tx, statement, values).await;
        row.map_err(Failed::Driver)
    }

    async fn execute(
        tx: &mut Self::Tx,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> Result<u64, Self::Error> {
        let rows = D::execute(&mut tx.tx, statement, values).await;
        rows.map_err(Failed::Driver)
    }

    fn connection(tx: &mut Self::Tx) -> &mut Self::Connection {
        D::connection(&mut tx.tx)
    }

    fn connection_ref(tx: &Self::Tx) -> &Self::Connection {
        D::connection_ref(&tx.tx)
    }

    async fn commit(tx: Self::Tx) -> Result<(), Self::Error> {
        let StagedTx { tx, control } = tx;
        let on = locked(&control.next).pop_front();
        match on {
            None => {}
            Some(OnCommit::Waits(permits)) => {
                control.waiting.fetch_add(1, Ordering::SeqCst);
                permits.acquire().await.expect("open").forget();
            }
            Some(OnCommit::IsNotSent) => {
                D::rollback(tx).await.map_err(Failed::Driver)?;
                return Err(Failed::Cut);
            }
            Some(OnCommit::IsNotAnswered) => {
                D::commit(tx).await.map_err(Failed::Driver)?;
                return Err(Failed::Cut);
            }
            Some(OnCommit::StaysOpen) => {
                locked(&control.open).push(tx);
                return Err(Failed::Cut);
            }
        }
        D::commit(tx).await.map_err(Failed::Driver)
    }

    async fn rollback(tx: Self::Tx) -> Result<(), Self::Error> {
        D::rollback(tx.tx).await.map_err(Failed::Driver)
    }

    fn code<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<Cow<'a, str>> {
        match error.downcast_ref::<Self::Error>()? {
            Failed::Driver(error) => D::code(error),
            Failed::Cut => None,
        }
    }
}

impl<D: Database> Clone for Staged<D> {
    fn clone(&self) -> Self {
        Self {
            db: self.db.clone(),
            control: Arc::clone(&self.control),
        }
    }
}

impl<E: fmt::Display> fmt::Display for Failed<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Driver(error) => error.fmt(f),
            Self::Cut => f.write_str("the connection has broken"),
        }
    }
}

impl<E: std::error::Error> std::error::Error for Failed<E> {}
