use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use lock_tests::{ChildProcess, RedisServer, needs, wait};

fn shell(script: &str) -> ChildProcess {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    ChildProcess::spawn(command)
}

#[test]
fn a_test_can_wait_for_a_line_of_output_and_the_output_is_kept() {
    let child = shell("echo first; echo second >&2; sleep 60");
    assert_eq!(
        child
            .line(wait::PATIENCE, |line| line == "second")
            .as_deref(),
        Some("second")
    );
    assert_eq!(
        child
            .line(wait::PATIENCE, |line| line == "first")
            .as_deref(),
        Some("first")
    );
}

#[test]
fn waiting_for_a_line_ends_with_the_output() {
    let child = shell("echo other");
    assert_eq!(child.line(Duration::MAX, |line| line == "wanted"), None);
    assert_eq!(child.output(), "other");
}

#[test]
fn a_child_that_is_asked_to_end_ends_with_its_status() {
    let mut child = shell("trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done");
    child.says("ready");
    assert!(child.wait(Duration::ZERO).is_none());
    child.terminate();
    assert_eq!(
        child.wait(wait::PATIENCE).and_then(|status| status.code()),
        Some(7)
    );
    assert!(!child.is_running());
}

#[test]
fn a_child_that_was_waited_for_has_its_whole_output() {
    let mut child = shell("(sleep 0.3; echo late) & echo early");
    child.wait(wait::PATIENCE).expect("an end");
    assert_eq!(child.output(), "early\nlate");
}

#[test]
fn a_killed_child_takes_its_own_children_with_it() {
    // The pipe of the output ends when the last process that can write to it has ended.
    let mut child = shell("sleep 60 & echo ready; wait");
    child.says("ready");
    child.kill();
    assert_eq!(child.line(Duration::MAX, |line| line == "never"), None);
}

#[test]
fn a_test_that_panics_leaves_no_server() {
    needs!(redis);
    let mut address = None;
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let server = RedisServer::start();
        address = Some(server.address());
        panic!("on purpose");
    }));
    assert!(panicked.is_err());
    TcpStream::connect(address.expect("the server was started")).expect_err("no process listens");
}

#[test]
fn a_test_process_that_is_killed_leaves_no_server() {
    needs!(redis);
    // This folder holds the files that the killed process cannot remove, and is removed with
    // the value.
    let folder = tempfile::tempdir().expect("a temporary folder");
    let test = "harness::child::holds_a_server_until_killed";
    let place = folder.path().to_str().expect("a name");
    let mut victim = ChildProcess::of_test(test, &[("LOCK_TESTS_HOLD", "1"), ("TMPDIR", place)]);
    let address = victim.tells("holding ").parse().expect("an address");
    TcpStream::connect::<std::net::SocketAddr>(address).expect("the server listens");

    // The kill ends the test process only, because its server is in a process group of its
    // own.
    victim.kill();
    wait::until("the server is gone", || {
        TcpStream::connect(address).is_err()
    });
}

#[test]
#[ignore = "the process that the test above kills"]
fn holds_a_server_until_killed() {
    if std::env::var_os("LOCK_TESTS_HOLD").is_none() {
        return;
    }
    let server = RedisServer::start();
    println!("\nholding {}", server.address());
    loop {
        std::thread::park();
    }
}
