//! An order to free a lock is one line at the level WARN, with the operator, the reason, the holder and its fencing
//! token, and without the key or the token of the lease.
#![allow(clippy::disallowed_methods, reason = "tests run on the real machine")]

mod log;

use std::time::Duration;

use lock_core::LockManager;
use lock_core::operator::{Forced, HolderProcess};

use self::log::Log;

#[tokio::test]
async fn an_order_is_one_line_that_names_no_key() {
    let (log, logging) = Log::begin(tracing::Level::INFO);
    let locks = LockManager::builder("memory:").label("checkout");
    let locks = locks.connect().await.unwrap();
    let guard = locks.lock("account:alice").acquire().await.unwrap();
    let operator = locks.operator("ops@example");
    let holder = loop {
        let seen = operator.inspect("account:alice").await.unwrap();
        if seen.holders()[0].process() == HolderProcess::Holds {
            break seen.holders()[0].clone();
        }
    };
    let order = || operator.force(&holder).because("it hangs");
    assert_eq!(order().await.unwrap(), Forced::Told);
    assert_eq!(order().await.unwrap(), Forced::Changed, "nothing to log");
    tokio::time::timeout(Duration::from_secs(20), guard.lost())
        .await
        .unwrap();
    tracing::error!(?operator, ?holder, "shown");
    drop(logging);

    let log = log.text();
    assert!(!log.contains("alice"), "{log}");
    let lines: Vec<_> = log.lines().filter(|line| line.contains("WARN")).collect();
    let [line] = lines.as_slice() else {
        panic!("{log}");
    };
    let process = format!("process {}, checkout", std::process::id());
    let fence = format!("fence={}", guard.fencing_token());
    for part in [
        "an operator freed a lock",
        "operator=\"ops@example\"",
        "reason=\"it hangs\"",
        &process,
        &fence,
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
}
