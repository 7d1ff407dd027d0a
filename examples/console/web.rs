//! The web page: its routes, and what its forms do.

use std::io::Write;

use axum::extract::{Form, Query, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::get;
use axum::{Router, middleware};
use lock_core::operator::{Forced, Operator};
use lock_core::{Error, ErrorKind};
use serde::Deserialize;
use tokio::net::TcpListener;
use tower::ServiceBuilder;

use crate::config::Config;
use crate::origin::{self, Hosts};
use crate::{find, pages, words};

/// The page loads nothing but its own script and style, and no other page shows it in a frame.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; \
                      form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// Serves the page until the process ends.
pub(crate) async fn serve(
    operator: Operator,
    config: &Config,
) -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind(config.listen).await;
    let listener =
        listener.map_err(|error| format!("cannot listen on {}: {error}", config.listen))?;
    let address = listener.local_addr()?;
    if !address.ip().is_loopback() {
        eprintln!("console: the page has no login, and other machines may reach {address}");
    }
    let hosts = Hosts::new(address, config.host.as_deref());
    let mut out = std::io::stdout();
    writeln!(out, "console: open http://{address}")?;
    out.flush()?;
    axum::serve(listener, router(operator, hosts)).await?;
    Ok(())
}

pub(crate) fn router(operator: Operator, hosts: Hosts) -> Router {
    Router::new()
        .route("/", get(list))
        .route("/lock", get(lock))
        .route("/free", get(confirm).post(free))
        .route(
            "/style.css",
            get(async || file("text/css", include_str!("style.css"))),
        )
        .route(
            "/page.js",
            get(async || file("text/javascript", include_str!("page.js"))),
        )
        .with_state(operator)
        .layer(
            ServiceBuilder::new()
                .layer(middleware::map_response(with_headers))
                .layer(middleware::from_fn_with_state(hosts, origin::check)),
        )
}

#[derive(Deserialize)]
struct Search {
    #[serde(default)]
    q: String,
}

async fn list(State(operator): State<Operator>, Query(search): Query<Search>) -> Response {
    let wanted = search.q.trim();
    if !wanted.is_empty() && !wanted.contains('*') {
        return Redirect::to(&pages::address("/lock", wanted, None)).into_response();
    }
    let pattern = match wanted {
        "" => "*",
        wanted => wanted,
    };
    match find::locks(&operator, pattern).await {
        Ok(mut found) => {
            find::name_waiters(&operator, &mut found.locks).await;
            Html(pages::list(&found, wanted)).into_response()
        }
        Err(error) => trouble(&error),
    }
}

#[derive(Deserialize)]
struct Lock {
    key: String,
    /// What became of an order for it.
    said: Option<String>,
}

async fn lock(State(operator): State<Operator>, Query(lock): Query<Lock>) -> Response {
    let said = match lock.said.as_deref() {
        Some("freed") => Some(words::outcome(Forced::Freed)),
        Some("told") => Some(words::outcome(Forced::Told)),
        Some("changed") => Some(words::outcome(Forced::Changed)),
        _ => None,
    };
    match find::lock(&operator, &lock.key).await {
        Ok(seen) => Html(pages::lock(&seen, said)).into_response(),
        Err(error) => trouble(&error),
    }
}

#[derive(Deserialize)]
struct Hold {
    key: String,
    holder: String,
}

/// Shows who would lose the key. It changes nothing.
async fn confirm(State(operator): State<Operator>, Query(hold): Query<Hold>) -> Response {
    match find::lock(&operator, &hold.key).await {
        Ok(seen) => match find::holder(&seen, &hold.holder) {
            Some(holder) => Html(pages::confirmation(&seen, holder)).into_response(),
            None => said(&hold.key, "changed"),
        },
        Err(error) => trouble(&error),
    }
}

#[derive(Deserialize)]
struct Order {
    key: String,
    holder: String,
    reason: String,
}

/// Frees the key from the holder that the confirmation has named, and from no other.
async fn free(State(operator): State<Operator>, Form(order): Form<Order>) -> Response {
    let seen = match find::lock(&operator, &order.key).await {
        Ok(seen) => seen,
        Err(error) => return trouble(&error),
    };
    let Some(holder) = find::holder(&seen, &order.holder) else {
        return said(&order.key, "changed");
    };
    match operator.force(holder).because(order.reason.trim()).await {
        Ok(forced) => said(
            &order.key,
            match forced {
                Forced::Freed => "freed",
                Forced::Told => "told",
                _ => "changed",
            },
        ),
        Err(error) => trouble(&error),
    }
}

/// Goes to the page of the lock, so that a reload sends no form again.
fn said(key: &str, said: &str) -> Response {
    let address = pages::address("/lock", key, None);
    Redirect::to(&format!("{address}&said={said}")).into_response()
}

fn trouble(error: &Error) -> Response {
    let status = match error.kind() {
        ErrorKind::Invalid => StatusCode::BAD_REQUEST,
        ErrorKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    (status, Html(pages::trouble(&error.to_string()))).into_response()
}

fn file(kind: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

async fn with_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // With `no-referrer` a browser would not say where a form comes from.
        (header::REFERRER_POLICY, "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
