//! Tests that a client trusts only servers with a good certificate.

use lock_core::{ErrorKind, LockManager};
use lock_tests::{Authority, RedisServer, Tls, needs};

use super::{HOST, connected, is_of_use, is_untouched, refused, tls, trusting};

#[tokio::test]
async fn a_lock_lives_over_tls_as_it_does_without() {
    needs!(redis_with_tls);
    let authority = Authority::new();
    let options = RedisServer::options()
        .tls(&tls(&authority))
        .password("open");
    let server = options.start();
    let builder = || LockManager::builder(&server.tls_url()).tls_certificates(trusting(&authority));
    let (locks, other) = (connected(builder()).await, connected(builder()).await);
    is_of_use(&locks, &other, "k").await;
    assert!(!format!("{locks:?}").contains("open"));
}

#[tokio::test]
async fn an_untrusted_certificate_is_refused_and_the_error_says_how_to_trust_it() {
    needs!(redis_with_tls);
    let server = RedisServer::options().tls(&tls(&Authority::new())).start();
    let url = server.tls_url().replace("rediss://", "rediss://me:sesame@");
    // The two managers trust the system's authorities, and only another authority.
    let builders = [
        LockManager::builder(&url),
        LockManager::builder(&url).tls_certificates(trusting(&Authority::new())),
    ];
    for builder in builders {
        let error = refused(builder, "SSL_CERT_FILE").await;
        assert_eq!(error.kind(), ErrorKind::Misconfigured);
        assert!(error.to_string().contains("tls_certificates"), "{error}");
    }
    // A manager that connects later does not trust the server either.
    let locks = LockManager::connect_lazy(&url).expect("a URL");
    let error = locks.lock("k").acquire().await.expect_err("no lock");
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
    assert!(is_untouched(&server));
}

#[tokio::test]
async fn a_certificate_for_another_name_or_time_is_refused_and_the_error_says_so() {
    needs!(redis_with_tls);
    let authority = Authority::new();
    for (certificate, why) in [
        (authority.certificate("redis.example"), "another name"),
        (authority.expired_certificate(HOST), "expired"),
    ] {
        let tls = Tls::of(&authority, &certificate);
        let server = RedisServer::options().tls(&tls).start();
        let builder = LockManager::builder(&server.tls_url());
        let error = refused(builder.tls_certificates(trusting(&authority)), why).await;
        assert_eq!(error.kind(), ErrorKind::Misconfigured);
        assert!(is_untouched(&server));
    }
}

#[tokio::test]
async fn no_url_can_turn_the_check_off() {
    for url in [
        "rediss://127.0.0.1:1/#insecure",
        "rediss://:ses#ame@127.0.0.1:1",
        "valkeys://127.0.0.1:1/0#insecure",
        "rediss-sentinel://127.0.0.1:1/0#insecure?service=a",
        "rediss-sentinel://127.0.0.1:1/0?service=a#insecure",
        "rediss-cluster://127.0.0.1:1#insecure",
        "redlocks://127.0.0.1:1#insecure,127.0.0.1:2,127.0.0.1:3",
    ] {
        let error = LockManager::connect_lazy(url).expect_err("not accepted");
        assert_eq!(error.kind(), ErrorKind::Invalid, "{url}");
        assert!(error.to_string().contains("#insecure"), "{error}");
    }
}

#[tokio::test]
async fn a_port_without_tls_or_with_only_tls_is_an_outage_in_bounded_time() {
    needs!(redis_with_tls);
    let authority = Authority::new();
    let server = RedisServer::options().tls(&tls(&authority)).start();
    let plain = server.url().replace("redis://", "rediss://");
    let builder = LockManager::builder(&plain).tls_certificates(trusting(&authority));
    // The server waits for the end of the bytes that it takes for a command.
    let error = refused(builder, "does it speak TLS").await;
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let plain = server.tls_url().replace("rediss://", "redis://");
    let error = refused(
        LockManager::builder(&plain),
        "the connection to the server failed",
    )
    .await;
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}
