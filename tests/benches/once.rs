//! Measures a request whose effect and answer are one commit, against a plain transaction with and without a lock layer, and
//! against the read of a record.
//!
//! The requests go directly into the service, one at a time, and each has its own key. Its handler writes one row and answers
//! with 300 bytes. The locks are in the process. PostgreSQL is on a core of its own.

mod databases;

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{Request, StatusCode};
use axum::routing::post;
use lock_core::once::{self, Dialect};
use lock_core::{LockManager, OperationId};
use lock_tower::{LockContext, LockLayer, Once, Refused, Replay, Replayed};
use tower::ServiceExt;

use self::databases::Bench;
use crate::bars::Bars;
use crate::machine::{median, now};

const ROUNDS: usize = 30;
const TURN: usize = 64;
const ANSWER: [u8; 300] = [b'x'; 300];

pub(crate) fn run(cores: [usize; 2], short: bool, bars: &mut Bars) {
    let runtime = crate::machine::runtime();
    let rounds = if short { ROUNDS / 5 } else { ROUNDS };
    println!(
        "\n| one row and an answer of 300 bytes, µs | plain | behind a lock | once | repeated | a peek \
         | once × plain | (once − behind a lock) × a peek | (repeated − what the lock costs) × a peek |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    let folder = tempfile::tempdir().expect("a folder");
    runtime.block_on(async {
        let sqlite = databases::sqlite(&folder, "NORMAL");
        let found = compare("SQLite, synchronous = NORMAL", sqlite, rounds).await;
        bars.at_most(
            "once, SQLite: (once − behind a lock) × a peek",
            found.added,
            3.5,
        );
        let sqlite = databases::sqlite(&folder, "FULL");
        compare("SQLite, synchronous = FULL", sqlite, rounds).await;

        let server = databases::postgres(cores);
        let postgres = databases::pool(&server, "off").await;
        let found = compare("PostgreSQL, synchronous_commit = off", postgres, rounds).await;
        bars.at_most(
            "once, PostgreSQL without fsync: (once − behind a lock) × a peek",
            found.added,
            3.5,
        );
        bars.at_most(
            "once, PostgreSQL: (repeated − what the lock costs) × a peek",
            found.repeated,
            1.2,
        );
        // Its ratios depend on how long the disk takes to write.
        let postgres = databases::pool(&server, "on").await;
        compare("PostgreSQL, synchronous_commit = on", postgres, rounds).await;
    });
}

/// Medians of ratios, each within one round.
struct Found {
    /// (once − behind a lock) × a peek.
    added: f64,
    /// (repeated − (behind a lock − plain)) × a peek.
    repeated: f64,
}

async fn compare<D: Bench>(name: &str, db: D, rounds: usize) -> Found {
    once::create_table(&db).await.expect("a table");
    let operations = Operations::default();
    let bare = plain(db.clone());
    let locked = locked(db.clone()).await;
    let together = together(db.clone(), operations.clone()).await;
    let mut turns: [Vec<f64>; 5] = Default::default();
    for round in 0..=rounds {
        let keys = next_keys();
        let turn = [
            time_of(keys.clone(), async |key| send(&bare, key, false).await).await,
            time_of(keys.clone(), async |key| send(&locked, key, false).await).await,
            time_of(keys.clone(), async |key| send(&together, key, false).await).await,
            time_of(keys, async |key| send(&together, key, true).await).await,
            time_of(operations.take(), async |operation| {
                read(&db, operation).await
            })
            .await,
        ];
        // The first round makes connections and prepares statements.
        if round > 0 {
            for (all, one) in turns.iter_mut().zip(turn) {
                all.push(one);
            }
        }
    }
    let [bare, locked, together, again, peek] = &turns;
    let ratio = |of: &dyn Fn(usize) -> f64| median((0..rounds).map(of).collect());
    let found = Found {
        added: ratio(&|round| (together[round] - locked[round]) / peek[round]),
        repeated: ratio(&|round| (again[round] - locked[round] + bare[round]) / peek[round]),
    };
    print!("| {name} |");
    for turn in &turns {
        print!(" {:.0} |", median(turn.clone()));
    }
    println!(
        " {:.2} | {:.2} | {:.2} |",
        ratio(&|round| together[round] / bare[round]),
        found.added,
        found.repeated
    );
    found
}

/// The numbers of the operations that were done in this round.
#[derive(Clone, Default)]
struct Operations(Arc<Mutex<Vec<OperationId>>>);

impl Operations {
    fn note(&self, lock: &LockContext) {
        let operation = lock.operation_id().expect("a key");
        self.0.lock().expect("no panic").push(operation);
    }

    fn take(&self) -> Vec<OperationId> {
        std::mem::take(&mut self.0.lock().expect("no panic"))
    }
}

/// Returns the keys of a turn, which no other turn has.
fn next_keys() -> Range<usize> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let first = NEXT.fetch_add(TURN, Ordering::Relaxed);
    first..first + TURN
}

