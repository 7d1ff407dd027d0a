//! Tests wrong and missing passwords, and that none is ever shown.

use std::error::Error as _;

use lock_core::{Error, ErrorKind, LockManager};
use lock_tests::{Answer, FakeServer, RedisServer, needs, wait};
use tokio::time::timeout;

use super::long;

fn all_of(error: &Error) -> String {
    let mut shown = format!("{error} {error:?} {error:#?}");
    let mut source = error.source();
    while let Some(error) = source {
        shown += &format!(" {error} {error:?}");
        source = error.source();
    }
    shown
}

async fn errors(url: &str) -> Vec<Error> {
    let connecting = timeout(wait::PATIENCE, LockManager::connect(url)).await;
    let connecting = connecting.expect("at once").expect_err("refused");
    let lazy = LockManager::connect_lazy(url).expect("a URL");
    let shown = format!(
        "{lazy:?} {:?} {:?}",
        LockManager::builder(url),
        lazy.lock("k")
    );
    assert!(
        !shown.contains("sesame") && !shown.contains("alice"),
        "{shown}"
    );
    let locking = timeout(wait::PATIENCE, lazy.lock("k").wait(long()).acquire()).await;
    vec![connecting, locking.expect("at once").expect_err("refused")]
}

#[tokio::test]
async fn a_wrong_password_a_wrong_user_and_none_at_all_are_misconfigured() {
    needs!(redis);
    let server = RedisServer::options().password("right").start();
    let address = server.address();
    for url in [
        format!("redis://:sesame@{address}"),
        format!("redis://alice:sesame@{address}"),
        format!("redis://{address}"),
    ] {
        for error in errors(&url).await {
            assert_eq!(error.kind(), ErrorKind::Misconfigured, "{error:?}");
            assert!(error.to_string().contains("password"), "{error}");
            let shown = all_of(&error);
            assert!(
                !shown.contains("sesame") && !shown.contains("alice"),
                "{shown}"
            );
        }
    }
}

#[tokio::test]
async fn an_unneeded_password_is_not_shown_either() {
    needs!(redis);
    let server = RedisServer::start();
    let url = format!("redis://alice:sesame@{}", server.address());
    for error in errors(&url).await {
        assert_eq!(error.kind(), ErrorKind::Misconfigured, "{error:?}");
        assert!(!all_of(&error).contains("sesame"));
    }
}

#[tokio::test]
async fn a_manager_with_the_right_password_does_not_show_it() {
    needs!(redis);
    let server = RedisServer::options().password("sesame").start();
    let locks = LockManager::connect(&server.url())
        .await
        .expect("the right password");
    let guard = locks.lock("k").acquire().await.expect("free");
    let shown = format!("{locks:?} {locks:#?} {guard:?}");
    assert!(!shown.contains("sesame"), "{shown}");
    server.cli(&["CONFIG", "SET", "requirepass", "changed"]);
    guard
        .release()
        .await
        .expect("the connection stays authenticated");
}

#[tokio::test]
async fn a_user_that_newer_servers_name_in_their_refusals_is_not_shown() {
    let refusal = "NOPERM User alice has no permissions to run the 'set' command";
    let server = FakeServer::after_handshake(Answer::Error(refusal.to_owned()));
    let url = format!("redis://alice:sesame@{}", server.address());
    for error in errors(&url).await {
        assert_eq!(error.kind(), ErrorKind::Misconfigured, "{error:?}");
        let shown = all_of(&error);
        assert!(!shown.contains("alice"), "{shown}");
    }
}
