//! Decides which requests the page answers.
//!
//! The page has no login: it is for people on this machine, or behind a proxy that asks for one. So a page of another
//! site, open in the same browser, must not be able to read it or to free a lock.
//!
//! * A request must name a host of this console. Otherwise the name of another site could lead to this address (DNS
//!   rebinding), and that site's scripts could read the answers.
//! * A request that changes something must come from a page of this console, as the browser says in `Sec-Fetch-Site`,
//!   or, where it does not know that header, in `Origin`. A client that sends neither is no browser with a user, and is
//!   refused too: it has the commands for the terminal.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// The names under which this console is reached, each with its port.
#[derive(Clone)]
pub(crate) struct Hosts(Arc<[String]>);

impl Hosts {
    pub(crate) fn new(listen: SocketAddr, proxied: Option<&str>) -> Self {
        let port = listen.port();
        let mut names = vec![
            format!("127.0.0.1:{port}"),
            format!("localhost:{port}"),
            format!("[::1]:{port}"),
            listen.to_string(),
        ];
        names.extend(proxied.map(str::to_lowercase));
        Self(names.into())
    }

    fn has(&self, host: &str) -> bool {
        self.0.iter().any(|name| *name == host.to_lowercase())
    }
}

/// Refuses requests of other sites.
pub(crate) async fn check(State(hosts): State<Hosts>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    if !text(headers, header::HOST.as_str()).is_some_and(|host| hosts.has(host)) {
        let why = "This console is not served under that name. Set HOST if a proxy serves it.\n";
        return (StatusCode::MISDIRECTED_REQUEST, why).into_response();
    }
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    if !reads && !is_of_this_page(headers, &hosts) {
        let why = "Only a page of this console may do that.\n";
        return (StatusCode::FORBIDDEN, why).into_response();
    }
    next.run(request).await
}

fn is_of_this_page(headers: &HeaderMap, hosts: &Hosts) -> bool {
    if let Some(site) = text(headers, "sec-fetch-site") {
        return site == "same-origin";
    }
    let origin = text(headers, header::ORIGIN.as_str());
    let host = origin.and_then(|it| it.strip_prefix("http://").or(it.strip_prefix("https://")));
    host.is_some_and(|host| hosts.has(host) && text(headers, "host") == Some(host))
}

/// Returns the only value of a header.
fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}
