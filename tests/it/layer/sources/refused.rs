//! Tests requests without a usable key: their answers, and that they lock nothing.

use lock_core::LockManager;
use lock_tests::{RedisServer, needs};
use lock_tower::LockLayer;
use lock_tower::key::{self, KeyExtractor as _};

use super::click::{Click, click};
use super::rows::{Account, by};
use super::{Around, Gate, VERSIONS, code, service};

#[tokio::test]
async fn a_request_with_a_bad_key_is_refused_and_sends_redis_nothing() {
    needs!(redis);
    let redis = RedisServer::start();
    let locks = LockManager::connect(&redis.url()).await.expect("a manager");
    for (around, refused) in tables() {
        let server = service(&locks, &around, &Gate::open()).await;
        redis.reset_stats();
        for (click, status, expected) in refused {
            for version in VERSIONS {
                let answer = click.send(version, &server).await;
                let told = (answer.status, &*code(&answer));
                assert_eq!(told, (status, expected), "{click:?} over {version:?}");
                assert!(!answer.body.contains("nonsense"), "{answer:?}");
            }
        }
        assert_eq!(crate::redis::asked(&redis), crate::redis::counts(&[]));
    }
}

type Refused = Vec<(Click, u16, &'static str)>;

fn tables() -> Vec<(Around, Refused)> {
    let with = |name, value| click().with(name, value);
    let user = || with("x-user-id", "42");
    vec![
        (
            by((key::header("x-user-id"), key::idempotency_key())),
            vec![
                (user(), 400, "lock_key_missing"),
                (with("idempotency-key", "1"), 400, "lock_key_missing"),
                (
                    user().with("x-user-id", "43").with("idempotency-key", "1"),
                    400,
                    "lock_key_ambiguous",
                ),
                (
                    user().with("idempotency-key", "\"nonsense"),
                    400,
                    "lock_key_invalid",
                ),
            ],
        ),
        (
            by(key::x_forwarded_for(1)),
            vec![
                (click(), 400, "lock_key_missing"),
                (
                    with("x-forwarded-for", "nonsense !"),
                    400,
                    "lock_key_invalid",
                ),
            ],
        ),
        // No optional part is there. The request then has no key, because otherwise all such
        // requests would share one.
        (
            by((key::header("x-user-id").optional(), key::route())),
            vec![(click(), 400, "lock_key_missing")],
        ),
        (
            by(Account),
            vec![
                (click(), 400, "lock_key_missing"),
                (with("x-session", "of_two"), 400, "lock_key_ambiguous"),
                (with("x-session", "nonsense"), 400, "lock_key_invalid"),
                (with("x-session", "unheard of"), 503, "lock_key_unavailable"),
            ],
        ),
        (
            Box::new(|locks, app| {
                let layer = LockLayer::body_template(locks, "k:<json./sku>", 16);
                app.route_layer(layer.expect("a template"))
            }),
            vec![
                (click().body(r#"{"sku":""}"#), 400, "lock_key_missing"),
                (click().body(r#"{"n":1}"#), 400, "lock_key_missing"),
                (click().body("nonsense"), 400, "lock_body_invalid"),
                (
                    click().body(r#"{"sku":"longest"}"#),
                    413,
                    "lock_body_too_large",
                ),
            ],
        ),
        (
            Box::new(|locks, app| {
                let layer = LockLayer::body_extractor(locks, key::form("token"), 64);
                app.route_layer(layer)
            }),
            vec![
                (click().body("token=1&token=2"), 400, "lock_key_ambiguous"),
                (click().body("other=1"), 400, "lock_key_missing"),
            ],
        ),
    ]
}
