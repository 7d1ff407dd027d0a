//! Makes managers over three independent stores.

use std::collections::HashMap;
use std::sync::LazyLock;
use std::time::Duration;

use lock_core::test_util::TestStore;
use lock_core::{LockManager, ManagerBuilder};
use lock_tests::RedisServer;

/// The stores of one test's managers.
#[derive(Debug)]
pub(super) enum Several {
    Stores(Vec<String>, Vec<TestStore>),
    /// A namespace of its own, because all tests share the servers.
    Servers(&'static [RedisServer], String),
}

impl Several {
    pub(super) fn servers(namespace: String) -> Self {
        static SERVERS: LazyLock<Vec<RedisServer>> =
            LazyLock::new(|| (0..3).map(|_| RedisServer::start()).collect());
        Several::Servers(&SERVERS, namespace)
    }

    pub(super) fn builder(&self) -> ManagerBuilder {
        let builder = match self {
            Several::Stores(urls, _) => LockManager::quorum(urls),
            Several::Servers(servers, namespace) => {
                let urls = servers.iter().map(RedisServer::url);
                LockManager::quorum(urls).namespace(namespace)
            }
        };
        let day = Duration::from_secs(24 * 60 * 60);
        builder.max_ttl(day).assume_fresh()
    }

    pub(super) fn delete(&self, key: &str) {
        let had = match self {
            Several::Stores(_, stores) => stores.iter().filter(|store| store.lose(key)).count(),
            Several::Servers(servers, namespace) => {
                let name = format!("{namespace}{key}");
                let deleted = servers.iter().map(|server| server.cli(&["DEL", &name]));
                deleted.filter(|count| count == "1").count()
            }
        };
        assert!(had >= 2, "a majority had it");
    }

    pub(super) fn overwrite(&self, key: &str) {
        match self {
            Several::Stores(_, stores) => {
                let minute = Duration::from_secs(60);
                stores.iter().for_each(|store| store.seize(key, minute));
            }
            Several::Servers(servers, namespace) => {
                let name = format!("{namespace}{key}");
                for server in *servers {
                    server.cli(&["SET", &name, "stranger", "PX", "60000"]);
                }
            }
        }
    }

    /// Gives the key to this token for a minute. Embedded stores end with their process, and have no dead holders.
    pub(super) fn has_the_holder(&self, key: &str, token: &str) -> bool {
        let Several::Servers(servers, namespace) = self else {
            return false;
        };
        let name = format!("{namespace}{key}");
        for server in *servers {
            server.cli(&["SET", &name, token, "PX", "60000"]);
        }
        true
    }

    /// Counts the keys that are taken on more than half of the stores.
    pub(super) fn taken(&self) -> usize {
        match self {
            Several::Stores(_, stores) => middle(stores, TestStore::taken),
            Several::Servers(..) => self.of_a_majority(HOLDERS),
        }
    }

    /// Returns whether every store has the one lock that is taken.
    pub(super) fn is_everywhere(&self) -> bool {
        match self {
            Several::Stores(_, stores) => stores.iter().all(|store| store.taken() == 1),
            Several::Servers(servers, _) => {
                let holders = self.listed(HOLDERS);
                holders.len() == 1 && holders.values().all(|count| *count == servers.len())
            }
        }
    }

    /// Counts the waiters that are queued on more than half of the stores.
    pub(super) fn waiting(&self) -> usize {
        match self {
            Several::Stores(_, stores) => middle(stores, TestStore::waiting),
            Several::Servers(..) => self.of_a_majority(WAITERS),
        }
    }

    /// Returns whether nothing is left on any store.
    pub(super) fn is_clean(&self) -> bool {
        match self {
            Several::Stores(_, stores) => {
                let clean = |store: &TestStore| store.taken() == 0 && store.waiting() == 0;
                stores.iter().all(clean)
            }
            Several::Servers(..) => {
                self.listed(HOLDERS).is_empty() && self.listed(WAITERS).is_empty()
            }
        }
    }

    /// Counts the servers on which each listed item exists. A lease is identified by its
    /// token.
    fn listed(&self, script: &str) -> HashMap<String, usize> {
        let mut seen = HashMap::new();
        if let Several::Servers(servers, namespace) = self {
            for server in *servers {
                let listed = server.cli(&["EVAL", script, "0", namespace]);
                for one in listed.lines().filter(|line| !line.is_empty()) {
                    *seen.entry(one.to_owned()).or_default() += 1;
                }
            }
        }
        seen
    }

    fn of_a_majority(&self, script: &str) -> usize {
        let listed = self.listed(script);
        listed.values().filter(|servers| **servers >= 2).count()
    }
}

fn middle<T>(all: &[T], count: impl Fn(&T) -> usize) -> usize {
    let mut counts: Vec<usize> = all.iter().map(count).collect();
    counts.sort_unstable();
    counts[counts.len() / 2]
}

const HOLDERS: &str = "
    local holders = {}
    for _, key in ipairs(redis.call('KEYS', ARGV[1] .. '*')) do
      if string.sub(key, 1, #ARGV[1] + 1) ~= ARGV[1] .. '!' then
        -- The ends of cooldowns and records differ between servers.
        local value = string.gsub(redis.call('GET', key), '^(cooling/.*)/%d+$', '%1')
        holders[#holders + 1] = string.match(value, '^done/%x+/%x+/') or value
      end
    end
    return holders";

const WAITERS: &str = "
    local waiters = {}
    for _, queue in ipairs(redis.call('KEYS', ARGV[1] .. '!q*')) do
      for _, waiter in ipairs(redis.call('ZRANGE', queue, 0, -1)) do waiters[#waiters + 1] = waiter end
    end
    return waiters";
