//! Managers on one store, and what happens to the store behind their backs.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lock_core::test_util::TestStore;
use lock_core::{ErrorKind, LockManager, LockRequest};
use lock_tests::{RedisServer, wait};

/// Long enough never to run out in a test that is not about time.
pub(crate) fn long() -> Duration {
    Duration::from_secs(60)
}

/// Renewed every 400 ms: short enough to wait for, long enough for a busy machine.
pub(crate) fn short() -> Duration {
    Duration::from_millis(1200)
}

/// The kind of what went wrong; panics if nothing did.
#[track_caller]
pub(crate) fn kind<T>(result: Result<T, lock_core::Error>) -> ErrorKind {
    match result {
        Ok(_) => panic!("an error was expected"),
        Err(error) => error.kind(),
    }
}

/// One store of a test's own.
#[derive(Debug)]
pub(crate) struct Fixture {
    store: Store,
}

#[derive(Debug)]
enum Store {
    Memory { url: String, commands: TestStore },
    Redis(Box<RedisServer>),
}

impl Fixture {
    pub(crate) fn memory() -> Fixture {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let url = format!(
            "memory:conformance-{}",
            LAST.fetch_add(1, Ordering::Relaxed)
        );
        let first = LockManager::connect_lazy(&url).expect("a store");
        let commands = first.test_store().expect("an embedded store");
        Fixture {
            store: Store::Memory { url, commands },
        }
    }

    pub(crate) fn redis() -> Fixture {
        Fixture {
            store: Store::Redis(Box::new(RedisServer::start())),
        }
    }

    /// One more manager on the store.
    pub(crate) async fn manager(&self) -> LockManager {
        let url = match &self.store {
            Store::Memory { url, .. } => url.clone(),
            Store::Redis(server) => server.url(),
        };
        // A machine that is busy with the other tests is not a store that does not answer.
        let builder = LockManager::builder(&url).operation_timeout(Duration::from_secs(5));
        builder.connect().await.expect("a manager")
    }

    /// A lock that nothing is to be seen of but its holding.
    pub(crate) async fn lock(&self, key: &str) -> LockRequest {
        self.manager().await.lock(key).ttl(long())
    }

    /// The key disappears, as by a DEL from outside.
    pub(crate) fn delete(&self, key: &str) {
        match &self.store {
            Store::Memory { commands, .. } => assert!(commands.lose(key), "it was there"),
            Store::Redis(server) => assert_eq!(server.cli(&["DEL", &name(key)]), "1"),
        }
    }

    /// A stranger has the key from now on, for a minute.
    pub(crate) fn overwrite(&self, key: &str) {
        match &self.store {
            Store::Memory { commands, .. } => commands.seize(key, Duration::from_secs(60)),
            Store::Redis(server) => {
                server.cli(&["SET", &name(key), "stranger", "PX", "60000"]);
            }
        }
    }

    /// How many keys are taken, as the store sees it.
    pub(crate) fn taken(&self) -> usize {
        match &self.store {
            Store::Memory { commands, .. } => commands.taken(),
            Store::Redis(server) => count(server, TAKEN),
        }
    }

    /// How many stand in the store's queues.
    pub(crate) fn waiting(&self) -> usize {
        match &self.store {
            Store::Memory { commands, .. } => commands.waiting(),
            Store::Redis(server) => count(server, WAITING),
        }
    }

    /// Nothing is taken, nobody waits, and the managers have nothing left to do.
    #[track_caller]
    pub(crate) fn is_left_clean(&self) {
        wait::until("no key is taken and nobody is queued", || {
            self.taken() == 0 && self.waiting() == 0
        });
    }
}

const TAKEN: &str = "
    local taken = 0
    for _, key in ipairs(redis.call('KEYS', 'lock:*')) do
      if string.sub(key, 1, 6) ~= 'lock:!' then taken = taken + 1 end
    end
    return taken";

const WAITING: &str = "
    local waiting = 0
    for _, queue in ipairs(redis.call('KEYS', 'lock:!q:*')) do
      waiting = waiting + redis.call('ZCARD', queue)
    end
    return waiting";

/// Counted by the server: a key may hold anything, line ends too.
fn count(server: &RedisServer, script: &str) -> usize {
    let count = server.cli(&["EVAL", script, "0"]);
    count.parse().expect("a number")
}

fn name(key: &str) -> String {
    format!("lock:{key}")
}
