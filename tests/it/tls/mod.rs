//! Tests servers that speak TLS: they have the same locks, and certificates that are not trusted are
//! refused.

mod clients;
mod several;
mod trust;

use std::time::Duration;

use lock_core::{Error, LockManager, ManagerBuilder, TlsCertificates};
use lock_tests::{Authority, Certificate, RedisServer, Tls, wait};
use tokio::time::timeout;

use crate::steps::{Waiter, its_turn, keys, long, taken};

/// The host name of all servers in these tests.
const HOST: &str = "127.0.0.1";

/// Makes the TLS settings of a server with a good certificate.
fn tls(authority: &Authority) -> Tls {
    Tls::of(authority, &authority.certificate(HOST))
}

/// Trusts only this authority.
fn trusting(authority: &Authority) -> TlsCertificates {
    TlsCertificates::new().root_certificate(authority.pem())
}

/// Trusts only this authority, and shows a certificate.
fn showing(authority: &Authority, certificate: &Certificate) -> TlsCertificates {
    trusting(authority).client_certificate(certificate.pem.clone(), certificate.key.clone())
}

/// Connects a manager that is patient enough for a machine that is busy with other tests.
async fn connected(builder: ManagerBuilder) -> LockManager {
    let builder = builder.operation_timeout(Duration::from_secs(5));
    let builder = builder.connect_timeout(wait::PATIENCE);
    builder.connect().await.expect("a manager")
}

/// Checks that no manager can connect, and that the error gives this remedy.
async fn refused(builder: ManagerBuilder, what_to_do: &str) -> Error {
    let builder = builder.connect_timeout(Duration::from_secs(3));
    let answer = timeout(wait::PATIENCE, builder.connect()).await;
    let error = answer.expect("in bounded time").expect_err("no manager");
    assert!(error.to_string().contains(what_to_do), "{error}");
    assert!(!format!("{error:?}").contains("sesame"), "{error:?}");
    error
}

/// Checks the whole life of a lock: taken, renewed, handed over to another manager, released.
async fn is_of_use(locks: &LockManager, other: &LockManager, key: &str) {
    // Each of several servers has an eighth of this time, which suffices on a busy machine, too: to connect, and to answer a
    // release.
    let guard = taken(locks, key, Duration::from_secs(15)).await;
    let mut last = guard.remaining();
    wait::eventually("the lock is renewed", async || {
        let before = std::mem::replace(&mut last, guard.remaining());
        last > before
    })
    .await;
    let waiting = other.lock(key).ttl(long()).wait(long()).acquire();
    let waiter: Waiter = tokio::spawn(waiting);
    guard.release().await.expect("held");
    its_turn(waiter).await.release().await.expect("held");
}

/// Returns whether no client has left a key on the server.
fn is_untouched(server: &RedisServer) -> bool {
    keys(server).is_empty() && server.get("lockkit:!f").is_none()
}
