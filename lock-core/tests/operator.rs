//! An order to free a lock is one line at the level WARN, with the operator, the reason, the holder and its fencing
//! token, and without the key or the token of the lease.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lock_core::LockManager;
use lock_core::operator::{Forced, HolderProcess};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn an_order_is_one_line_that_names_no_key() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_max_level(tracing::Level::INFO)
        .with_writer(move || writer.clone())
        .finish();
    let traced = tracing::subscriber::set_default(subscriber);

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
    drop(traced);

    let log = String::from_utf8(log.bytes().clone()).unwrap();
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
