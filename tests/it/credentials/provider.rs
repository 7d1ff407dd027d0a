//! Tests providers that fail, hang, or give a wrong password.

use std::error::Error as _;
use std::future::pending;
use std::time::Duration;

use lock_core::{Credentials, ErrorKind, LockManager};
use lock_tests::{needs, wait};

use super::{Office, Site};
use crate::steps::{kind, once};

#[tokio::test]
async fn a_provider_that_fails_is_unavailable_and_its_error_is_the_source() {
    needs!(redis);
    let site = Site::one();
    site.accepts("sesame");
    let office = Office::new("sesame");
    office.gives(None);
    let error = office
        .builder(&site.url)
        .connect()
        .await
        .expect_err("no credentials");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    assert!(
        error.to_string().contains("credentials provider"),
        "{error}"
    );
    assert_eq!(
        error.source().expect("the provider's").to_string(),
        "the office is closed"
    );

    let locks = office.builder(&site.url).connect_lazy().expect("a manager");
    assert_eq!(
        kind(locks.lock("k").acquire().await),
        ErrorKind::Unavailable
    );
    office.gives(Some("sesame"));
    wait::eventually("the manager asks again", async || {
        locks.lock("k").try_acquire().await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn a_provider_that_fails_later_disturbs_no_open_connection() {
    needs!(redis);
    let site = Site::one();
    site.accepts("one");
    let mut office = Office::new("one");
    office.valid_for = Some(Duration::from_secs(1));
    let locks = office.manager(&site.url).await;
    office.gives(None);
    let asked = office.asked();
    wait::eventually("the provider has failed twice", async || {
        office.asked() >= asked + 2
    })
    .await;
    // New connections use the credentials that are known.
    site.disconnects();
    wait::eventually("the manager connects again", async || {
        locks.lock("k").try_acquire().await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn a_provider_that_hangs_is_named_by_the_error() {
    needs!(redis);
    let site = Site::one();
    let builder = LockManager::builder(&site.url)
        .connect_timeout(Duration::from_millis(500))
        .credentials(pending::<Result<Credentials, std::io::Error>>);
    let error = builder.connect().await.expect_err("no credentials");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(
        error.to_string().contains("credentials provider"),
        "{error}"
    );
}

#[tokio::test]
async fn a_password_that_the_server_refuses_is_misconfigured_and_is_not_shown() {
    needs!(redis);
    let site = Site::one();
    site.accepts("right");
    let office = Office::new("sesame");
    let error = office
        .builder(&site.url)
        .connect()
        .await
        .expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Misconfigured, "{error:?}");
    let shown = format!("{error} {error:?}");
    assert!(
        shown.contains("credentials provider") && !shown.contains("sesame"),
        "{shown}"
    );

    let locks = office.builder(&site.url).connect_lazy().expect("a manager");
    assert_eq!(
        kind(locks.lock("k").acquire().await),
        ErrorKind::Misconfigured
    );
    office.gives(Some("right"));
    wait::eventually("the manager asks again", async || {
        locks.lock("k").try_acquire().await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn a_provider_for_an_embedded_store_is_invalid() {
    for url in ["memory:", "memory:shop"] {
        let error = Office::new("one")
            .builder(url)
            .connect_lazy()
            .expect_err("no server");
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("credentials"), "{error}");
    }
}

#[tokio::test]
async fn a_password_without_a_user_is_that_of_the_default_user() {
    needs!(redis);
    let server = lock_tests::RedisServer::options()
        .password("sesame")
        .start();
    let url = format!("redis://{}", server.address());
    let builder = LockManager::builder(&url)
        .operation_timeout(Duration::from_secs(5))
        .credentials(|| async { Ok::<_, std::io::Error>(Credentials::password("sesame")) });
    let locks = builder.connect().await.expect("a manager");
    once(&locks, "k").await;
}
