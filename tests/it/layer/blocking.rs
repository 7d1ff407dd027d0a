//! Tests handlers whose work blocks a thread, and clients that leave in the middle of it.
//!
//! The handlers have a lock by the attribute alone, so a server drops them when their client leaves.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use lock_core::{Error, LockHandle, LockManager, distributed_lock};
use lock_tests::{RedisServer, needs, wait};
use lock_tower::{LockContext, LockLayer};
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use super::client::{Version, WAYS};
use super::{Server, click};

/// A table whose driver blocks its thread. It counts the writers inside.
#[derive(Clone)]
struct Table(Arc<Inner>);

struct Inner {
    begun: watch::Sender<usize>,
    inside: AtomicUsize,
    most: AtomicUsize,
    ends: Mutex<mpsc::Receiver<()>>,
}

/// Ends the writes. A test that fails drops it, which ends all of them, because a runtime waits for its blocking threads.
struct Ends(mpsc::Sender<()>);

impl Ends {
    fn end_one(&self) {
        self.0.send(()).expect("the table lives");
    }
}

impl Table {
    fn new() -> (Table, Ends) {
        let (end, ends) = mpsc::channel();
        let table = Table(Arc::new(Inner {
            begun: watch::Sender::new(0),
            inside: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
            ends: Mutex::new(ends),
        }));
        (table, Ends(end))
    }

    /// Blocks its thread until the test ends the write.
    fn write(&self) {
        let inside = self.0.inside.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.most.fetch_max(inside, Ordering::SeqCst);
        self.0.begun.send_modify(|count| *count += 1);
        let ends = self.0.ends.lock().expect("no panic");
        let _ = ends.recv();
        drop(ends);
        self.0.inside.fetch_sub(1, Ordering::SeqCst);
    }

    async fn begun(&self, writes: usize) {
        let mut begun = self.0.begun.subscribe();
        let begun = begun.wait_for(|count| *count >= writes);
        let begun = tokio::time::timeout(wait::PATIENCE, begun).await;
        begun.expect("the write begins").expect("the table lives");
    }

    /// Returns how many writes have begun, and how many of them were inside at the same time.
    fn counts(&self) -> (usize, usize) {
        let most = self.0.most.load(Ordering::SeqCst);
        (*self.0.begun.borrow(), most)
    }
}

async fn write(lock: &LockHandle, table: Table) -> Result<StatusCode, Error> {
    let kept = lock.keep()?;
    let work = spawn_blocking(move || {
        table.write();
        drop(kept);
    });
    work.await.expect("no panic");
    Ok(StatusCode::CREATED)
}

#[distributed_lock(key = "account:7", ttl = "60s", manager = locks, guard = lock)]
async fn book(locks: LockManager, table: Table) -> Result<StatusCode, Error> {
    write(lock, table).await
}

#[distributed_lock(key = "account:7", ttl = "60s", wait = "60s", manager = locks, guard = lock)]
async fn book_in_turn(locks: LockManager, table: Table) -> Result<StatusCode, Error> {
    write(lock, table).await
}

async fn server(url: &str, table: &Table) -> Server {
    let locks = crate::steps::manager(url).await;
    let (first, second) = (
        (locks.clone(), table.clone()),
        (locks.clone(), table.clone()),
    );
    let app = Router::new()
        .route(
            "/orders",
            post(async move || book(first.0.clone(), first.1.clone()).await),
        )
        .route(
            "/in-turn",
            post(async move || book_in_turn(second.0.clone(), second.1.clone()).await),
        );
    Server::serve(locks, app).await
}

/// Has clients leave in the middle of a write, on two servers that share the locks of `url`.
async fn no_two_writers_are_inside_although_clients_leave(url: &str) {
    for how in WAYS {
        let (table, ends) = Table::new();
        let (here, there) = (server(url, &table).await, server(url, &table).await);
        let client = how.click(&here, "42").await;
        table.begun(1).await;
        let rest = client.leave();
        // The server has dropped the handler, and with it the body under the lock.
        here.left(1).await;
        for server in [&here, &there] {
            assert_eq!(click(server, "42").await.status, 409, "{how:?}");
        }
        let in_turn = [&here, &there].map(|server| {
            let port = server.port();
            tokio::spawn(async move {
                let answer = Version::Http1.post(port, "/in-turn", &[]);
                answer.await.expect("an answer").status
            })
        });
        for _ in 0..3 {
            ends.end_one();
        }
        for answer in in_turn {
            assert_eq!(answer.await.expect("no panic"), 201, "{how:?}");
        }
        assert_eq!(table.counts(), (3, 1), "{how:?}");
        drop(rest);
        for server in [here, there] {
            assert!(server.locks().drain(wait::PATIENCE).await.is_complete());
        }
    }
}

#[tokio::test]
async fn in_one_process_a_blocking_write_keeps_its_lock_although_its_client_leaves() {
    no_two_writers_are_inside_although_clients_leave("memory:blocking-writes").await;
}

#[tokio::test]
async fn on_redis_a_blocking_write_keeps_its_lock_although_its_client_leaves() {
    needs!(redis);
    let redis = RedisServer::start();
    no_two_writers_are_inside_although_clients_leave(&redis.url()).await;
    assert_eq!(crate::steps::keys(&redis), Vec::<String>::new());
}

#[tokio::test]
async fn a_request_that_is_answered_before_its_blocking_work_has_ended_keeps_its_lock() {
    needs!(redis);
    let redis = RedisServer::start();
    let (table, ends) = Table::new();
    let mut servers = Vec::new();
    for _ in 0..2 {
        let locks = crate::steps::manager(&redis.url()).await;
        let table = table.clone();
        let accept = async move |lock: LockContext| -> Result<StatusCode, Error> {
            let (kept, table) = (lock.keep()?, table.clone());
            spawn_blocking(move || {
                table.write();
                drop(kept);
            });
            Ok(StatusCode::ACCEPTED)
        };
        let layer =
            LockLayer::template(locks.clone(), "report:<header.x-user-id>").expect("a template");
        let layer = layer.acquire_timeout(wait::PATIENCE);
        let app = Router::new()
            .route("/orders", post(accept))
            .route_layer(layer);
        servers.push(Server::serve(locks, app).await);
    }
    assert_eq!(click(&servers[0], "42").await.status, 202);
    table.begun(1).await;
    for server in &servers {
        assert_eq!(click(server, "42").await.status, 409);
    }
    ends.end_one();
    assert!(servers[0].locks().drain(wait::PATIENCE).await.is_complete());
    assert_eq!(click(&servers[1], "42").await.status, 202);
    ends.end_one();
    assert!(servers[1].locks().drain(wait::PATIENCE).await.is_complete());
    assert_eq!(table.counts(), (2, 1));
    assert_eq!(crate::steps::keys(&redis), Vec::<String>::new());
}