fn plain<D: Bench>(db: D) -> Router {
    let pay = async |State(db): State<D>| pay(&db).await;
    Router::new().route("/", post(pay)).with_state(db)
}

/// Its handler does the same work as that of [`together`], without a transaction.
async fn locked<D: Bench>(db: D) -> Router {
    let operations = Operations::default();
    let pay = async move |State(db): State<D>, lock: LockContext| {
        operations.take();
        operations.note(&lock);
        pay(&db).await
    };
    let app = Router::new().route("/", post(pay)).with_state(db);
    app.route_layer(layer().await)
}

async fn pay<D: Bench>(db: &D) -> (StatusCode, Bytes) {
    let begin = match db.dialect() {
        Dialect::Sqlite => "BEGIN IMMEDIATE",
        _ => "BEGIN",
    };
    let mut tx = db.begin(begin).await.expect("a transaction");
    D::insert(D::connection(&mut tx)).await;
    D::commit(tx).await.expect("a commit");
    (StatusCode::CREATED, Bytes::from_static(&ANSWER))
}

async fn together<D: Bench>(db: D, operations: Operations) -> Router {
    let pay = async move |lock: LockContext, once: Once<D>| {
        let mut tx = once.begin().await?;
        D::insert(&mut tx).await;
        operations.note(&lock);
        Ok::<_, Refused>((StatusCode::CREATED, Bytes::from_static(&ANSWER)))
    };
    let replay = Replay::in_database(db).caller_is_in_key();
    let layer = layer().await.replay(replay).expect("in bounds");
    Router::new().route("/", post(pay)).route_layer(layer)
}

async fn layer() -> LockLayer {
    let locks = LockManager::connect("memory:").await.expect("a manager");
    LockLayer::template(locks, "pay:<idempotency-key>").expect("a template")
}

async fn send(app: &Router, key: usize, replayed: bool) {
    let request = Request::post("/").header("idempotency-key", key);
    let request = request.body(Body::empty()).expect("a request");
    let answer = app.clone().oneshot(request).await.expect("never fails");
    assert_eq!(answer.status(), StatusCode::CREATED);
    assert_eq!(answer.extensions().get::<Replayed>().is_some(), replayed);
}

async fn read<D: Bench>(db: &D, operation: OperationId) {
    let found = once::peek(db, operation).await.expect("an answer");
    assert!(found.expect("a record").record.is_some());
}

/// Returns the median of the microseconds of each step of a turn.
async fn time_of<T>(steps: impl IntoIterator<Item = T>, mut one: impl AsyncFnMut(T)) -> f64 {
    let mut times = Vec::new();
    for step in steps {
        let before = now();
        one(step).await;
        times.push(Duration::from_nanos(now() - before).as_secs_f64() * 1e6);
    }
    median(times)
}
