//! Reads and changes the table of locks without the managers.

use std::sync::LazyLock;
use std::time::Duration;

use lock_core::{LockKey, LockManager, Renew};
use lock_tests::SqlServer;
use tokio::runtime::{Builder, Runtime};

/// The clock of the server in microseconds, as the rows have it.
const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

/// Runs a future of a thread that may be inside a runtime, on a runtime that no test ends.
pub(crate) fn block_on<T: Send>(future: impl Future<Output = T> + Send) -> T {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build();
        runtime.expect("a runtime")
    });
    std::thread::scope(|scope| {
        let work = scope.spawn(|| RUNTIME.block_on(future));
        work.join().expect("no panic")
    })
}

/// Returns the key of a row as an expression of SQL.
pub(crate) fn row(namespace: &str, key: &str) -> String {
    let bytes = format!("{namespace}{key}").into_bytes();
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("'\\x{digits}'::bytea")
}

/// The locks of one namespace, as a test sees them.
#[derive(Debug)]
pub(crate) struct Table<'a> {
    server: &'a SqlServer,
    namespace: String,
    inspector: LockManager,
}

impl<'a> Table<'a> {
    pub(crate) fn new(server: &'a SqlServer, namespace: &str) -> Table<'a> {
        Table {
            server,
            namespace: namespace.to_owned(),
            inspector: block_on(connect(server, namespace)),
        }
    }

    pub(crate) fn server(&self) -> &'a SqlServer {
        self.server
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Deletes the row of a key. Returns whether it was there.
    pub(crate) fn delete(&self, key: &str) -> bool {
        let row = row(&self.namespace, key);
        let deleted = format!("DELETE FROM lockkit.cell WHERE key = {row} RETURNING 1");
        !self.server.sql(&deleted).is_empty()
    }

    /// Gives the key for a minute to a process that has ended.
    pub(crate) fn has_a_dead_holder(&self, key: &str) {
        let document = dead_holder(self.server);
        let row = row(&self.namespace, key);
        self.server.sql(&format!(
            "INSERT INTO lockkit.cell (key, rev, at, ends, fence, doc) \
             VALUES ({row}, nextval('lockkit.revision'), {NOW}, {NOW} + 60000000, NULL, '{document}') \
             ON CONFLICT (key) DO UPDATE SET rev = excluded.rev, at = excluded.at, ends = excluded.ends, \
             fence = excluded.fence, doc = excluded.doc"
        ));
    }

    /// Counts the keys that are taken.
    pub(crate) fn taken(&self) -> usize {
        self.taken_keys().len()
    }

    pub(crate) fn taken_keys(&self) -> Vec<String> {
        block_on(async {
            let mut locks = self.inspector.operator("tests").list("*");
            let mut keys = Vec::new();
            while let Some(page) = locks.next_page().await.expect("a page") {
                keys.extend(page.iter().map(|lock| lock.key().to_owned()));
            }
            keys
        })
    }

    /// Counts the waiters of all keys.
    pub(crate) fn waiting(&self) -> usize {
        let from = self.namespace.len() + 1;
        let rows = self.server.sql(&format!(
            "SELECT encode(substring(key FROM {from}), 'hex') FROM lockkit.cell \
             WHERE substring(key FOR {}) = '{}'::bytea",
            from - 1,
            self.namespace
        ));
        block_on(async {
            let mut count = 0;
            // The rows of the kit itself begin so.
            let keys = rows.concat().into_iter().map(|digits| text(&digits));
            for key in keys.filter(|key| !key.starts_with('!')) {
                let operator = self.inspector.operator("tests");
                let seen = operator.inspect(LockKey::exact(key)).await;
                count += seen.expect("an inspection").waiter_count();
            }
            count
        })
    }

    /// Returns when the row of a key ends, in microseconds of the server's clock, unless it has ended.
    ///
    /// A renewal raises this number. The time that is left would not show each renewal: it also depends on the moment of the
    /// question.
    pub(crate) fn ends(&self, key: &str) -> Option<i64> {
        let row = row(&self.namespace, key);
        let found = format!("SELECT ends FROM lockkit.cell WHERE key = {row} AND ends > {NOW}");
        let ends = self.server.sql(&found).concat();
        ends.first().map(|ends| ends.parse().expect("a number"))
    }

    /// Waits until this many waiters are queued.
    pub(crate) async fn queued(&self, count: usize) {
        lock_tests::wait::eventually("the waiters are queued", async || self.waiting() == count)
            .await;
    }

    /// Waits until no key is taken and no waiter is queued.
    pub(crate) async fn is_clean(&self) {
        lock_tests::wait::eventually("nothing is left", async || {
            self.taken() == 0 && self.waiting() == 0
        })
        .await;
    }
}

/// Reads a key from the digits of its bytes.
fn text(digits: &str) -> String {
    let bytes = (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16));
    let bytes: Result<Vec<u8>, _> = bytes.collect();
    String::from_utf8(bytes.expect("digits")).expect("a key")
}

async fn connect(server: &SqlServer, namespace: &str) -> LockManager {
    let builder = LockManager::builder(server.url()).namespace(namespace);
    let builder = builder.operation_timeout(Duration::from_secs(5));
    builder.connect().await.expect("a manager")
}

/// Returns a document that gives its key for a minute to a process that has ended.
fn dead_holder(server: &SqlServer) -> String {
    const NAMESPACE: &str = "dead:";
    static DOCUMENT: LazyLock<std::sync::Mutex<Option<String>>> = LazyLock::new(Default::default);
    let mut document = DOCUMENT.lock().expect("no panic");
    let make = || {
        let manager = block_on(connect(server, NAMESPACE));
        let guard = block_on(async {
            let minute = Duration::from_secs(60);
            let request = manager.lock("k").ttl(minute).renew(Renew::Off);
            request.acquire().await.expect("free")
        });
        let row = row(NAMESPACE, "k");
        let document = server.value(&format!("SELECT doc FROM lockkit.cell WHERE key = {row}"));
        block_on(async {
            guard.release().await.expect("held");
            manager.drain(Duration::from_secs(5)).await;
        });
        document
    };
    document.get_or_insert_with(make).clone()
}
