//! Tests all sources of a key, in a template and as an extractor.
//!
//! The tests use both versions of HTTP, and two routers of one service.

mod click;
mod refused;
mod rows;

use std::pin::pin;

use axum::extract::Request;
use axum::http::HeaderMap;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::post;
use axum::{Router, body::Bytes};
use lock_core::LockManager;
use lock_tests::{RedisServer, needs, wait};
use lock_tower::LockContext;

use super::client::{VERSIONS, Version};
use super::{Gate, Server};
use crate::shop::code;
use rows::{Row, rows};

/// A function that puts a layer around the routes.
type Around = Box<dyn Fn(LockManager, Router) -> Router>;

/// The user that the authentication outside the layer has found.
#[derive(Clone)]
struct User(String);

/// Starts a service with the same routes in two places, each behind the layer. The handler answers
/// with the body that it has read.
async fn service(locks: &LockManager, around: &Around, gate: &Gate) -> Server {
    let gate = gate.clone();
    let echo = move |lock: Option<LockContext>, body: Bytes| async move {
        gate.pass(lock).await;
        body
    };
    let orders = Router::new().route("/orders/{id}", post(echo.clone()).put(echo));
    let locked = around(locks.clone(), orders);
    let app = Router::new()
        .nest("/shop", locked.clone())
        .nest("/outlet", locked)
        .layer(from_fn(authenticate));
    Server::serve(locks.clone(), app).await
}

async fn authenticate(mut request: Request, next: Next) -> Response {
    if let Some(user) = basic(request.headers()) {
        request.extensions_mut().insert(user);
    }
    next.run(request).await
}

fn basic(headers: &HeaderMap) -> Option<User> {
    let value = headers.get("authorization")?.to_str().ok()?;
    Some(User(value.strip_prefix("Basic ")?.to_owned()))
}

#[tokio::test]
async fn each_source_tells_equal_clicks_from_others_in_a_template_and_as_an_extractor() {
    needs!(redis);
    let redis = RedisServer::start();
    let url = redis.url();
    let managers = [(); 2].map(|()| LockManager::connect(&url));
    let [here, there] = managers.map(|locks| async { locks.await.expect("a manager") });
    let managers = [here.await, there.await];
    for row in rows() {
        for version in VERSIONS {
            tells_apart(&redis, &managers, &row, version).await;
        }
    }
}

/// Checks the answers on the other server while the first click is inside.
///
/// The other server refuses the same click and runs another.
async fn tells_apart(
    redis: &RedisServer,
    [here, there]: &[LockManager; 2],
    row: &Row,
    version: Version,
) {
    let what = format!("{} over {version:?}", row.what);
    let gate = Gate::closed();
    let here = service(here, &row.here, &gate).await;
    let there = service(there, &row.there, &gate).await;
    let others = async {
        let key = format!("lockkit:{}", row.key);
        assert_eq!(locks(redis), [key], "{what}");
        let again = tokio::select! {
            again = row.same.send(version, &there) => again,
            _ = gate.entered_anyhow(2) => panic!("{what}: the same click runs twice"),
        };
        assert_eq!((again.status, &*code(&again)), (409, "lock_busy"), "{what}");
        let let_them = async {
            gate.entered(2).await;
            gate.let_through(2);
        };
        let (other, ()) = tokio::join!(row.other.send(version, &there), let_them);
        assert_eq!(
            (other.status, &*other.body),
            (200, row.other.body),
            "{what}"
        );
    };
    let mut first = pin!(row.first.send(version, &here));
    tokio::select! {
        early = &mut first => panic!("{what}: {early:?}"),
        _ = gate.entered(1) => {}
    }
    let (first, ()) = tokio::join!(first, others);
    assert_eq!(
        (first.status, &*first.body),
        (200, row.first.body),
        "{what}"
    );
    wait::eventually("no key is left", async || locks(redis).is_empty()).await;
}

fn locks(redis: &RedisServer) -> Vec<String> {
    let mut keys = redis.keys();
    keys.retain(|key| !key.starts_with("lockkit:!"));
    keys
}
