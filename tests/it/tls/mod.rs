//! Servers that speak TLS: the same locks, and no certificate that nobody vouches for.

mod clients;
mod several;
mod trust;

use std::time::Duration;

use lock_core::redis::{ClientTlsConfig, TlsCertificates};
use lock_core::{Error, LockManager, ManagerBuilder};
use lock_tests::{Authority, Certificate, RedisServer, Tls, wait};
use tokio::time::timeout;

use crate::steps::{Waiter, its_turn, keys, long, taken};

/// The host by which all servers of these tests are known.
const HOST: &str = "127.0.0.1";

/// What a server needs that shows a good certificate.
fn tls(authority: &Authority) -> Tls {
    Tls::of(authority, &authority.certificate(HOST))
}

/// Trusts nobody but this authority.
fn trusting(authority: &Authority) -> TlsCertificates {
    TlsCertificates {
        client_tls: None,
        root_cert: Some(authority.pem()),
    }
}

/// As [`trusting`], and shows a certificate.
fn showing(authority: &Authority, certificate: &Certificate) -> TlsCertificates {
    TlsCertificates {
        client_tls: Some(ClientTlsConfig {
            client_cert: certificate.pem.clone().into_bytes(),
            client_key: certificate.key.clone().into_bytes(),
        }),
        ..trusting(authority)
    }
}

/// Patient enough for a machine that is busy with the other tests.
async fn connected(builder: ManagerBuilder) -> LockManager {
    let builder = builder.operation_timeout(Duration::from_secs(5));
    builder.connect().await.expect("a manager")
}

/// There is no manager, and what is said of it tells what to do.
async fn refused(builder: ManagerBuilder, what_to_do: &str) -> Error {
    let builder = builder.connect_timeout(Duration::from_secs(3));
    let answer = timeout(wait::PATIENCE, builder.connect()).await;
    let error = answer.expect("in bounded time").expect_err("no manager");
    assert!(error.to_string().contains(what_to_do), "{error}");
    assert!(!format!("{error:?}").contains("sesame"), "{error:?}");
    error
}

/// A lock's whole life: taken, renewed, handed over to another manager, given back.
async fn is_of_use(locks: &LockManager, other: &LockManager, key: &str) {
    // An eighth of it is enough for each of several servers to be connected to, on a busy machine too.
    let guard = taken(locks, key, Duration::from_millis(3600)).await;
    let mut last = guard.remaining();
    wait::eventually("it is renewed", async || {
        let before = std::mem::replace(&mut last, guard.remaining());
        last > before
    })
    .await;
    let waiting = other.lock(key).ttl(long()).wait(long()).acquire();
    let waiter: Waiter = tokio::spawn(waiting);
    guard.release().await.expect("held");
    its_turn(waiter).await.release().await.expect("held");
}

/// Nobody has left anything there.
fn is_untouched(server: &RedisServer) -> bool {
    keys(server).is_empty() && server.get("lockkit:!f").is_none()
}
