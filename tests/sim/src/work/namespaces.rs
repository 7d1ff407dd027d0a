//! An operator of another namespace on the same server sees the locks of that namespace, and nothing else.

use std::time::Duration;

use lock_core::LockManager;

use super::Worker;
use super::operate::OPERATOR;
use crate::ledger::ledger;
use crate::world::{Fault, MILLI};

/// One has what means something in a server's patterns; without any, each text of the server could be a lock.
const NAMESPACES: [&str; 2] = ["l[k]*?:", ""];

impl Worker {
    pub(super) async fn list_elsewhere(&mut self) {
        let timeout = Duration::from_nanos(self.plan.processes[self.process].operation_timeout);
        let namespace = self.rng.pick(&NAMESPACES);
        let locks = LockManager::builder("redis://10.0.0.0:6379")
            .namespace(namespace)
            .operation_timeout(timeout)
            .connect_lazy()
            .expect("the settings are in bounds");
        let key = format!("own{}-{}", self.process, self.task);
        let own = locks.lock(key.as_str()).ttl(Duration::from_secs(10));
        if let Ok(guard) = own.acquire().await {
            let listed = keys_of(&locks).await;
            let is_held = guard.is_valid();
            drop(guard);
            if let Some(keys) = listed {
                self.check_keys(&key, &keys, is_held);
            }
        }
        locks.drain(Duration::from_nanos(500 * MILLI)).await;
    }

    fn check_keys(&self, own: &str, keys: &[String], is_held: bool) {
        let lacks = |fault: &Fault| fault.loses_data() || matches!(fault, Fault::Deny { .. });
        if is_held && !self.plan.has(lacks) && !keys.iter().any(|key| key == own) {
            let text = format!("{own}: {keys:?}");
            ledger(|it| it.violates("a list lacks a lock", text));
        }
        // The kit's own keys have it, and no lock of a history.
        if keys.iter().any(|key| key.contains('!')) {
            ledger(|it| it.violates("a list names what is no lock", format!("{keys:?}")));
        }
    }
}

/// Lists all locks of a namespace; `None`: the server has refused that.
async fn keys_of(locks: &LockManager) -> Option<Vec<String>> {
    let mut pages = locks.operator(OPERATOR).list("*");
    let mut keys = Vec::new();
    while let Some(page) = pages.next_page().await.ok()? {
        keys.extend(page.iter().map(|seen| seen.key().to_owned()));
    }
    Some(keys)
}
