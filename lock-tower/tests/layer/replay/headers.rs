//! The headers that a duplicate gets, and those that are never kept.

use crate::common::embedded;
use crate::replay::steps::*;
use http::header::{CONTENT_RANGE, RANGE};
use http::{HeaderName, HeaderValue, Method, StatusCode, header};
use lock_core::ErrorKind;
use lock_tower::{LockLayer, RejectionKind, Replay};

#[tokio::test]
async fn the_headers_of_the_answer_come_back_and_no_secret_or_header_of_one_connection() {
    let (locks, _) = embedded();
    let named = Replay::default().headers([HeaderName::from_static("x-order")]);
    let service = answering(&paying(&locks, named), |_| {
        let mut response = created("paid");
        for (name, value) in [
            ("content-type", "text/plain"),
            ("content-encoding", "identity"),
            ("location", "/payments/7"),
            ("link", "</a>; rel=next"),
            ("link", "</b>; rel=prev"),
            ("x-order", "7"),
            ("content-security-policy", "default-src 'none'"),
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("referrer-policy", "no-referrer"),
            ("x-access-token", "secret"),
            ("set-cookie", "sid=secret"),
            ("www-authenticate", "Negotiate secret"),
            ("authentication-info", "secret"),
            ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ("content-length", "4"),
        ] {
            let name = HeaderName::from_static(name);
            response.headers_mut().append(name, value.parse().unwrap());
        }
        response
    });
    let first = send(&service, pay("")).await;
    assert_eq!(first.headers.len(), 16, "the first answer is unchanged");
    let second = send(&service, pay("")).await;
    second.is_replay("paid");
    let mut names: Vec<_> = second.headers.keys().map(HeaderName::as_str).collect();
    names.sort_unstable();
    let kept = [
        "content-encoding",
        "content-security-policy",
        "content-type",
        "idempotency-replayed",
        "link",
        "location",
        "referrer-policy",
        "x-content-type-options",
        "x-frame-options",
        "x-order",
    ];
    assert_eq!(names, kept);
    let links: Vec<_> = second.headers.get_all("link").iter().collect();
    assert_eq!(links, ["</a>; rel=next", "</b>; rel=prev"]);
}

#[tokio::test]
async fn a_layer_that_names_a_secret_header_is_not_made() {
    let (locks, _) = embedded();
    for name in [
        header::SET_COOKIE,
        header::WWW_AUTHENTICATE,
        header::AUTHORIZATION,
        header::PROXY_AUTHORIZATION,
        header::COOKIE,
        HeaderName::from_static("x-vendor-authorization"),
        header::CONNECTION,
        header::DATE,
    ] {
        let layer = LockLayer::template(locks.clone(), per_user()).unwrap();
        let error = layer
            .replay(Replay::default().headers([name.clone()]))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(name.as_str()), "{error}");
    }
}

#[tokio::test]
async fn an_answer_with_more_than_8_kib_of_headers_is_done_and_not_kept() {
    let (locks, _) = embedded();
    let service = answering(&paying(&locks, Replay::default()), |_| {
        let mut response = created("paid");
        let long = "x".repeat(9 * 1024).parse().unwrap();
        response.headers_mut().insert(header::ETAG, long);
        response
    });
    assert_eq!(send(&service, pay("")).await.status, StatusCode::CREATED);
    let second = send(&service, pay("")).await;
    second.is_refused(RejectionKind::Done);
    assert_eq!(second.header("retry-after"), None);
}

#[tokio::test]
async fn a_part_of_a_file_is_repeated_with_its_range_and_only_to_requests_for_that_part() {
    let (locks, _) = embedded();
    let layer = paying(&locks, Replay::default()).methods([Method::GET]);
    let service = answering(&layer, |request| {
        assert_eq!(request.headers()[RANGE], "bytes=0-3");
        let mut answer = created("data");
        *answer.status_mut() = StatusCode::PARTIAL_CONTENT;
        let range = HeaderValue::from_static("bytes 0-3/9");
        answer.headers_mut().insert(CONTENT_RANGE, range);
        answer
    });
    let part = |range: Option<&str>| {
        let mut request = pay("");
        *request.method_mut() = Method::GET;
        let range = range.map(|range| HeaderValue::from_str(range).unwrap());
        request
            .headers_mut()
            .extend(range.map(|range| (RANGE, range)));
        request
    };
    send(&service, part(Some("bytes=0-3")))
        .await
        .is_first("data");
    let second = send(&service, part(Some("bytes=0-3"))).await;
    second.is_replay("data");
    assert_eq!(second.header("content-range"), Some("bytes 0-3/9"));
    for other in [Some("bytes=4-7"), None] {
        let refused = send(&service, part(other)).await;
        refused.is_refused(RejectionKind::KeyReused);
    }
}
