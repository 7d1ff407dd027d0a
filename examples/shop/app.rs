//! Defines the routes and the layers around them.

use std::error::Error;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use lock_core::LockManager;
use lock_tower::{InFlight, KeyTemplate, LockLayer, Replay};
use metrics_exporter_prometheus::PrometheusHandle;

use crate::auth::User;
use crate::db::Db;
use crate::error::PROBLEMS;
use crate::sqlite::Sqlite;
use crate::{
    auth, catalogue, charges, cors, exports, freeze, lose, metrics, orders, page, plain, transfers,
    views,
};

/// The limit for a request body. An order is two short fields.
const BODY_LIMIT: usize = 4 * 1024;

#[derive(Clone)]
pub(crate) struct Shop {
    pub(crate) db: Db,
    /// The same file, as a database in which an effect and its answer are one commit.
    pub(crate) once: Sqlite,
    pub(crate) locks: LockManager,
    pub(crate) metrics: PrometheusHandle,
    /// The length of the shop's day, for the page.
    pub(crate) day: Duration,
    /// The place of the locks, for the page.
    pub(crate) store: Arc<str>,
    /// Whether this process is one of a pair, which is started again when it has ended.
    pub(crate) in_pair: bool,
    /// The port of the other process of a pair, once it is known.
    pub(crate) peer: Arc<OnceLock<u16>>,
}

/// Builds the router, and the counters of requests under way, which end before the shop does.
pub(crate) fn router(shop: Shop) -> Result<(Router, [InFlight; 5]), Box<dyn Error>> {
    let (orders, under_way) = locked_orders(&shop)?;
    let (replayed, repeatable_under_way) = replayed_orders(&shop)?;
    let (exports, exports_under_way) = limited_exports(&shop)?;
    let (charges, [in_redis, in_commit]) = charges_of_killed_processes(&shop)?;
    let orders = orders
        .merge(replayed)
        .merge(charges)
        .route("/plain/orders", post(plain::create))
        .route_layer(from_fn(lose::lose))
        .route_layer(from_fn(auth::authenticate));
    let views = Router::new()
        .route("/stock", get(views::stock))
        .route("/cards", get(transfers::cards))
        .route("/transfers", post(transfers::create))
        .route("/catalogue", get(catalogue::read).put(catalogue::write))
        .route("/orders", get(views::orders))
        .route("/charges", get(charges::list))
        .route("/nights", get(views::nights))
        .route("/locks", get(views::locks))
        .route("/readyz", get(views::ready))
        .route("/metrics", get(metrics::serve))
        .route("/reset", post(views::reset))
        .route("/freeze", post(freeze::freeze));
    let router = Router::new()
        .merge(orders)
        .merge(exports)
        .merge(views)
        .merge(page::routes())
        .fallback(views::no_such_page)
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        // Outermost, so that the page of the other process can read a refusal too.
        .layer(from_fn_with_state(shop.clone(), cors::allow_peer))
        .with_state(shop);
    let under_way = [
        under_way,
        repeatable_under_way,
        exports_under_way,
        in_redis,
        in_commit,
    ];
    Ok((router, under_way))
}

#[rustfmt::skip]
fn locked_orders(shop: &Shop) -> Result<(Router<Shop>, InFlight), Box<dyn Error>> {
    // page: begin layer
    let one_click = LockLayer::template(shop.locks.clone(), "submit:<header.x-user-id>:<method>:<route>")?
        .ttl(Duration::from_secs(10))
        .cooldown(Duration::from_secs(2))
        .problem_types(PROBLEMS)
        .checked()?;
    let under_way = one_click.in_flight(); // drained before the shop ends
    Ok((Router::new().route("/orders", post(orders::create)).route_layer(one_click), under_way))
    // page: end layer
}

/// Serves orders that a client may send again when it has lost the answer.
#[rustfmt::skip]
fn replayed_orders(shop: &Shop) -> Result<(Router<Shop>, InFlight), Box<dyn Error>> {
    // page: begin replay
    let key = KeyTemplate::new("repeat:<ext.user>:<idempotency-key>")
        .extension("user", |user: &User| user.0.clone());
    let once = LockLayer::template(shop.locks.clone(), key)?
        .ttl(Duration::from_secs(10))
        .replay(Replay::default())?
        .problem_types(PROBLEMS)
        .checked()?;
    let under_way = once.in_flight();
    Ok((Router::new().route("/idempotent/orders", post(orders::create)).route_layer(once), under_way))
    // page: end replay
}

/// Serves charges whose answer is in Redis, and charges whose answer is in the commit of the charge.
#[rustfmt::skip]
fn charges_of_killed_processes(shop: &Shop) -> Result<(Router<Shop>, [InFlight; 2]), Box<dyn Error>> {
    let layer = |replay: Replay| -> Result<_, Box<dyn Error>> {
        let key = KeyTemplate::new("charge:<route>:<ext.user>:<idempotency-key>")
            .extension("user", |user: &User| user.0.clone());
        // The lock of a killed process ends after its ttl, and the repeated request waits for that.
        let layer = LockLayer::template(shop.locks.clone(), key)?.ttl(Duration::from_secs(2)).wait(Duration::from_secs(10));
        Ok(layer.replay(replay)?.problem_types(PROBLEMS).checked()?)
    };
    let in_redis = layer(Replay::default())?;
    let in_commit = layer(Replay::in_database(shop.once.clone()))?;
    let under_way = [in_redis.in_flight(), in_commit.in_flight()];
    let routes = Router::new().route("/redis/charges", post(charges::answer_in_redis)).route_layer(in_redis);
    let once = Router::new().route("/once/charges", post(charges::answer_in_commit)).route_layer(in_commit);
    Ok((routes.merge(once), under_way))
}

/// Serves the exports. The header stands in for the tenant that a login would tell.
#[rustfmt::skip]
fn limited_exports(shop: &Shop) -> Result<(Router<Shop>, InFlight), Box<dyn Error>> {
    // page: begin permits
    let five_each = LockLayer::template(shop.locks.clone(), "exports:<header.x-tenant>")?
        .permits(5) // the sixth is answered with 429
        .ttl(Duration::from_secs(10))
        .problem_types(PROBLEMS)
        .checked()?;
    let under_way = five_each.in_flight();
    Ok((Router::new().route("/exports", post(exports::create)).route_layer(five_each), under_way))
    // page: end permits
}
