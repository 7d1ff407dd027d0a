//! Locks to look at where there is no Redis: a service that hangs, and two that wait for it.

use std::time::Duration;

use lock_core::{Error, LockManager, Wait};

pub(crate) const STORE: &str = "memory:console";

/// Starts the services. They begin again when their locks are freed.
pub(crate) async fn start() -> Result<(), Error> {
    for (label, key, hold) in [
        ("checkout", "order:42", Duration::from_secs(3_600)),
        ("billing", "order:42", Duration::from_secs(60)),
        ("reports", "order:42", Duration::from_secs(60)),
        ("imports", "import:customers", Duration::from_secs(90)),
    ] {
        let locks = LockManager::builder(STORE).label(label);
        let locks = locks.connect().await?;
        let first = locks.lock(key).wait(Wait::Forever).acquire();
        let first = tokio::spawn(first);
        // They queue in this order.
        tokio::time::sleep(Duration::from_millis(50)).await;
        tokio::spawn(async move {
            let mut guard = first.await;
            while let Ok(Ok(held)) = guard {
                tokio::select! {
                    _ = held.lost() => {}
                    () = tokio::time::sleep(hold) => {}
                }
                drop(held);
                tokio::time::sleep(Duration::from_secs(5)).await;
                guard = Ok(locks.lock(key).wait(Wait::Forever).acquire().await);
            }
        });
    }
    Ok(())
}
