//! Lets the page of one process of a pair send its clicks to the other process.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::Shop;

pub(crate) async fn allow_peer(State(shop): State<Shop>, request: Request, next: Next) -> Response {
    let Some(origin) = shop
        .peer
        .get()
        .and_then(|port| peer_origin(request.headers(), *port))
    else {
        return next.run(request).await;
    };
    let is_preflight = request.method() == Method::OPTIONS;
    let mut response = if is_preflight {
        StatusCode::NO_CONTENT.into_response()
    } else {
        next.run(request).await
    };
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::VARY, HeaderValue::from_static("origin"));
    headers.insert(
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("retry-after, idempotency-replayed"),
    );
    if is_preflight {
        headers.insert(
            header::ACCESS_CONTROL_ALLOW_METHODS,
            HeaderValue::from_static("GET, POST, PUT"),
        );
        headers.insert(
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            HeaderValue::from_static(
                "content-type, x-user-id, x-tenant, idempotency-key, x-lose-answer, x-kill-process",
            ),
        );
        headers.insert(
            header::ACCESS_CONTROL_MAX_AGE,
            HeaderValue::from_static("600"),
        );
    }
    response
}

/// Returns the request's origin if it is the page of the other process.
///
/// The page of the other process has the same host name and another port.
fn peer_origin(headers: &HeaderMap, peer: u16) -> Option<HeaderValue> {
    let origin = headers.get(header::ORIGIN)?;
    let host = headers.get(header::HOST)?.to_str().ok()?;
    let name = host.rsplit_once(':').map_or(host, |(name, _port)| name);
    (origin.to_str().ok()? == format!("http://{name}:{peer}")).then(|| origin.clone())
}

#[cfg(test)]
mod tests {
    use super::peer_origin;
    use axum::http::HeaderMap;

    #[test]
    fn only_the_page_of_the_other_process_is_let_in() {
        let allowed = |origin: &str, host: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("origin", origin.parse().expect("a value"));
            headers.insert("host", host.parse().expect("a value"));
            peer_origin(&headers, 3001).is_some()
        };
        assert!(allowed("http://127.0.0.1:3001", "127.0.0.1:3000"));
        assert!(allowed("http://localhost:3001", "localhost:3000"));
        assert!(!allowed("http://127.0.0.1:3002", "127.0.0.1:3000"));
        assert!(!allowed("http://evil.example:3001", "127.0.0.1:3000"));
        assert!(!allowed("null", "127.0.0.1:3000"));
    }
}
