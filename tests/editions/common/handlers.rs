//! Tests axum handlers with their extractors and responses.

// `debug_handler` writes such code for a plain function too.
#![allow(clippy::diverging_sub_expression)]

use axum::debug_handler;
use axum::extract::{Json, Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use lock_core::{AsLockManager, LockManager, distributed_lock};
use serde::{Deserialize, Serialize};

use super::errors::{AppError, ShopError};
use super::witness::at_work;

/// The state that the handlers share.
#[derive(Clone, Debug)]
pub struct App {
    /// The locks.
    pub locks: LockManager,
}

impl AsLockManager for App {
    fn as_lock_manager(&self) -> LockManager {
        self.locks.clone()
    }
}

/// An order.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub struct Order {
    /// The product.
    pub sku: String,
    /// The quantity.
    pub count: u64,
}

/// A page of a list.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Page {
    /// The number of the page.
    pub page: u64,
}

/// `Response`
#[distributed_lock(key = "response:<uid>", ttl = "10s", manager = app.locks)]
pub async fn response(State(app): State<App>, Path(uid): Path<u64>) -> Response {
    at_work().await;
    uid.to_string().into_response()
}

/// `Result<Json<_>, (StatusCode, String)>`
#[distributed_lock(key = "json:<uid>:<order.sku>", ttl = "10s", manager = app)]
pub async fn json(
    State(app): State<App>,
    Path((uid, _)): Path<(u64, String)>,
    Json(order): Json<Order>,
) -> Result<Json<Order>, (StatusCode, String)> {
    at_work().await;
    Ok(Json(order))
}

/// `Result<_, StatusCode>`
#[distributed_lock(key = "status:<page>", ttl = "10s", manager = app)]
pub async fn status(
    State(app): State<App>,
    Query(Page { page }): Query<Page>,
    headers: HeaderMap,
) -> Result<String, StatusCode> {
    at_work().await;
    if headers.contains_key("x-refuse") {
        return Err(StatusCode::IM_A_TEAPOT);
    }
    Ok(page.to_string())
}

/// `Result<_, AppError>`
#[distributed_lock(key = "app:<n>", ttl = "10s", manager = locks)]
pub async fn app_error(
    Extension(locks): Extension<LockManager>,
    Path(n): Path<String>,
) -> Result<Json<u64>, AppError> {
    at_work().await;
    Ok(Json(n.parse()?))
}

/// `Result<_, AppError>` with `impl IntoResponse` inside.
#[distributed_lock(key = "inside", ttl = "10s", manager = app)]
pub async fn opaque_inside(State(app): State<App>) -> Result<impl IntoResponse, AppError> {
    at_work().await;
    Ok((StatusCode::CREATED, "made"))
}

/// A handler with an error conversion of its own.
#[distributed_lock(key = "opaque", ttl = "10s", manager = app, on_error = |e| Err(StatusCode::from(e)))]
pub async fn own_answer(State(app): State<App>) -> Result<String, StatusCode> {
    at_work().await;
    Ok("done".to_owned())
}

/// `debug_handler` above.
#[debug_handler(state = App)]
#[distributed_lock(key = "debug:<uid>", ttl = "10s", manager = app)]
pub async fn debug_above(
    State(app): State<App>,
    Path((uid, _)): Path<(u64, String)>,
) -> Result<String, StatusCode> {
    at_work().await;
    Ok(uid.to_string())
}

/// `debug_handler` below.
#[distributed_lock(key = "debug:<uid>", ttl = "10s", manager = app.locks)]
#[debug_handler(state = App)]
pub async fn debug_below(State(app): State<App>, Path(uid): Path<u64>) -> Response {
    at_work().await;
    uid.to_string().into_response()
}

/// Every attribute that a handler may have. `debug_handler` copies the body to check its return type,
/// and the copy has no guard, so it is below.
#[distributed_lock(key = "all:<uid>", ttl = "10s", manager = app, guard = lock)]
#[debug_handler]
#[tracing::instrument(skip(app))]
pub async fn all(State(app): State<App>, Path(uid): Path<u64>) -> Result<String, AppError> {
    at_work().await;
    if uid == 0 {
        return Err(ShopError::SoldOut.into());
    }
    Ok(lock.key().to_owned())
}

/// Returns the routes. They accept only handlers whose futures are `Send` and `'static`.
pub fn routes(app: App) -> Router {
    let locks = app.locks.clone();
    Router::new()
        .route("/response/{uid}", get(response))
        .route("/json/{uid}/{other}", post(json))
        .route("/status", get(status))
        .route("/app/{n}", get(app_error))
        .route("/inside", get(opaque_inside))
        .route("/own", get(own_answer))
        .route("/above/{uid}/{other}", get(debug_above))
        .route("/below/{uid}", get(debug_below))
        .route("/all/{uid}", get(all))
        .layer(Extension(locks))
        .with_state(app)
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use axum::http::Request;
    use tower::ServiceExt as _;

    use super::super::errors::Answer;
    use super::super::witness::{locked, manager};
    use super::*;

    struct Answered {
        status: StatusCode,
        body: String,
    }

    impl Answer for Answered {
        fn says_busy(&self) -> bool {
            self.status.says_busy()
        }
    }

    async fn send(request: Request<Body>) -> Answered {
        let routes = routes(App { locks: manager() });
        let response = routes.oneshot(request).await.expect("infallible");
        let status = response.status();
        let body = to_bytes(response.into_body(), 1 << 20)
            .await
            .expect("whole");
        let body = String::from_utf8(body.to_vec()).expect("text");
        Answered { status, body }
    }

    fn request(path: &str) -> Request<Body> {
        Request::get(path).body(Body::empty()).expect("a request")
    }

    #[tokio::test]
    async fn handlers_are_locked_in_a_router() {
        for (path, key, status, body) in [
            ("/response/7", "response:7", 200, "7"),
            ("/status?page=2", "status:2", 200, "2"),
            ("/app/5", "app:5", 200, "5"),
            ("/inside", "inside", 201, "made"),
            ("/own", "opaque", 200, "done"),
            ("/above/7/x", "debug:7", 200, "7"),
            ("/below/7", "debug:7", 200, "7"),
            ("/all/7", "all:7", 200, "all:7"),
            ("/all/0", "all:0", 500, ""),
        ] {
            let answered = locked(key, send(request(path)), send(request(path))).await;
            assert_eq!(answered.status, status, "{}", path);
            assert_eq!(answered.body, body, "{}", path);
        }
    }

    #[tokio::test]
    async fn a_handler_with_a_body_is_locked_in_a_router() {
        let order = r#"{"sku":"A1","count":2}"#;
        let request = || {
            Request::post("/json/7/x")
                .header("content-type", "application/json")
                .body(Body::from(order))
                .expect("a request")
        };
        let answered = locked("json:7:A1", send(request()), send(request())).await;
        assert_eq!((answered.status, &*answered.body), (StatusCode::OK, order));
    }

    #[tokio::test]
    async fn an_error_of_the_body_is_unchanged() {
        let call = |n: &str| app_error(Extension(manager()), Path(n.to_owned()));
        let done = locked("app:x", call("x"), call("x")).await;
        assert!(done.is_err_and(|error| !error.says_busy()));
        let mut headers = HeaderMap::new();
        drop(headers.insert("x-refuse", "1".parse().expect("a value")));
        let app = App { locks: manager() };
        let call = || status(State(app.clone()), Query(Page { page: 1 }), headers.clone());
        let done = locked("status:1", call(), call()).await;
        assert_eq!(done, Err(StatusCode::IM_A_TEAPOT));
    }
}
