use std::process::Command;

use lock_tests::{missing, needs};

/// Runs one test of this binary with a search path that has no programs.
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
fn a_test_without_its_server_records_that_it_did_not_run() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let list = folder.path().join("not-run");
    let test = "harness::redis::a_dropped_server_no_longer_listens";
    let line = format!("it::{test}: no redis-server\n");

    let output = run_without_parts(test, &list);
    assert!(output.status.success());
    let seen = String::from_utf8_lossy(&output.stderr);
    assert!(seen.contains(&format!("NOT RUN {line}")), "{seen}");
    assert_eq!(std::fs::read_to_string(&list).expect("the list"), line);
}

#[test]
fn an_async_test_is_recorded_by_its_own_name() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let list = folder.path().join("not-run");
    let test = "harness::proxy::held_requests_arrive_when_they_pass_again";
    run_without_parts(test, &list);
    let list = std::fs::read_to_string(&list).expect("the list");
    assert_eq!(list, format!("it::{test}: no redis-server\n"));
}

#[test]
fn a_variable_that_names_no_server_is_named_with_its_value() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let list = folder.path().join("not-run");
    let test = "harness::redis::a_dropped_server_no_longer_listens";
    let status = Command::new(std::env::current_exe().expect("this binary"))
        .args(["--exact", test])
        .env("REDIS_SERVER", "src/lib.rs")
        .env("LOCK_TESTS_NOT_RUN", &list)
        .status();
    assert!(status.expect("this binary runs").success());
    let list = std::fs::read_to_string(&list).expect("the list");
    assert!(list.contains("$REDIS_SERVER is \"src/lib.rs\""), "{list}");
}

/// `REDIS_SERVER=valkey-server ./test.sh`, where `valkey-server` is on the search path.
#[test]
fn a_variable_may_name_a_server_on_the_search_path() {
    needs!(redis);
    let server = missing::redis().expect("checked by `needs!`");
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::os::unix::fs::symlink(server, folder.path().join("other-server")).expect("a link");
    let list = folder.path().join("not-run");
    let path = std::env::var("PATH").expect("a search path");
    let test = "harness::redis::a_dropped_server_no_longer_listens";
    let output = Command::new(std::env::current_exe().expect("this binary"))
        .args(["--exact", test])
        .env("PATH", format!("{}:{path}", folder.path().display()))
        .env("REDIS_SERVER", "other-server")
        .env("LOCK_TESTS_NOT_RUN", &list)
        .output()
        .expect("this binary runs");
    assert!(output.status.success(), "{output:?}");
    assert!(!list.exists(), "the test ran");
}

#[test]
fn a_test_that_cannot_record_that_it_did_not_run_fails() {
    let test = "harness::redis::a_dropped_server_no_longer_listens";
    let output = run_without_parts(test, "/nowhere/not-run".as_ref());
    assert!(!output.status.success());
}
