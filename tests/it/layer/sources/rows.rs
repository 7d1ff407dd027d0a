//! Lists the rows of the table.
//!
//! A row has a source, two clicks that are equal by it, and the key in Redis.

use lock_core::lock_key;
use lock_tests::wait;
use lock_tower::key::{self, HeadOnly, KeyError, KeyExtractor, KeyPart, KeyRequest, ReadsNoBody};
use lock_tower::{KeyTemplate, LockLayer};

use super::click::{Click, click};
use super::{Around, User};

pub(super) struct Row {
    pub(super) what: &'static str,
    /// A template, and extractors with the same meaning.
    pub(super) here: Around,
    pub(super) there: Around,
    pub(super) first: Click,
    pub(super) same: Click,
    pub(super) other: Click,
    /// The key. Digests stand here in full, because a process of the next version must compute the
    /// same.
    pub(super) key: &'static str,
}

pub(super) fn rows() -> Vec<Row> {
    [
        in_headers(),
        in_the_address(),
        in_the_body(),
        made_of_parts(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn in_headers() -> Vec<Row> {
    let with = |name, value| click().with(name, value);
    vec![
        head(
            "k:<header.x-user-id>",
            (k(), key::header("x-user-id")),
            ["42", "42", "43"].map(|v| with("x-user-id", v)),
            "k:42",
        ),
        head(
            "k:<cookie.cart>",
            (k(), key::cookie("cart")),
            ["cart=7; theme=dark", "theme=light;cart=7", "cart=8"].map(|v| with("cookie", v)),
            "k:7",
        ),
        head(
            "k:<session.sid>",
            (k(), key::session("sid")),
            ["sid=abc", "theme=dark; sid=abc", "sid=ABC"].map(|v| with("cookie", v)),
            "k:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        ),
        head(
            "k:<bearer>",
            (k(), key::bearer()),
            ["Bearer abc", "bearer abc", "Bearer ABC"].map(|v| with("authorization", v)),
            "k:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        ),
        head(
            KeyTemplate::new("k:<ext.user>").extension("user", |user: &User| user.0.clone()),
            (k(), key::extension("user", |user: &User| user.0.clone())),
            ["Basic alice", "Basic alice", "Basic bob"].map(|v| with("authorization", v)),
            "k:alice",
        ),
        head(
            "k:<idempotency-key>",
            (k(), key::idempotency_key()),
            ["\"a b\"", "a b", "\"a  b\""].map(|v| with("idempotency-key", v)),
            "k:a%20b",
        ),
        // The count is from the right, because the client has written the entries before those of the
        // proxies.
        head(
            "k:<forwarded.2>",
            (k(), key::forwarded(2)),
            [
                "for=192.0.2.1, for=192.0.2.2",
                "for=10.9.9.9, for=192.0.2.1;proto=https, for=192.0.2.2",
                "for=192.0.2.1, for=192.0.2.3, for=192.0.2.2",
            ]
            .map(|v| with("forwarded", v)),
            "k:192.0.2.1",
        ),
        head(
            "k:<x-forwarded-for.2>",
            (k(), key::x_forwarded_for(2)),
            [
                "192.0.2.1, 192.0.2.2",
                "10.9.9.9, 192.0.2.1, 192.0.2.2",
                "192.0.2.1, 192.0.2.3, 192.0.2.2",
            ]
            .map(|v| with("x-forwarded-for", v)),
            "k:192.0.2.1",
        ),
    ]
}

fn in_the_address() -> Vec<Row> {
    let user = || click().with("x-user-id", "42");
    vec![
        head(
            "k:<header.x-user-id>:<method>",
            (k(), key::header("x-user-id"), key::method()),
            [user(), user(), user().put()],
            "k:42:POST",
        ),
        head(
            "k:<header.x-user-id>:<route>",
            (k(), key::header("x-user-id"), key::route()),
            ["/shop/orders/1", "/shop/orders/2", "/outlet/orders/1"].map(|path| user().to(path)),
            "k:42:/shop/orders/%7Bid%7D",
        ),
        head(
            "k:<header.x-user-id>:<path>",
            (k(), key::header("x-user-id"), key::path()),
            ["/shop/orders/%31", "/shop/orders/1", "/outlet/orders/1"].map(|path| user().to(path)),
            "k:42:/shop/orders/1",
        ),
        head(
            "k:<param.id>",
            (k(), key::param("id")),
            ["/shop/orders/%31", "/outlet/orders/1", "/shop/orders/2"].map(|path| click().to(path)),
            "k:1",
        ),
        head(
            "k:<query.token>",
            (k(), key::query("token")),
            [
                "/shop/orders/1?token=a%20b",
                "/shop/orders/1?n=1&token=a+b",
                "/shop/orders/1?token=a",
            ]
            .map(|path| click().to(path)),
            "k:a%20b",
        ),
        head(
            "k:<peer>",
            (k(), key::peer()),
            [[127, 0, 0, 1], [127, 0, 0, 1], [127, 0, 0, 2]].map(|from| click().from(from)),
            "k:127.0.0.1",
        ),
    ]
}

fn in_the_body() -> Vec<Row> {
    let body = |body| click().body(body);
    vec![
        whole(
            "k:<json./order/sku>",
            (k(), key::json("/order/sku")),
            [
                r#"{"order":{"sku":42}}"#,
                r#"{"at": 1, "order": {"sku": 4.2e1, "n": 2}}"#,
                r#"{"order":{"sku":"42"}}"#,
            ]
            .map(body),
            "k:%=42",
        ),
        whole(
            "k:<json>",
            (k(), key::json_digest()),
            [
                "{\"sku\":\"mug\",\"n\":1}",
                "{ \"n\": 1.0,\r\n \"sku\": \"mug\" }",
                "{\"sku\":\"mug\",\"n\":\"1\"}",
            ]
            .map(body),
            "k:443877829f6b87b554f4a5047dce52f4f2741874265352526742bf5634e44bce",
        ),
        whole(
            "k:<body>",
            (k(), key::body()),
            ["abc", "abc", "abc "].map(body),
            "k:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        ),
        whole(
            "k:<form.token>",
            (k(), key::form("token")),
            ["token=a%20b&n=1", "n=2&token=a+b", "token=a"].map(body),
            "k:a%20b",
        ),
    ]
}

fn made_of_parts() -> Vec<Row> {
    let user = || click().with("x-user-id", "42");
    vec![
        // A request without a tenant differs from the tenant whose name looks like a missing one.
        head(
            "k:<header.x-tenant?>:<header.x-user-id>",
            (
                k(),
                key::header("x-tenant")
                    .optional()
                    .and(key::header("x-user-id")),
            ),
            [user(), user(), user().with("x-tenant", "%-")],
            "k:%-:42",
        ),
        head(
            "k:<header.x-mail|lower>",
            (k(), key::header("x-mail").lowercase()),
            ["Ann@example.com", "ann@EXAMPLE.com", "anne@example.com"]
                .map(|mail| click().with("x-mail", mail)),
            "k:ann@example.com",
        ),
        head(
            "k:<header.x-secret|sha256>",
            (k(), key::header("x-secret").digested()),
            ["abc", "abc", "ABC"].map(|secret| click().with("x-secret", secret)),
            "k:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        ),
        Row {
            there: templated("k:<header.x-long>".into()),
            ..head(
                "k:<header.x-long>",
                key::header("x-long"),
                [LONG, LONG, LONGER].map(|long| click().with("x-long", long)),
                "k:%#23cafd52ddfc8ff264e0def581c671cff7f41e3f0a61a7e3dc37019d66f3cce6",
            )
        },
        whole(
            KeyTemplate::new(
                "pay:<ext.tenant>:<header.x-user-id>:<method>:<route>:<param.id>:<json./order/sku>",
            )
            .extension("tenant", |user: &User| user.0.clone()),
            (
                key::constant("pay"),
                key::extension("tenant", |user: &User| user.0.clone()),
                key::header("x-user-id").and(key::method()),
                key::route(),
                key::param("id"),
                key::json("/order/sku"),
            ),
            ["Basic a", "Basic a", "Basic b"].map(|tenant| {
                let order = user().body(r#"{"order":{"sku":"a mug: red"}}"#);
                order.with("authorization", tenant)
            }),
            "pay:a:42:POST:/shop/orders/%7Bid%7D:1:a%20mug%3A%20red",
        ),
        // A closure, and an extractor that asks a service.
        Row {
            what: "a closure",
            here: Box::new(|locks, app| {
                app.route_layer(LockLayer::from_fn(locks, |request| {
                    let id = request.headers.get("x-session")?.to_str().ok()?;
                    Some(lock_key!("k:<id>"))
                }))
            }),
            there: by((k(), Account)),
            first: click().with("x-session", "of alice"),
            same: click().with("x-session", "of alice"),
            other: click().with("x-session", "of bob"),
            key: "k:of%20alice",
        },
    ]
}

fn k() -> key::Constant {
    key::constant("k")
}

/// Makes a row for a source in the head of a request.
fn head<E>(
    template: impl Into<KeyTemplate>,
    extractor: E,
    [first, same, other]: [Click; 3],
    key: &'static str,
) -> Row
where
    E: KeyExtractor<Reads: ReadsNoBody> + Clone,
{
    Row {
        what: key,
        here: templated(template.into()),
        there: by(extractor),
        first,
        same,
        other,
        key,
    }
}

fn templated(template: KeyTemplate) -> Around {
    Box::new(move |locks, app| {
        let layer = LockLayer::template(locks, template.clone()).expect("a template");
        app.route_layer(layer.acquire_timeout(wait::PATIENCE))
    })
}

pub(super) fn by<E: KeyExtractor<Reads: ReadsNoBody> + Clone>(extractor: E) -> Around {
    Box::new(move |locks, app| app.route_layer(LockLayer::extractor(locks, extractor.clone())))
}

/// Makes a row for a source in the body of a request.
fn whole(
    template: impl Into<KeyTemplate>,
    extractor: impl KeyExtractor + Clone,
    [first, same, other]: [Click; 3],
    key: &'static str,
) -> Row {
    let template = template.into();
    Row {
        what: key,
        here: Box::new(move |locks, app| {
            let layer =
                LockLayer::body_template(locks, template.clone(), LIMIT).expect("a template");
            app.route_layer(layer.acquire_timeout(wait::PATIENCE))
        }),
        there: Box::new(move |locks, app| {
            let layer = LockLayer::body_extractor(locks, extractor.clone(), LIMIT);
            app.route_layer(layer.acquire_timeout(wait::PATIENCE))
        }),
        first,
        same,
        other,
        key,
    }
}

const LIMIT: usize = 1024;

/// A value longer than a key may be, so that its digest replaces it.
const LONG: &str = match str::from_utf8(&[b'x'; 2000]) {
    Ok(text) => text,
    Err(_) => "",
};

const LONGER: &str = match str::from_utf8(&[b'x'; 2001]) {
    Ok(text) => text,
    Err(_) => "",
};

/// An extractor that asks a slow service for the user of a session.
#[derive(Clone)]
pub(super) struct Account;

impl KeyExtractor for Account {
    type Reads = HeadOnly;

    async fn extract(&self, request: &mut KeyRequest<'_>) -> Result<KeyPart, KeyError> {
        let session = request.headers().get("x-session");
        let session = session.ok_or(KeyError::missing("session"))?.as_bytes();
        tokio::task::yield_now().await;
        match session.strip_prefix(b"of ") {
            Some(_) => KeyPart::new("account", String::from_utf8_lossy(session)),
            None if session == b"of_two" => Err(KeyError::ambiguous("session")),
            None if session == b"nonsense" => Err(KeyError::invalid("session")),
            None => Err(KeyError::unavailable()),
        }
    }
}
