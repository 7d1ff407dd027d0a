//! The clients, and how each is started.

use std::env;
use std::path::PathBuf;
use std::process::Command;

/// The program that runs a client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Language {
    Python,
    Node,
    /// The client's commands and scripts, sent by this program.
    Script,
}

/// A client of another library.
#[derive(Debug)]
pub(crate) struct Client {
    /// The name of its package.
    pub(crate) name: &'static str,
    /// Its name in the table.
    pub(crate) shown: &'static str,
    pub(crate) language: Language,
    /// Whether the client can lock on a majority of servers.
    pub(crate) several: bool,
    /// The prefix that the client puts before each key.
    pub(crate) namespace: &'static str,
    /// The differences that its users must know.
    pub(crate) remark: &'static str,
}

pub(crate) const CLIENTS: [Client; 9] = [
    Client {
        name: "redis",
        shown: "redis-py (`Redis.lock`)",
        language: Language::Python,
        several: false,
        namespace: "",
        remark: "without `timeout=`, its locks never expire",
    },
    Client {
        name: "redlock-py",
        shown: "redlock-py",
        language: Language::Python,
        several: true,
        namespace: "",
        remark: "gives up after three tries by default; `unlock` does not say that the lock was lost",
    },
    Client {
        name: "python-redis-lock",
        shown: "python-redis-lock",
        language: Language::Python,
        several: false,
        namespace: "lock:",
        remark: "without `expire`, its locks never expire, and it waits for ever; a wait fails if it is longer than the \
                 `socket_timeout` of redis-py, which is 5 s by default in version 8.1; `reset_all()` deletes `lock:*`, \
                 and so the locks and queues of this kit; never call it",
    },
    Client {
        name: "pottery",
        shown: "pottery (`Redlock`)",
        language: Language::Python,
        several: true,
        namespace: "redlock:",
        remark: "extends a lock three times by default (`num_extensions`)",
    },
    Client {
        name: "redlock-4",
        shown: "redlock of npm",
        language: Language::Node,
        several: true,
        namespace: "",
        remark: "gives up after ten retries by default",
    },
    Client {
        name: "redlock-5",
        shown: "redlock of npm",
        language: Language::Node,
        several: true,
        namespace: "",
        remark: "gives up after ten retries by default; only `using` renews; over several servers it keeps the votes of a \
                 minority between its tries, and they keep all clients out, itself too, until its ttl is over: set \
                 `retryCount: 0` and ask again",
    },
    Client {
        name: "redis-semaphore",
        shown: "redis-semaphore of npm (`Mutex`)",
        language: Language::Node,
        several: false,
        namespace: "mutex:",
        remark: "its semaphores are sorted sets, which this kit does not know",
    },
    Client {
        name: "go-zero",
        shown: "go-zero (`RedisLock`), by its scripts",
        language: Language::Script,
        several: false,
        namespace: "",
        remark: "without `SetExpire`, a lock lives for 500 ms",
    },
    Client {
        name: "redsync",
        shown: "redsync, by its scripts",
        language: Language::Script,
        several: true,
        namespace: "",
        remark: "`WithSetNXOnExtend` takes a key again that was lost in the meantime",
    },
];

impl Client {
    /// Returns whether `tests/interop/run` has installed the client.
    pub(crate) fn is_installed(&self) -> bool {
        match self.language {
            Language::Python => env::var_os("INTEROP_PYTHON").is_some(),
            Language::Node => env::var_os("INTEROP_NODE").is_some(),
            Language::Script => true,
        }
    }

    /// Returns whether the client has a call that waits for a lock.
    pub(crate) fn waits(&self) -> bool {
        self.name != "go-zero"
    }

    /// Returns the command that runs the client for one lock.
    pub(crate) fn command(&self, ports: &str, lock: &str) -> Command {
        let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/interop"));
        let mut command = match self.language {
            Language::Python => {
                let python = env::var_os("INTEROP_PYTHON").expect("an installed client");
                let mut command = Command::new(python);
                command.arg(folder.join("worker.py"));
                command
            }
            Language::Node => {
                let mut command = Command::new("node");
                command.arg(folder.join("worker.js"));
                command
            }
            Language::Script => {
                let mut command = Command::new(env::current_exe().expect("this program"));
                command.arg("script");
                command
            }
        };
        command.args([self.name, ports, lock]);
        command
    }
}
