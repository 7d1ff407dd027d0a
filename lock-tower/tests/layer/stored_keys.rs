//! Keys in the store for all kinds of values that a client may send.

use crate::common::*;
use http::{Request, StatusCode};
use lock_tower::{LockLayer, RejectionKind};
use tower::{Layer, service_fn};

/// Returns the key that is held while a request with these headers runs, or the code of its refusal.
async fn key(template: &str, headers: &[(&str, &str)]) -> Result<String, RejectionKind> {
    let (locks, _) = embedded();
    let layer = LockLayer::template(locks.clone(), template).unwrap();
    let service = layer.layer(service_fn(move |_: Request<Body>| {
        let held = locks.held()[0].key().to_owned();
        async move {
            let mut response = answer(StatusCode::OK);
            *response.body_mut() = Body::from(held);
            Ok(response)
        }
    }));
    let request = headers
        .iter()
        .fold(Request::post("/orders"), |request, (name, value)| {
            request.header(*name, *value)
        });
    let answer = send(&service, request.body(Body::default()).unwrap()).await;
    answer.kind().map_or(Ok(answer.text), Err)
}

#[tokio::test]
async fn a_value_with_a_separator_is_not_two_values() {
    let two = |a, b| key_of_two(a, b);
    assert_eq!(two("a:b", "c").await, "k:a%3Ab:c");
    assert_eq!(two("a", "b:c").await, "k:a:b%3Ac");
    assert_eq!(two("{a}", "<b>").await, "k:%7Ba%7D:%3Cb%3E");
}

#[tokio::test]
async fn a_value_that_looks_encoded_is_not_what_it_looks_like() {
    assert_eq!(key_of_two("a%3Ab", "c").await, "k:a%253Ab:c");
    assert_ne!(key_of_two("a%3Ab", "c").await, key_of_two("a:b", "c").await);
}

async fn key_of_two(a: &str, b: &str) -> String {
    let made = key("k:<header.a>:<header.b>", &[("a", a), ("b", b)]).await;
    made.expect("a key")
}

#[tokio::test]
async fn an_absent_value_differs_from_the_empty_one_and_from_its_mark() {
    let template = "k:<header.tenant?>:<header.user>";
    let user = ("user", "42");
    let absent = key(template, &[user]).await.unwrap();
    assert_eq!(absent, "k:%-:42");
    for tenant in ["", "%-", "-", "absent"] {
        let there = key(template, &[("tenant", tenant), user]).await.unwrap();
        assert_ne!(there, absent, "{tenant:?}");
    }
}

#[tokio::test]
async fn clients_that_omit_all_optional_parts_share_no_lock() {
    let template = "k:<header.tenant?>:<header.user?>:<method>:<path>";
    for headers in [&[][..], &[("user", "")], &[("tenant", ""), ("user", "")]] {
        let refused = key(template, headers).await;
        assert_eq!(refused, Err(RejectionKind::KeyMissing), "{headers:?}");
    }
    assert!(key(template, &[("user", "42")]).await.is_ok());
}

#[tokio::test]
async fn text_that_a_client_writes_before_its_proxies_is_not_its_address() {
    let lists = [
        ("x-forwarded-for", "10.9.9.9, 192.0.2.1, 192.0.2.2"),
        ("forwarded", "for=10.9.9.9, for=192.0.2.1, for=192.0.2.2"),
    ];
    for (name, list) in lists {
        for (proxies, client) in [(1, "192.0.2.2"), (2, "192.0.2.1")] {
            let made = key(&format!("k:<{name}.{proxies}>"), &[(name, list)]).await;
            assert_eq!(made.unwrap(), format!("k:{client}"), "{name}");
        }
        let fewer = key(&format!("k:<{name}.4>"), &[(name, list)]).await;
        assert_eq!(fewer, Err(RejectionKind::KeyMissing));
    }
}

#[tokio::test]
async fn a_bearer_token_is_in_no_key() {
    let made = key("k:<bearer>", &[("authorization", "Bearer abc")]).await;
    let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(made.unwrap(), format!("k:{digest}"));
}

#[tokio::test]
async fn two_long_values_that_begin_alike_are_two_keys() {
    let long = "x".repeat(5000);
    let [one, other] = ["1", "2"].map(|end| format!("{long}{end}"));
    let one = key("k:<header.user>", &[("user", &one)]).await.unwrap();
    let other = key("k:<header.user>", &[("user", &other)]).await.unwrap();
    assert_ne!(one, other);
    assert!(one.starts_with("k:%#") && one.len() == 68, "{one}");
}

/// HTTP/1 trims a header's value. HTTP/2 and callers in the process do not.
#[tokio::test]
async fn blanks_around_a_headers_value_change_no_key() {
    for same in ["42", " 42", "42 ", "\t42 \t"] {
        for template in ["k:<header.user>", "k:<header.user?>"] {
            let made = key(template, &[("user", same)]).await;
            assert_eq!(made.as_deref(), Ok("k:42"), "{same:?}");
        }
    }
    let inside = key("k:<header.user>", &[("user", " 4 2 ")]).await;
    assert_eq!(inside.as_deref(), Ok("k:4%202"));
}
