//! Tests the audit of users that lack rights which a lock can use.

use lock_core::{ErrorKind, Finding, LockManager};
use lock_tests::{RedisServer, needs};

use super::{codes, well_kept};

/// Returns the findings for a user with these rights.
async fn findings(server: &RedisServer, replica_acks: u16, may: &[&str]) -> Vec<Finding> {
    let user = ["ACL", "SETUSER", "alice", "reset", "on", ">sesame"];
    server.cli(&[&user[..], may].concat());
    let url = format!("redis://alice:sesame@{}", server.address());
    let builder = LockManager::builder(&url).replica_acks(replica_acks);
    let locks = builder
        .connect()
        .await
        .expect("a missing optional right is no error");
    let findings = locks.audit().await.expect("an answer");
    for finding in &findings {
        let shown = format!("{finding} {finding:?}");
        assert!(!shown.contains("sesame"), "{shown}");
        assert!(!shown.contains("alice"), "{shown}");
    }
    findings
}

const LEAST: [&str; 6] = [
    "+@read",
    "+@write",
    "+@scripting",
    "+@connection",
    "+time",
    "~lockkit:*",
];

#[tokio::test]
async fn a_user_with_the_advised_rights_has_no_findings_though_it_may_not_see_the_settings() {
    needs!(redis);
    let server = well_kept().start();
    let advised = [
        "+publish",
        "+subscribe",
        "+info",
        "resetchannels",
        "&lockkit:!m:*",
    ];
    let found = findings(&server, 0, &[&LEAST[..], &advised].concat()).await;
    assert_eq!(found, []);
}

#[tokio::test]
async fn each_right_that_is_missing_is_found_and_named() {
    needs!(redis);
    let server = well_kept().start();
    let found = findings(&server, 0, &LEAST).await;
    assert_eq!(
        codes(&found),
        ["may_not_ask", "may_not_subscribe", "may_not_publish"]
    );
    for (finding, right) in found.iter().zip(["+info", "+subscribe", "+publish"]) {
        assert!(finding.to_string().contains(right), "{finding}");
    }
}

#[tokio::test]
async fn channels_of_another_name_are_no_channels() {
    needs!(redis);
    let server = well_kept().start();
    let others = ["+@all", "~*", "resetchannels", "&other:*"];
    let found = findings(&server, 0, &others).await;
    assert_eq!(codes(&found), ["may_not_subscribe", "may_not_publish"]);
}

#[tokio::test]
async fn a_user_without_the_right_to_wait_is_found_where_replicas_have_to_acknowledge() {
    needs!(redis);
    let server = well_kept().start();
    let may = ["+@all", "~*", "&*", "-wait"];
    assert_eq!(findings(&server, 0, &may).await, []);
    let found = findings(&server, 1, &may).await;
    assert_eq!(codes(&found), ["may_not_wait", "too_few_replicas"]);
    let locks = LockManager::builder(&format!("redis://alice:sesame@{}", server.address()));
    let locks = locks.replica_acks(1).connect().await.expect("a manager");
    let error = locks.lock("k").acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
    assert_eq!(
        server.get("lockkit:k"),
        None,
        "the manager releases the lock"
    );
}

#[tokio::test]
async fn a_user_that_may_not_run_scripts_is_an_error_and_no_finding() {
    needs!(redis);
    let server = well_kept().start();
    server.cli(&[
        "ACL",
        "SETUSER",
        "alice",
        "on",
        ">sesame",
        "+@all",
        "-@scripting",
        "~*",
        "&*",
    ]);
    let url = format!("redis://alice:sesame@{}", server.address());
    let locks = LockManager::connect_lazy(&url).expect("a manager");
    let error = locks.audit().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
}
