//! Tests keys that another client has set, for example a tool or an older service.

use lock_tests::{RedisServer, needs};

use super::client::VERSIONS;
use super::{Gate, key, nothing_is_left, server_on};
use crate::shop::{code, retry_after};

#[tokio::test]
async fn a_foreign_key_without_expiry_is_a_409_that_says_when_to_ask_again() {
    needs!(redis);
    let redis = RedisServer::start();
    let server = server_on(&redis, &Gate::open()).await;
    redis.cli(&["SET", &key("42"), "stranger"]);
    for version in VERSIONS {
        let refused = version.post(&server, &[("x-user-id", "42")]).await;
        assert_eq!((refused.status, &*code(&refused)), (409, "lock_busy"));
        assert_eq!(retry_after(&refused), 1, "{version:?}");
    }
    assert_eq!(redis.cli(&["GET", &key("42")]), "stranger");
    redis.cli(&["DEL", &key("42")]);
    for version in VERSIONS {
        let made = version.post(&server, &[("x-user-id", "42")]).await;
        assert_eq!(made.status, 201, "{version:?}");
    }
    nothing_is_left(&redis, &[&server]).await;
}

#[tokio::test]
async fn a_foreign_key_with_expiry_is_a_409_for_at_most_that_time() {
    needs!(redis);
    let redis = RedisServer::start();
    let server = server_on(&redis, &Gate::open()).await;
    redis.cli(&["SET", &key("42"), "stranger", "PX", "60000"]);
    for version in VERSIONS {
        let refused = version.post(&server, &[("x-user-id", "42")]).await;
        assert_eq!((refused.status, &*code(&refused)), (409, "lock_busy"));
        let seconds = retry_after(&refused);
        assert!((1..=60).contains(&seconds), "{version:?}: {seconds}");
    }
}
