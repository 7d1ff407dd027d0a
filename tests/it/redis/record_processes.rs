//! Tests records of separate processes: an owner that was stopped, and waiters of many processes.

use std::time::Duration;

use lock_core::Wait;
use lock_core::middleware::Forgotten;
use lock_tests::{needs, wait};
use tokio::time::timeout;

use super::processes::{parent, process};
use super::records::{RECORD, recorded, scripts_run, stored};
use super::{asked, keys, kind, long, queued, served, taken};

#[tokio::test]
#[ignore = "a process that other tests start"]
async fn stores_when_it_continues() {
    let Some(locks) = parent().await else { return };
    let guard = taken(&locks, "k", Duration::from_secs(1)).await;
    guard.remember("the first", long()).expect("in bounds");
    println!("\nholding");
    guard.lost().await;
    let handle = guard.handle();
    let released = guard.release().await;
    println!("\n{:?} {:?}", kind(released), handle.record_outcome());
}

#[tokio::test]
async fn a_process_that_was_stopped_stores_nothing_over_the_record_of_the_next_owner() {
    needs!(redis);
    let (server, locks) = served().await;
    let owner = process("redis::record_processes::stores_when_it_continues", &server);
    owner.says("holding");
    owner.stop();
    let request = locks.lock("k").ttl(long()).wait(Wait::Forever);
    let next = timeout(wait::PATIENCE, request.acquire()).await;
    let next = next.expect("in time").expect("its turn");
    owner.cont();
    // It stores nothing over a running owner.
    owner.says("Lost Some(Lost)");
    assert!(next.is_valid());
    next.remember("the second", long()).expect("in bounds");
    next.release().await.expect("held");
    assert_eq!(recorded(&locks).await, Some("the second".into()));

    // It stores nothing over the record of the next owner either.
    assert_eq!(locks.forget("k").await.expect("no fault"), Forgotten::Yes);
    let owner = process("redis::record_processes::stores_when_it_continues", &server);
    owner.says("holding");
    owner.stop();
    let request = locks.lock("k").ttl(long()).wait(Wait::Forever);
    let next = timeout(wait::PATIENCE, request.acquire()).await;
    let next = next.expect("in time").expect("its turn");
    next.remember("the second", long()).expect("in bounds");
    next.release().await.expect("held");
    owner.cont();
    owner.says("Lost Some(Lost)");
    assert_eq!(recorded(&locks).await, Some("the second".into()));
}

const WAITERS: usize = 63;

#[tokio::test]
#[ignore = "a process that other tests start"]
async fn waits_in_many_tasks() {
    let Some(locks) = parent().await else { return };
    let waiters: Vec<_> = (0..WAITERS)
        .map(|_| tokio::spawn(locks.lock("k").ttl(long()).wait(Wait::Forever).acquire()))
        .collect();
    let mut answered = 0;
    for waiter in waiters {
        let refused = waiter.await.expect("no panic").expect_err("done");
        answered += usize::from(refused.record() == Some(RECORD.as_bytes()));
    }
    locks.drain(wait::PATIENCE).await;
    println!("\n{answered} answered");
}

#[tokio::test]
async fn five_hundred_waiting_duplicates_in_eight_processes_cost_one_question_for_each_process() {
    needs!(redis);
    let (server, locks) = served().await;
    let guard = taken(&locks, "k", long()).await;
    let processes: Vec<_> = (0..8)
        .map(|_| process("redis::record_processes::waits_in_many_tasks", &server))
        .collect();
    queued(&server, "k", 8).await;
    server.reset_stats();
    // A poll would be due after 75 ms.
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(scripts_run(&server), 0, "no waiter polls");
    guard.remember(RECORD, long()).expect("in bounds");
    guard.release().await.expect("held");
    for process in &processes {
        process.says(&format!("{WAITERS} answered"));
    }
    assert_eq!(keys(&server), ["lockkit:k"], "the queue is gone");
    let told = asked(&server);
    assert_eq!(told.get("publish"), Some(&8));
    // The record, and for each process its question and the end of its attempt. `EVAL` repeats what found no script.
    assert!(told["evalsha"] <= 1 + 2 * 8, "{told:?}");
    assert_eq!(stored(&server).as_deref(), Some(RECORD));
}
