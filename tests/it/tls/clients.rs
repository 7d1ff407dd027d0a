//! Tests servers that ask for a certificate of the client.

use lock_core::redis1::{Client, ClientTlsConfig};
use lock_core::{ErrorKind, LockManager, TlsCertificates, redis1};
use lock_tests::{Authority, RedisServer, needs};

use super::{HOST, connected, is_of_use, is_untouched, refused, showing, tls, trusting};

#[tokio::test]
async fn a_client_shows_its_certificate_and_the_error_without_one_asks_for_it() {
    needs!(redis_with_tls);
    let authority = Authority::new();
    let asking = tls(&authority).asking_clients();
    let server = RedisServer::options().tls(&asking).start();
    let builder = || LockManager::builder(&server.tls_url());

    let nameless = builder().tls_certificates(trusting(&authority));
    let error = refused(nameless, "asks for a certificate").await;
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
    let stranger = Authority::new().certificate(HOST);
    let strange = builder().tls_certificates(showing(&authority, &stranger));
    let error = refused(strange, "does not accept the certificate").await;
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
    assert!(is_untouched(&server));

    let own = authority.certificate("client");
    let known = || builder().tls_certificates(showing(&authority, &own));
    let (locks, other) = (connected(known()).await, connected(known()).await);
    is_of_use(&locks, &other, "k").await;
    // A client that the application has made works too.
    let certificates = redis1::TlsCertificates {
        root_cert: Some(authority.pem()),
        client_tls: Some(ClientTlsConfig {
            client_cert: own.pem.clone().into_bytes(),
            client_key: own.key.clone().into_bytes(),
        }),
    };
    let client = Client::build_with_tls(server.tls_url(), certificates);
    let locks = LockManager::from_client(client.expect("a client")).expect("a manager");
    is_of_use(&locks, &other, "k").await;
}

#[tokio::test]
async fn certificates_that_cannot_be_read_or_used_are_invalid_and_are_not_shown() {
    let authority = Authority::new();
    let certificates = TlsCertificates::new()
        .root_certificate("-----BEGIN CERTIFICATE-----\nsesame\n-----END CERTIFICATE-----");
    let unreadable = LockManager::builder("rediss://127.0.0.1:1").tls_certificates(certificates);
    for (builder, what_to_do) in [
        (unreadable, "PEM"),
        (LockManager::builder("redis://127.0.0.1:1"), "rediss://"),
        (LockManager::builder("memory:"), "servers"),
    ] {
        let builder = match what_to_do {
            "PEM" => builder,
            _ => builder.tls_certificates(trusting(&authority)),
        };
        let error = builder
            .connect_lazy()
            .expect_err("certificates that cannot be used");
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let shown = format!("{error} {error:?}");
        assert!(
            shown.contains(what_to_do) && !shown.contains("sesame"),
            "{shown}"
        );
    }
}
