//! Tests the settings of a layer, on a real Redis.

use std::time::Duration;

use axum::Router;
use axum::http::{HeaderName, Method, StatusCode};
use axum::routing::post;
use lock_core::{LockManager, Renew};
use lock_tests::{RedisServer, needs, wait};
use lock_tower::{LockLayer, Outage, RefusalFormat};
use tokio::time::timeout;
use tower_http::cors::{Any, CorsLayer};

use super::client::VERSIONS;
use super::{Gate, Server, click, key, layer, nothing_is_left, server_on};
use crate::shop::code;

async fn server(
    redis: &RedisServer,
    gate: &Gate,
    told: impl FnOnce(LockLayer) -> LockLayer,
) -> Server {
    let locks = LockManager::connect(&redis.url()).await.expect("a manager");
    let layer = told(layer(&locks));
    Server::start(locks, layer, gate).await
}

#[tokio::test]
async fn a_duplicate_that_may_wait_runs_when_the_order_on_the_other_server_has_ended() {
    needs!(redis);
    for version in VERSIONS {
        let redis = RedisServer::start();
        let gate = Gate::closed();
        let waits = |layer: LockLayer| layer.wait(wait::PATIENCE);
        let (here, there) = (
            server(&redis, &gate, waits).await,
            server(&redis, &gate, waits).await,
        );
        let user = [("x-user-id", "42")];
        let one_by_one = async {
            gate.entered(1).await;
            wait::eventually("the duplicate waits", async || {
                redis.keys().iter().any(|key| key.starts_with("lockkit:!q"))
            })
            .await;
            gate.let_through(1);
            gate.entered(2).await;
            assert_eq!(gate.counts(), (2, 1));
            gate.let_through(1);
        };
        let (first, second, ()) = tokio::join!(
            version.post(&here, &user),
            version.post(&there, &user),
            one_by_one
        );
        assert_eq!((first.status, second.status), (201, 201), "{version:?}");
        nothing_is_left(&redis, &[&here, &there]).await;
    }
}

#[tokio::test]
async fn a_lock_without_renewal_is_lost_at_its_ttl_and_the_handler_goes_on() {
    needs!(redis);
    for version in VERSIONS {
        let redis = RedisServer::start();
        let gate = Gate::closed();
        let ttl = Duration::from_millis(400);
        let first = server(&redis, &gate, |layer| layer.ttl(ttl).renew(Renew::Off)).await;
        let other = server_on(&redis, &gate).await;
        let (order, ()) = tokio::join!(version.click(&first, "42"), async {
            let lock = gate.entered(1).await;
            timeout(wait::PATIENCE, lock.lost()).await.expect("told");
            wait::eventually("the lock has run out", async || {
                redis.get(&key("42")).is_none()
            })
            .await;
            let let_them = async {
                let next = gate.entered(2).await;
                assert!(next.fencing_token() > lock.fencing_token());
                gate.let_through(2);
            };
            let (next, ()) = tokio::join!(version.click(&other, "42"), let_them);
            assert_eq!(next.status, 201);
        });
        assert_eq!(order.status, 201, "{version:?}");
        nothing_is_left(&redis, &[&first, &other]).await;
    }
}

#[tokio::test]
async fn a_handler_that_hangs_does_not_block_its_user_for_ever() {
    needs!(redis);
    for version in VERSIONS {
        let redis = RedisServer::start();
        let gate = Gate::closed();
        let (ttl, longest) = (Duration::from_millis(600), Duration::from_millis(300));
        let first = server(&redis, &gate, |layer| layer.ttl(ttl).max_hold(longest)).await;
        let other = server_on(&redis, &gate).await;
        let (order, ()) = tokio::join!(version.click(&first, "42"), async {
            let lock = gate.entered(1).await;
            timeout(wait::PATIENCE, lock.lost()).await.expect("told");
            wait::eventually("the lock has run out", async || {
                redis.get(&key("42")).is_none()
            })
            .await;
            gate.let_through(2);
            gate.ended(1).await;
            assert_eq!(version.click(&other, "42").await.status, 201);
        });
        assert_eq!(order.status, 201, "{version:?}");
        nothing_is_left(&redis, &[&first, &other]).await;
    }
}

#[tokio::test]
async fn in_shadow_mode_a_duplicate_runs_without_a_lock() {
    needs!(redis);
    for version in VERSIONS {
        let redis = RedisServer::start();
        let gate = Gate::closed();
        let first = server_on(&redis, &gate).await;
        let watching = server(&redis, &gate, LockLayer::shadow).await;
        let user = [("x-user-id", "42")];
        let both = async {
            gate.entered(1).await;
            let let_them = async {
                assert!(gate.entered_anyhow(2).await.is_none());
                gate.let_through(2);
            };
            let (second, ()) = tokio::join!(version.post(&watching, &user), let_them);
            assert_eq!(second.status, 201, "{version:?}");
        };
        let (first_order, ()) = tokio::join!(version.post(&first, &user), both);
        assert_eq!(first_order.status, 201);
        nothing_is_left(&redis, &[&first, &watching]).await;
    }
}

#[tokio::test]
async fn only_the_configured_methods_are_locked() {
    needs!(redis);
    let redis = RedisServer::start();
    let only_put = |layer: LockLayer| layer.methods([Method::PUT]);
    let server = server(&redis, &Gate::open(), only_put).await;
    redis.reset_stats();
    for version in VERSIONS {
        assert_eq!(version.click(&server, "42").await.status, 201);
    }
    assert_eq!(crate::redis::asked(&redis), crate::redis::counts(&[]));
}

