//! The host of a request, in one spelling for all versions of HTTP.
//!
//! HTTP/2 sends it in `:authority`, which the `http` crate puts into the URI, and usually sends no
//! `Host`. HTTP/1 sends a `Host`, an absolute URI, or both.

use std::net::Ipv6Addr;

use http::Uri;
use http::header::HOST;
use http::uri::Authority;
use http::{HeaderMap, HeaderValue};

/// Returns all hosts of the request, with `None` for each that is malformed.
pub(super) fn values(uri: &Uri, headers: &HeaderMap) -> impl Iterator<Item = Option<String>> {
    let of_uri = uri.authority().map(Authority::as_str).map(host);
    of_uri.into_iter().chain(
        headers
            .get_all(HOST)
            .iter()
            .map(HeaderValue::to_str)
            .map(|written| host(written.ok()?)),
    )
}

/// Returns the host in lower case, without its port and without the trailing dot.
///
/// It refuses user info and percent-encoding. A client would use them only to get another key for the
/// same host.
fn host(written: &str) -> Option<String> {
    let written = written.trim_matches([' ', '\t']);
    if written.is_empty() {
        return Some(String::new());
    }
    if written.contains(['@', '%']) {
        return None;
    }
    let authority = Authority::try_from(written).ok()?;
    let after = &written[authority.host().len()..];
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    if !after.is_empty() && !after.strip_prefix(':').is_some_and(is_port) {
        return None;
    }
    let host = authority.host();
    if let Some(bracketed) = host.strip_prefix('[') {
        let address: Ipv6Addr = bracketed.strip_suffix(']')?.parse().ok()?;
        return Some(address.to_string());
    }
    Some(host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_one_spelling_and_no_port() {
        for (written, name) in [
            ("shop.example", "shop.example"),
            ("Shop.EXAMPLE:8080", "shop.example"),
            ("shop.example.", "shop.example"),
            ("shop.example.:443", "shop.example"),
            ("shop.example:", "shop.example"),
            (" shop.example\t", "shop.example"),
            ("127.0.0.1:3000", "127.0.0.1"),
            ("[2001:DB8:0::1]:443", "2001:db8::1"),
            ("[::1]", "::1"),
            ("", ""),
        ] {
            assert_eq!(host(written).as_deref(), Some(name), "{written}");
        }
    }

    #[test]
    fn malformed_hosts_are_refused() {
        for strange in [
            "a@shop.example",
            "sh%6Fp.example",
            "[::1",
            "[::1]x",
            "[fe80::1%25eth0]",
            "[shop]",
            "shop.example:x",
            "shop.example:80:80",
            "shop.example/x",
            "shop example",
            "::1",
        ] {
            assert_eq!(host(strange), None, "{strange}");
        }
    }
}
