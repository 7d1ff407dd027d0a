//! Tests of the values that are read from the head and the body of a request.

use http::request::Builder;
use http::{HeaderValue, Request};

use super::{Extension, Source, parse};
use crate::key::KeyFailure;
use crate::key::part::KeyText;

/// Returns the part as the key contains it.
fn read(written: &str, request: Builder) -> Result<String, KeyFailure> {
    read_with(&[], written, request)
}

fn read_with(
    extensions: &[Extension],
    written: &str,
    request: Builder,
) -> Result<String, KeyFailure> {
    let (mut parts, ()) = request.body(()).unwrap().into_parts();
    let part = match parse(written, extensions).unwrap() {
        Source::Head(source) => source.read(&mut parts)?,
        Source::Body(source) => panic!("{source} is in the body"),
    };
    let mut key = KeyText::default();
    part.push_to(&mut key);
    Ok(key.finish()?.as_str().unwrap().to_owned())
}

fn read_body(written: &str, body: &[u8]) -> Result<String, KeyFailure> {
    let part = match parse(written, &[]).unwrap() {
        Source::Body(source) => source.read(body)?,
        Source::Head(source) => panic!("{source} is in the head"),
    };
    let mut key = KeyText::default();
    part.push_to(&mut key);
    Ok(key.finish()?.as_str().unwrap().to_owned())
}

const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

#[test]
fn a_header_is_read_whatever_its_case() {
    let request = Request::post("/").header("x-user-id", "42");
    assert_eq!(read("header.X-User-Id", request).unwrap(), "42");
}

#[test]
fn an_absent_or_empty_value_is_missing() {
    let missing = |name: &str| Err(KeyFailure::missing(Some(name)));
    let empty = |name: &str| Err(KeyFailure::empty(name));
    assert_eq!(read("header.a", Request::post("/")), missing("header.a"));
    assert_eq!(
        read("header.a", Request::post("/").header("a", "")),
        empty("header.a")
    );
    assert_eq!(
        read("cookie.a", Request::post("/").header("cookie", "b=1")),
        missing("cookie.a")
    );
    assert_eq!(read("query.a", Request::post("/?a=&b=1")), empty("query.a"));
}

#[test]
fn two_different_values_are_ambiguous_and_two_equal_ones_are_one() {
    let request = Request::post("/").header("a", "1").header("a", "2");
    assert_eq!(
        read("header.a", request),
        Err(KeyFailure::Ambiguous("header.a".into()))
    );
    let request = Request::post("/").header("a", "1").header("a", "1");
    assert_eq!(read("header.a", request).unwrap(), "1");
    let request = Request::post("/").header("cookie", "a=1; a=2");
    assert_eq!(
        read("cookie.a", request),
        Err(KeyFailure::Ambiguous("cookie.a".into()))
    );
    let request = Request::post("/?a=1&a=2");
    assert_eq!(
        read("query.a", request),
        Err(KeyFailure::Ambiguous("query.a".into()))
    );
}

#[test]
fn a_cookie_is_found_among_others_and_in_several_headers() {
    let request = Request::post("/")
        .header("cookie", "aa=0;x=a=1")
        .header("cookie", " a = b=c ;d=1");
    assert_eq!(read("cookie.a", request).unwrap(), "b=c");
}

#[test]
fn header_values_that_are_no_utf8_stay_different() {
    let raw = |bytes: &[u8]| {
        let value = HeaderValue::from_bytes(bytes).unwrap();
        read("header.a", Request::post("/").header("a", value)).unwrap()
    };
    let values = [
        raw(b"j\xF6rg"),
        raw(b"j\xFCrg"),
        raw("jörg".as_bytes()),
        raw(b"j%F6rg"),
    ];
    let different: std::collections::HashSet<_> = values.iter().collect();
    assert_eq!(different.len(), values.len());
}

#[test]
fn two_spellings_of_a_path_are_one() {
    let spelled = |uri: &str| read("path", Request::post(uri)).unwrap();
    assert_eq!(spelled("/users/%31"), spelled("/users/1"));
    assert_eq!(spelled("/a%2fb"), spelled("/a%2Fb"));
    assert_ne!(spelled("/a%2Fb"), spelled("/a/b"));
    assert_ne!(spelled("/a%252Fb"), spelled("/a%2Fb"));
}

#[test]
fn without_a_router_the_route_is_the_path() {
    assert_eq!(
        read("route", Request::post("/users/%31")).unwrap(),
        "/users/1"
    );
}

#[cfg(feature = "axum")]
#[test]
fn in_a_nested_router_the_path_is_the_whole_one() {
    let original = axum::extract::OriginalUri("/api/users/1?a=b".parse().unwrap());
    let request = || Request::post("/users/1").extension(original.clone());
    assert_eq!(read("path", request()).unwrap(), "/api/users/1");
    assert_eq!(read("query.a", request()).unwrap(), "b");
}

#[test]
fn secrets_are_digested() {
    let request = || Request::post("/").header("cookie", "sid=abc");
    assert_eq!(read("session.sid", request()).unwrap(), ABC);
    assert_eq!(read("cookie.sid", request()).unwrap(), "abc");
    for spelling in ["Bearer abc", "bearer  abc", "BEARER abc "] {
        let request = Request::post("/").header("authorization", spelling);
        assert_eq!(read("bearer", request).unwrap(), ABC, "{spelling}");
    }
}

