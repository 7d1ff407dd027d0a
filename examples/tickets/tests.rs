//! Tests the web process and the worker as tasks. `tests/it/tickets.rs` tests whole processes.

use std::net::SocketAddr;
use std::time::Duration;

use super::*;
use crate::jobs::Job;

#[path = "../client.rs"]
#[allow(dead_code, reason = "tests of other examples use the rest")]
mod client;

use client::post;

async fn start(locks: &LockManager) -> (SocketAddr, Jobs) {
    let jobs = Jobs::connect("memory:").await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = web::router(locks.clone(), jobs.clone()).unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    (address, jobs)
}

async fn work(locks: &LockManager, jobs: &Jobs, job: Job) -> String {
    worker::work(locks, jobs, job, Duration::ZERO)
        .await
        .unwrap()
}

#[tokio::test]
async fn an_order_is_accepted_and_refused_again_until_its_worker_is_done() {
    let locks = LockManager::in_memory();
    let (address, jobs) = start(&locks).await;
    let first = post(address, "/reports/7", None).await;
    assert_eq!(first.status, 202);
    let second = post(address, "/reports/7", None).await;
    assert_eq!((second.status, second.retry_after.is_some()), (409, true));
    assert_eq!(post(address, "/reports/8", None).await.status, 202);

    let job = jobs.pop().await.unwrap().expect("a job");
    let fence = first.text.rsplit_once(' ').unwrap().1.trim();
    let done = work(&locks, &jobs, job).await;
    assert_eq!(
        done,
        format!("report 7 is done under fencing token {fence}")
    );
    assert_eq!(post(address, "/reports/7", None).await.status, 202);
}

#[tokio::test]
async fn a_job_that_is_delivered_twice_is_done_once() {
    let locks = LockManager::in_memory();
    let (address, jobs) = start(&locks).await;
    assert_eq!(post(address, "/reports/7", None).await.status, 202);
    let job = jobs.pop().await.unwrap().expect("a job");
    let again = Job {
        report: job.report.clone(),
        ticket: job.ticket.clone(),
    };
    assert!(work(&locks, &jobs, job).await.contains("is done"));
    assert!(work(&locks, &jobs, again).await.contains("no lock"));
}

#[tokio::test]
async fn a_text_that_is_no_job_is_left_out() {
    let jobs = Jobs::connect("memory:").await.unwrap();
    let Jobs::Here(push, _) = &jobs else {
        panic!("a queue of this process");
    };
    push.send("no job".to_owned()).unwrap();
    let job = Job {
        report: "7".to_owned(),
        ticket: String::new(),
    };
    jobs.push(&job).await.unwrap();
    assert_eq!(jobs.pop().await.unwrap().expect("a job").report, "7");
}
