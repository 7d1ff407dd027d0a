//! Tests locks over several real servers that stop, die, lose data and are cut off.

mod apart;
mod contenders;
mod copies;
mod empty;
mod ended;
mod gone;
mod killed;
mod lock_all;
mod operator;
mod pinged;
mod queues;
mod readers;
mod records;
mod refused;
mod split;
mod twins;
mod waits;

use std::time::Duration;

use lock_core::{LockGuard, LockManager, ManagerBuilder};
use lock_tests::{RedisServer, wait};

use crate::steps::{kind, long, once};

/// Independent servers of one test.
struct Nodes(Vec<RedisServer>);

impl Nodes {
    fn start(count: usize) -> Nodes {
        Nodes((0..count).map(|_| RedisServer::start()).collect())
    }

    fn builder(&self) -> ManagerBuilder {
        builder(self.0.iter().map(RedisServer::url))
    }

    async fn manager(&self) -> LockManager {
        self.builder().connect().await.expect("a manager")
    }

    /// Makes a manager that has met all servers, because connecting does not wait long for the
    /// last ones.
    async fn acquainted(&self) -> LockManager {
        self.acquainted_by(self.builder()).await
    }

    async fn acquainted_by(&self, builder: ManagerBuilder) -> LockManager {
        let locks = builder.connect().await.expect("a manager");
        meets(&locks, self.0.len()).await;
        locks
    }

    /// Returns the servers on which the key has a value.
    fn that_have(&self, key: &str) -> Vec<usize> {
        let name = format!("lockkit:{key}");
        let nodes = (0..self.0.len()).filter(|node| self.0[*node].is_up());
        nodes
            .filter(|node| self.0[*node].get(&name).is_some())
            .collect()
    }

    /// Adds five seconds to each register that was used, as if a client's clock had been ahead.
    fn raise_all_registers(&self) {
        let script = "
            local registers = redis.call('HGETALL', KEYS[1])
            for index = 2, #registers, 2 do
              local number, owner = string.match(registers[index], '^(%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d)(%x+/%x+)$')
              if number then
                local raised = string.format('%016.0f', number + 5000000)
                redis.call('HSET', KEYS[1], registers[index - 1], raised .. owner)
              end
            end";
        for server in &self.0 {
            server.cli(&["EVAL", script, "1", "lockkit:!r"]);
        }
    }

    /// Waits until no lock is left on any server that is up.
    async fn are_left_clean(&self) {
        let locks = |node: &RedisServer| {
            let keys = node.keys();
            keys.into_iter().filter(|key| !key.starts_with("lockkit:!"))
        };
        wait::eventually("no lock is left", async || {
            let up = self.0.iter().filter(|node| node.is_up());
            up.flat_map(locks).next().is_none()
        })
        .await;
    }
}

/// Makes a builder that is patient enough for a machine that is busy with other tests.
fn builder(urls: impl IntoIterator<Item = String>) -> ManagerBuilder {
    LockManager::quorum(urls)
        .operation_timeout(Duration::from_secs(5))
        .assume_fresh()
}

/// Waits until this many servers vote for the locks of this manager.
async fn meets(locks: &LockManager, servers: usize) {
    wait::eventually("the manager has met all servers", async || {
        let Ok(guard) = locks.lock("met").ttl(long()).acquire().await else {
            return false;
        };
        let mut votes = 0;
        for _ in 0..100 {
            votes = guard.acks().granted() as usize;
            if votes == servers {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        drop(guard);
        votes == servers
    })
    .await;
}

/// Asks until the lock is granted.
async fn at_last(locks: &LockManager, key: &str, ttl: Duration) -> LockGuard {
    let mut granted = None;
    wait::eventually("the lock is granted", async || {
        granted = locks.lock(key).ttl(ttl).acquire().await.ok();
        granted.is_some()
    })
    .await;
    granted.expect("granted")
}

/// Takes the lock `k` for a long time, on each of three servers.
async fn held_by_all(locks: &LockManager) -> LockGuard {
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    wait::eventually("all servers have granted the lock", async || {
        guard.acks().granted() == 3
    })
    .await;
    guard
}