#[test]
fn another_scheme_or_no_token_is_no_bearer_token() {
    for other in ["Basic abc", "Bearerabc", "abc", "\u{e9}\u{e9}\u{e9}\u{e9}"] {
        let request = Request::post("/").header("authorization", other);
        assert_eq!(
            read("bearer", request),
            Err(KeyFailure::missing(Some("bearer"))),
            "{other}"
        );
    }
    for empty in ["Bearer", "Bearer "] {
        let request = Request::post("/").header("authorization", empty);
        assert_eq!(
            read("bearer", request),
            Err(KeyFailure::empty("bearer")),
            "{empty}"
        );
    }
    let two = Request::post("/")
        .header("authorization", "Bearer a")
        .header("authorization", "Bearer b");
    assert_eq!(
        read("bearer", two),
        Err(KeyFailure::Ambiguous("bearer".into()))
    );
}

#[test]
fn an_idempotency_key_is_the_same_quoted_and_bare() {
    let request = |value: &str| Request::post("/").header("Idempotency-Key", value);
    assert_eq!(read("idempotency-key", request("abc")).unwrap(), "abc");
    let both = request("abc").header("idempotency-key", "\"abc\"");
    assert_eq!(read("idempotency-key", both).unwrap(), "abc");
    let different = request("abc").header("idempotency-key", "abd");
    assert_eq!(
        read("idempotency-key", different),
        Err(KeyFailure::Ambiguous("idempotency-key".into()))
    );
    assert_eq!(
        read("idempotency-key", request("\"abc")),
        Err(KeyFailure::Invalid(Some("idempotency-key".into())))
    );
    assert_eq!(
        read("idempotency-key", request("\"\"")),
        Err(KeyFailure::empty("idempotency-key"))
    );
}

#[test]
fn an_extension_is_read_by_its_type() {
    #[derive(Clone)]
    struct User(&'static str);
    let user = [Extension::new("user", |user: &User| user.0)];
    let request = |name| Request::post("/").extension(User(name));
    assert_eq!(
        read_with(&user, "ext.user", request("a:b")).unwrap(),
        "a%3Ab"
    );
    assert_eq!(
        read_with(&user, "ext.user", request("")),
        Err(KeyFailure::empty("ext.user"))
    );
    assert_eq!(
        read_with(&user, "ext.user", Request::post("/")),
        Err(KeyFailure::missing(Some("ext.user")))
    );
}

#[test]
fn the_peer_is_an_address_without_its_port() {
    let address = |text: &str| text.parse::<std::net::SocketAddr>().unwrap();
    for (socket, peer) in [
        ("192.0.2.1:4711", "192.0.2.1"),
        ("[::ffff:192.0.2.1]:1", "192.0.2.1"),
    ] {
        let request = Request::post("/").extension(address(socket));
        assert_eq!(read("peer", request).unwrap(), peer);
        #[cfg(feature = "axum")]
        {
            let info = axum::extract::ConnectInfo(address(socket));
            let request = Request::post("/")
                .extension(info)
                .extension(address("203.0.113.9:1"));
            assert_eq!(read("peer", request).unwrap(), peer);
        }
    }
    assert_eq!(
        read("peer", Request::post("/")),
        Err(KeyFailure::missing(Some("peer")))
    );
}

#[test]
fn a_forwarded_address_is_read_of_the_header_that_the_template_names() {
    let request = || {
        Request::post("/")
            .header("forwarded", "for=\"[2001:db8::1]:1\"")
            .header("x-forwarded-for", "192.0.2.1")
    };
    assert_eq!(read("forwarded.1", request()).unwrap(), "2001%3Adb8%3A%3A1");
    assert_eq!(read("x-forwarded-for.1", request()).unwrap(), "192.0.2.1");
    assert_eq!(
        read("x-forwarded-for.2", request()),
        Err(KeyFailure::missing(Some("x-forwarded-for.2")))
    );
    let strange = Request::post("/").header("forwarded", "for=\"");
    assert_eq!(
        read("forwarded.1", strange),
        Err(KeyFailure::Invalid(Some("forwarded.1".into())))
    );
}

#[test]
fn a_field_of_a_form_is_decoded() {
    let form = b"a=1&to+ken=%C3%A9%3A+x&b=&c=1&c=2&d=1&d=1&&e=%FF";
    assert_eq!(read_body("form.a", form).unwrap(), "1");
    assert_eq!(read_body("form.d", form).unwrap(), "1");
    assert_eq!(read_body("form.b", form), Err(KeyFailure::empty("form.b")));
    assert_eq!(
        read_body("form.x", form),
        Err(KeyFailure::missing(Some("form.x")))
    );
    assert_eq!(
        read_body("form.x", b""),
        Err(KeyFailure::missing(Some("form.x")))
    );
    assert_eq!(
        read_body("form.c", form),
        Err(KeyFailure::Ambiguous("form.c".into()))
    );
    assert_ne!(read_body("form.e", form), read_body("form.e", b"e=%FE"));
}

#[test]
fn a_body_is_its_digest_and_an_empty_one_is_missing() {
    assert_eq!(read_body("body", b"abc").unwrap(), ABC);
    assert_eq!(read_body("body", b""), Err(KeyFailure::empty("body")));
}
