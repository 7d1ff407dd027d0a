//! Tests a manager that logs in with the credentials of a provider.

use std::error::Error as _;
use std::sync::{Arc, Mutex};

use lock_core::{Credentials, ErrorKind, LockManager, ManagerBuilder};
use lock_tests::{Authority, SqlServer, needs, wait};

use super::{long, once, taken};

/// A server that admits `app` by its password only.
fn server() -> SqlServer {
    let authority = Authority::new();
    let admits = "host all app all scram-sha-256";
    let server = SqlServer::postgres_over_tls(&authority, &authority.certificate("db"), admits);
    server.sql("CREATE ROLE app LOGIN SUPERUSER PASSWORD 'sesame'");
    server
}

/// Returns a manager that logs in as `app` with the password of the moment.
fn builder(server: &SqlServer, password: &Arc<Mutex<Option<&'static str>>>) -> ManagerBuilder {
    let url = format!("{}?sslmode=disable", server.url_of("nobody"));
    let password = Arc::clone(password);
    LockManager::builder(&url)
        .operation_timeout(long())
        .credentials(move || {
            let password = *password.lock().expect("no panic");
            async move {
                let password = password.ok_or("the office is closed")?;
                Ok::<_, &str>(Credentials::new("app", password))
            }
        })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_connection_has_the_user_and_the_password_of_its_moment() {
    needs!(postgres);
    let server = server();
    let password = Arc::new(Mutex::new(Some("sesame")));
    let locks = builder(&server, &password).connect().await;
    let locks = locks.expect("a manager");
    let guard = taken(&locks, "k", long()).await;
    server.sql("ALTER ROLE app PASSWORD 'changed'");
    *password.lock().expect("no panic") = Some("changed");
    let before = server.value("SELECT clock_timestamp()");
    server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'");
    wait::eventually("both connections are back", async || {
        let new = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE usename = 'app' AND backend_start > '{before}'"
        );
        server.value(&new) == "2"
    })
    .await;
    once(&locks, "l").await;
    guard.release().await.expect("held");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_fails_is_an_outage_and_a_wrong_password_is_not() {
    needs!(postgres);
    let server = server();
    let closed = Arc::new(Mutex::new(None));
    let error = builder(&server, &closed).connect().await;
    let error = error.expect_err("no password");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    let source = error.source().expect("the provider's error");
    assert_eq!(source.to_string(), "the office is closed");
    let wrong = Arc::new(Mutex::new(Some("open")));
    let error = builder(&server, &wrong).connect().await;
    let error = error.expect_err("a wrong password");
    assert_eq!(error.kind(), ErrorKind::Misconfigured, "{error}");
    assert!(
        error.to_string().contains("credentials provider"),
        "{error}"
    );
    // The office opens again.
    *wrong.lock().expect("no panic") = Some("sesame");
    let locks = builder(&server, &wrong).connect().await;
    once(&locks.expect("a manager"), "k").await;
}
