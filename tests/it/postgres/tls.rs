//! Tests a PostgreSQL that speaks TLS: whom its clients trust, and which clients it admits.

use std::time::Duration;

use lock_core::{Error, ErrorKind, LockManager, TlsCertificates, Wait};
use lock_tests::{Authority, SqlServer, needs, wait};
use tokio::time::timeout;

use super::{its_turn, long, taken};

/// The host name of all servers in these tests.
const HOST: &str = "127.0.0.1";

fn trusting(authority: &Authority) -> TlsCertificates {
    TlsCertificates::new().root_certificate(authority.pem())
}

/// Connects a manager that is patient enough for a machine that is busy with other tests.
async fn connected(url: &str, certificates: TlsCertificates) -> LockManager {
    let builder = LockManager::builder(url).tls_certificates(certificates);
    let builder = builder.operation_timeout(Duration::from_secs(5));
    builder.connect().await.expect("a manager")
}

/// Returns the error of a manager that cannot connect.
async fn refused(url: &str, certificates: Option<TlsCertificates>) -> Error {
    let mut builder = LockManager::builder(url).connect_timeout(Duration::from_secs(3));
    if let Some(certificates) = certificates {
        builder = builder.tls_certificates(certificates);
    }
    let answer = timeout(wait::PATIENCE, builder.connect()).await;
    let error = answer.expect("in bounded time").expect_err("no manager");
    assert!(
        !format!("{error} {error:?}").contains("sesame"),
        "{error:?}"
    );
    error
}

#[track_caller]
fn is_misconfigured(error: &Error, why: &str) {
    assert_eq!(error.kind(), ErrorKind::Misconfigured, "{error}");
    assert!(error.to_string().contains(why), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_lives_and_is_handed_over_by_tls() {
    needs!(postgres);
    let authority = Authority::new();
    let certificate = authority.certificate(HOST);
    let server = SqlServer::postgres_over_tls(&authority, &certificate, "");
    let locks = connected(server.url(), trusting(&authority)).await;
    let other = connected(server.url(), trusting(&authority)).await;
    let guard = taken(&locks, "k", long()).await;
    let waiter = tokio::spawn(other.lock("k").ttl(long()).wait(Wait::Forever).acquire());
    let operator = locks.operator("tests");
    wait::eventually("the waiter is queued", async || {
        let seen = operator.inspect("k").await;
        seen.expect("an inspection").waiter_count() == 1
    })
    .await;
    let speaking = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                    WHERE ssl AND application_name = 'lockkit'";
    assert_eq!(server.value(speaking), "4");
    guard.release().await.expect("held");
    its_turn(waiter).await.release().await.expect("held");
}

#[tokio::test]
async fn an_untrusted_certificate_and_one_for_another_name_are_refused() {
    needs!(postgres);
    let authority = Authority::new();
    let server = SqlServer::postgres_over_tls(&authority, &authority.certificate(HOST), "");
    let url = server.url().replace("locks@", "locks:sesame@");
    // The managers trust the system's authorities, and only another authority.
    for certificates in [None, Some(trusting(&Authority::new()))] {
        is_misconfigured(&refused(&url, certificates.clone()).await, "SSL_CERT_FILE");
        let url = format!("{url}?sslmode=require");
        is_misconfigured(&refused(&url, certificates).await, "tls_certificates");
    }
    for (certificate, why) in [
        (authority.certificate("db.example"), "another name"),
        (authority.expired_certificate(HOST), "expired"),
    ] {
        let server = SqlServer::postgres_over_tls(&authority, &certificate, "");
        let error = refused(server.url(), Some(trusting(&authority))).await;
        is_misconfigured(&error, why);
    }
    let plain = format!("{}?sslmode=disable", server.url());
    let plain = LockManager::connect(&plain).await;
    let _guard = taken(&plain.expect("a manager"), "k", long()).await;
}

#[tokio::test]
async fn a_server_without_tls_is_refused_where_the_url_asks_for_it() {
    needs!(postgres);
    let server = SqlServer::postgres();
    let required = format!("{}?sslmode=require", server.url());
    is_misconfigured(&refused(&required, None).await, "speaks no TLS");
    let error = refused(server.url(), Some(trusting(&Authority::new()))).await;
    is_misconfigured(&error, "speaks no TLS");
}

#[tokio::test]
async fn a_client_shows_its_certificate_or_its_password() {
    needs!(postgres);
    let authority = Authority::new();
    let admits =
        "hostssl all app all trust clientcert=verify-ca\nhostssl all secret all scram-sha-256";
    let server = SqlServer::postgres_over_tls(&authority, &authority.certificate(HOST), admits);
    server.sql("CREATE ROLE app LOGIN SUPERUSER");
    server.sql("CREATE ROLE secret LOGIN SUPERUSER PASSWORD 'open'");

    let url = server.url_of("app");
    let nameless = refused(&url, Some(trusting(&authority))).await;
    is_misconfigured(&nameless, "pg_hba.conf");
    let stranger = Authority::new().certificate(HOST);
    let strange = trusting(&authority).client_certificate(stranger.pem, stranger.key);
    is_misconfigured(
        &refused(&url, Some(strange)).await,
        "certificate of this client",
    );
    let own = authority.certificate("client");
    let shown = trusting(&authority).client_certificate(own.pem, own.key);
    let _guard = taken(&connected(&url, shown).await, "k", long()).await;

    let url = server.url_of("secret:open");
    let by_password = connected(&url, trusting(&authority)).await;
    let _guard = taken(&by_password, "l", long()).await;
    let wrong = server.url_of("secret:sesame");
    let error = refused(&wrong, Some(trusting(&authority))).await;
    is_misconfigured(&error, "password");
}

#[tokio::test]
async fn certificates_that_cannot_be_read_are_invalid_and_are_not_shown() {
    let garbage = "-----BEGIN CERTIFICATE-----\nsesame\n-----END CERTIFICATE-----";
    let authority = Authority::new();
    for certificates in [
        TlsCertificates::new().root_certificate(garbage),
        trusting(&authority).client_certificate(garbage, garbage),
    ] {
        let builder = LockManager::builder("postgres://app@127.0.0.1:1/shop");
        let error = builder.tls_certificates(certificates).connect_lazy();
        let error = error.expect_err("no certificate");
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let shown = format!("{error} {error:?}");
        assert!(
            shown.contains("PEM") && !shown.contains("sesame"),
            "{shown}"
        );
    }
}
