//! Runs the example `tickets` as processes: a web process and its workers.

use std::process::Command;

use lock_tests::{ChildProcess, Port, RedisServer, example, http, needs, wait};

fn start(server: &RedisServer, arguments: &[&str], port: &Port, millis: u32) -> ChildProcess {
    let mut command = Command::new(example("tickets"));
    command
        .args(arguments)
        .env("REDIS_URL", server.url())
        .env("PORT", port.number().to_string())
        .env("REPORT_MILLIS", millis.to_string());
    ChildProcess::spawn(command)
}

#[track_caller]
fn says(process: &ChildProcess, words: &str) {
    let line = process.line(wait::PATIENCE, |line| line.contains(words));
    assert!(line.is_some(), "no {words:?}:\n{}", process.output());
}

/// Orders the report, and returns the status and the last word of the answer.
async fn order(port: &Port) -> (u16, String) {
    let answer = http::post(port.number(), "/reports/7", &[], "").await;
    let answer = answer.expect("an answer");
    let last = answer.body.split_whitespace().last().unwrap_or_default();
    (answer.status, last.to_owned())
}

#[tokio::test]
async fn a_worker_finishes_the_job_of_a_web_process_that_was_killed() {
    needs!(redis);
    let server = RedisServer::start();
    let port = Port::free();
    let mut web = start(&server, &[], &port, 0);
    says(&web, "web: http");
    let (status, fence) = order(&port).await;
    assert_eq!(status, 202, "{}", web.output());
    assert_eq!(order(&port).await.0, 409);
    // The lock outlives its first owner.
    web.kill();
    let again = Port::free();
    let web = start(&server, &[], &again, 0);
    says(&web, "web: http");
    assert_eq!(order(&again).await.0, 409);
    let worker = start(&server, &["worker"], &again, 0);
    says(
        &worker,
        &format!("report 7 is done under fencing token {fence}"),
    );
    let (status, next) = order(&again).await;
    assert_eq!(status, 202, "{}", web.output());
    let [fence, next] = [fence, next].map(|text| text.parse::<u64>().expect("a number"));
    assert!(next > fence);
}

#[tokio::test]
async fn of_two_workers_with_the_same_job_one_does_it() {
    needs!(redis);
    let server = RedisServer::start();
    let port = Port::free();
    let web = start(&server, &[], &port, 0);
    says(&web, "web: http");
    assert_eq!(order(&port).await.0, 202);
    let list = "reports:jobs";
    let job = server.cli(&["LINDEX", list, "0"]);
    server.cli(&["LPUSH", list, &job]);
    // The first worker is slow, so that the second one asks while the first works.
    let slow = start(&server, &["worker"], &port, 3_600_000);
    says(&slow, "report 7 begins");
    let worker = start(&server, &["worker"], &port, 0);
    says(&worker, "report 7: no lock");
    assert!(!worker.output().contains("begins"));
    assert!(!slow.output().contains("done"));
}
