//! Runs the example `opentelemetry` as a process.

use std::process::Command;

use lock_tests::{ChildProcess, example, wait};

#[test]
fn the_spans_of_two_requests_are_printed_as_trees() {
    let mut command = Command::new(example("opentelemetry"));
    command.env_remove("REDIS_URL");
    let mut process = ChildProcess::spawn(command);
    let status = process.wait(wait::PATIENCE).expect("an end");
    let printed = process.output();
    assert!(status.success(), "{printed}");
    let lines = printed.lines().filter(|line| line.contains(" ms "));
    let names: Vec<_> = lines.map(|line| line[..20].trim_end()).collect();
    let request = [
        "POST /orders",
        "  lock.acquire",
        "  lock.hold",
        "    charge",
        "  lock.release",
    ];
    assert_eq!(names, [request, request].concat(), "{printed}");
}
