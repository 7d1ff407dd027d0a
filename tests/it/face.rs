//! Uses the public interface as the documentation shows it, like a user of the crates. Every
//! line runs on both stores.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::routing::post;
use lock_core::{
    AsLockManager, Error, ErrorKind, LockGuard, LockHandle, LockManager, distributed_lock, lock_key,
};
use lock_tests::{RedisServer, needs};
use lock_tower::LockLayer;
use tower::ServiceExt;

#[tokio::test]
async fn the_attribute_the_library_and_the_layer_on_the_embedded_store() {
    all_of_it(LockManager::in_memory()).await;
}

#[tokio::test]
async fn the_attribute_the_library_and_the_layer_on_redis() {
    needs!(redis);
    let server = RedisServer::start();
    all_of_it(LockManager::connect(&server.url()).await.unwrap()).await;
    let left = server.keys();
    assert_eq!(
        left,
        ["lockkit:!f", "lockkit:submit:ada:POST:/orders"],
        "the high-water mark, and a cooldown"
    );
}

async fn all_of_it(locks: LockManager) {
    locks.scope(the_attribute()).await;
    the_attribute_on_a_method(&locks).await;
    the_library(&locks).await;
    the_layer(&locks).await;
    let drained = locks.drain(Duration::from_secs(5)).await;
    assert!(drained.is_complete(), "{drained:?}");
}

#[derive(Debug)]
enum ShopError {
    #[expect(dead_code, reason = "printed when a test fails")]
    Lock(Error),
    SoldOut,
}

impl From<Error> for ShopError {
    fn from(error: Error) -> Self {
        ShopError::Lock(error)
    }
}

struct Cart(Vec<String>);

#[distributed_lock(key = "order:<uid>", ttl = "10s")]
async fn place_order(uid: u64, cart: Cart) -> Result<usize, ShopError> {
    if cart.0.is_empty() {
        return Err(ShopError::SoldOut);
    }
    tokio::task::yield_now().await;
    if cart.0.len() > 1 {
        let locks = LockManager::installed().map_err(ShopError::Lock)?;
        let stranger = tokio::spawn(locks.lock(lock_key!("order:<uid>")).acquire()).await;
        let refused = stranger.unwrap().map(drop).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Busy);
        // A call that this body makes itself is inside its lock.
        let inside = Box::pin(place_order(uid, Cart(vec!["tea".to_owned()]))).await;
        assert_eq!(inside.unwrap(), 1);
    }
    Ok(cart.0.len())
}

async fn the_attribute() {
    let cart = || Cart(vec!["tea".to_owned(), "milk".to_owned()]);
    assert_eq!(place_order(42, cart()).await.unwrap(), 2);
    assert!(matches!(
        place_order(42, Cart(vec![])).await,
        Err(ShopError::SoldOut)
    ));
    let (first, second) = tokio::join!(place_order(1, cart()), place_order(2, cart()));
    assert_eq!((first.unwrap(), second.unwrap()), (2, 2));
}

struct Db(AtomicU32);

impl Db {
    async fn deduct(&self, line: &OrderLine, fence: lock_core::FencingToken) -> Result<u32, Error> {
        assert!(u64::from(fence) > 0 && i64::from(fence) > 0);
        tokio::task::yield_now().await;
        Ok(self.0.fetch_sub(line.quantity, Ordering::SeqCst) - line.quantity)
    }
}

struct OrderLine {
    sku: String,
    quantity: u32,
}

struct Stock {
    db: Db,
    locks: LockManager,
}

impl AsLockManager for Stock {
    fn as_lock_manager(&self) -> LockManager {
        self.locks.clone()
    }
}

impl Stock {
    #[distributed_lock(
        key = "sku:<line.sku>", ttl = "5s", wait = "2s", max_hold = "30s",
        manager = self.locks, guard = lock,
    )]
    async fn deduct(&self, line: &OrderLine) -> Result<u32, Error> {
        assert_eq!(lock.key(), "sku:A1");
        self.db.deduct(line, lock.fencing_token()).await
    }
}

async fn the_attribute_on_a_method(locks: &LockManager) {
    let stock = Stock {
        db: Db(AtomicU32::new(10)),
        locks: locks.clone(),
    };
    let line = OrderLine {
        sku: "A1".to_owned(),
        quantity: 3,
    };
    let (one, two, three) = tokio::join!(
        stock.deduct(&line),
        stock.deduct(&line),
        stock.deduct(&line)
    );
    let mut left = [one.unwrap(), two.unwrap(), three.unwrap()];
    left.sort_unstable();
    assert_eq!(left, [1, 4, 7]);
    let through_a_trait = stock.as_lock_manager().lock("state").acquire().await;
    through_a_trait.unwrap().release().await.unwrap();
}

async fn the_library(locks: &LockManager) {
    let guard = locks
        .lock("order:42")
        .ttl(Duration::from_secs(10))
        .wait(Duration::from_secs(2))
        .acquire()
        .await
        .unwrap();
    let maybe: Option<LockGuard> = locks.lock("order:42").try_acquire().await.unwrap();
    assert!(maybe.is_none());
    assert_eq!(locks.held()[0].key(), "order:42");
    assert!(guard.is_valid() && guard.remaining() > Duration::from_secs(9));
    let handle: LockHandle = guard.handle();
    let older = handle.fencing_token();
    assert!(
        tokio::time::timeout(Duration::ZERO, guard.lost())
            .await
            .is_err()
    );
    if let Err(error) = guard.release().await {
        panic!("{error}");
    }
    assert!(!handle.is_valid());

    let uid = 42;
    let out = locks
        .lock(lock_key!("order:<uid>"))
        .run(async { "done" })
        .await
        .unwrap();
    assert_eq!(out, "done");
    let newer = locks
        .lock("order:42")
        .run_with(|lock| async move { lock.fencing_token() })
        .await
        .unwrap();
    assert!(newer > older);

    let task = tokio::spawn(locks.lock("k").acquire());
    drop(task.await.unwrap().unwrap());
    assert!(locks.lock("k").try_acquire().await.unwrap().is_some());
}

async fn the_layer(locks: &LockManager) {
    let layer = LockLayer::template(locks.clone(), "submit:<header.x-user-id>:<method>:<route>")
        .unwrap()
        .ttl(Duration::from_secs(10))
        .cooldown(Duration::from_secs(2));
    let app = Router::new()
        .route("/orders", post(async || StatusCode::CREATED))
        .route_layer(layer);
    let click = |user: &str| {
        let request = Request::post("/orders")
            .header("x-user-id", user)
            .body(Body::empty());
        app.clone().oneshot(request.unwrap())
    };
    assert_eq!(click("ada").await.unwrap().status(), StatusCode::CREATED);
    let second = click("ada").await.unwrap();
    assert_eq!(second.status(), StatusCode::CONFLICT);
    assert_eq!(second.headers()["retry-after"], "2");
    assert_eq!(click("").await.unwrap().status(), StatusCode::BAD_REQUEST);
}
