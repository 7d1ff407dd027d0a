use std::process::Command;

/// Runs one test of this binary with a search path on which there is nothing.
fn run_without_parts(test: &str, list: &std::path::Path) -> std::process::Output {
    Command::new(std::env::current_exe().expect("this binary"))
        .args(["--exact", test])
        .env("PATH", "/nowhere")
        .env_remove("REDIS_SERVER")
        .env("LOCK_TESTS_NOT_RUN", list)
        .output()
        .expect("this binary runs")
}

#[test]
fn a_test_without_its_server_writes_down_that_it_did_not_run() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let list = folder.path().join("not-run");
    let test = "harness::redis::a_dropped_server_listens_no_more";
    let line = format!("it::{test}: no redis-server\n");

    let output = run_without_parts(test, &list);
    assert!(output.status.success());
    let seen = String::from_utf8_lossy(&output.stderr);
    assert!(seen.contains(&format!("NOT RUN {line}")), "{seen}");
    assert_eq!(std::fs::read_to_string(&list).expect("the list"), line);
}

#[test]
fn an_async_test_goes_by_its_own_name() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let list = folder.path().join("not-run");
    let test = "harness::proxy::held_requests_arrive_when_they_pass_again";
    run_without_parts(test, &list);
    let list = std::fs::read_to_string(&list).expect("the list");
    assert_eq!(list, format!("it::{test}: no redis-server\n"));
}

#[test]
fn a_test_that_cannot_write_its_excuse_fails() {
    let test = "harness::redis::a_dropped_server_listens_no_more";
    let output = run_without_parts(test, "/nowhere/not-run".as_ref());
    assert!(!output.status.success());
}