#[tokio::test]
async fn while_redis_is_down_requests_run_without_a_lock_or_one_by_one_in_their_process() {
    needs!(redis);
    for version in VERSIONS {
        let redis = RedisServer::start();
        let (free, alone) = (Gate::closed(), Gate::closed());
        let passing = server(&redis, &free, |layer| layer.on_outage(Outage::Pass)).await;
        let local = LockManager::in_memory();
        let falls_back = |layer: LockLayer| layer.on_outage(Outage::Fallback(local.clone()));
        let guarded = server(&redis, &alone, falls_back).await;
        redis.kill();

        let user = [("x-user-id", "42")];
        let both = async {
            assert!(free.entered_anyhow(2).await.is_none());
            free.let_through(2);
        };
        let (first, second, ()) = tokio::join!(
            version.post(&passing, &user),
            version.post(&passing, &user),
            both
        );
        assert_eq!((first.status, second.status), (201, 201), "{version:?}");

        let duplicate = async {
            alone.entered(1).await;
            let second = version.post(&guarded, &user).await;
            assert_eq!((second.status, &*code(&second)), (409, "lock_busy"));
            alone.let_through(1);
        };
        let (first, ()) = tokio::join!(version.post(&guarded, &user), duplicate);
        assert_eq!((first.status, alone.counts()), (201, (1, 1)), "{version:?}");
    }
}

#[tokio::test]
async fn a_form_gets_a_page_a_script_a_problem_and_both_the_text_of_the_service() {
    needs!(redis);
    let redis = RedisServer::start();
    let by_accept = |layer: LockLayer| layer.refusals(RefusalFormat::ByAccept);
    let own = |layer: LockLayer| {
        layer.on_reject(|rejection, request| {
            let words = format!("{} {}", rejection.code(), request.method);
            let mut answer = axum::http::Response::new(words);
            *answer.status_mut() = StatusCode::TOO_MANY_REQUESTS;
            answer
        })
    };
    let (pages, words) = (
        server(&redis, &Gate::open(), by_accept).await,
        server(&redis, &Gate::open(), own).await,
    );
    redis.cli(&["SET", &key("42"), "another", "PX", "60000"]);
    for version in VERSIONS {
        let form = [("x-user-id", "42"), ("accept", "text/html,*/*;q=0.8")];
        let page = version.post(&pages, &form).await;
        assert_eq!(page.status, 409);
        assert!(
            page.headers["content-type"].starts_with("text/html"),
            "{page:?}"
        );
        assert_eq!(page.headers["content-length"], page.body.len().to_string());
        let script = [("x-user-id", "42"), ("accept", "*/*")];
        let problem = version.post(&pages, &script).await;
        assert_eq!((problem.status, &*code(&problem)), (409, "lock_busy"));
        let own = version.post(&words, &form).await;
        assert_eq!((own.status, &*own.body), (429, "lock_busy POST"));
        // The answer contains neither the key nor the token of the other owner.
        for answer in [page, problem, own] {
            let told = format!("{answer:?}");
            assert!(
                !told.contains("submit") && !told.contains("another"),
                "{told}"
            );
        }
    }
}

#[tokio::test]
async fn a_page_of_another_origin_can_read_the_409_and_tell_it_from_one_of_the_service() {
    needs!(redis);
    let redis = RedisServer::start();
    let locks = LockManager::connect(&redis.url()).await.expect("a manager");
    let own = || async { (StatusCode::CONFLICT, "this mug was sold") };
    let cors = CorsLayer::new()
        .allow_origin(Any)
        .expose_headers([HeaderName::from_static("retry-after")]);
    let app = Router::new()
        .route("/orders", post(own))
        .route_layer(layer(&locks))
        .layer(cors);
    let server = Server::serve(locks, app).await;
    for version in VERSIONS {
        redis.cli(&["SET", &key("42"), "another", "PX", "60000"]);
        let headers = [("x-user-id", "42"), ("origin", "https://shop.example")];
        let refused = version.post(&server, &headers).await;
        assert_eq!((refused.status, &*code(&refused)), (409, "lock_busy"));
        assert_eq!(refused.headers["access-control-allow-origin"], "*");
        redis.cli(&["DEL", &key("42")]);
        let sold = version.post(&server, &headers).await;
        assert_eq!((sold.status, &*sold.body), (409, "this mug was sold"));
    }
    nothing_is_left(&redis, &[&server]).await;
}

#[tokio::test]
async fn the_layer_waits_for_a_slow_redis_as_long_as_configured() {
    needs!(redis);
    let redis = RedisServer::start();
    let gate = Gate::open();
    let patient = |layer: LockLayer| layer.acquire_timeout(wait::PATIENCE);
    let server = server(&redis, &gate, patient).await;
    assert_eq!(click(&server, "warm").await.status, 201);
    for version in VERSIONS {
        redis.stop();
        let mut order = std::pin::pin!(version.click(&server, "42"));
        // This is twice the default timeout, and no answer has come.
        let early = timeout(Duration::from_millis(500), &mut order).await;
        assert!(early.is_err(), "{early:?}");
        redis.cont();
        assert_eq!(order.await.status, 201, "{version:?}");
    }
    nothing_is_left(&redis, &[&server]).await;
}
