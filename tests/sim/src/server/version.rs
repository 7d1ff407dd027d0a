//! The version of Redis or Valkey that the server behaves as.

use super::numbers::Style;

/// Three numbers of a version.
pub type Numbers = (u32, u32, u32);

/// A version of Redis, or of Valkey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// Valkey names the version of Redis that it began with.
    pub redis: Numbers,
    pub valkey: Option<Numbers>,
}

impl Default for Version {
    fn default() -> Self {
        Self {
            redis: (7, 0, 15),
            valkey: None,
        }
    }
}

/// The words of Redis that Valkey has changed.
pub(super) struct Words {
    pub(super) product: &'static str,
    /// As sentences write it.
    pub(super) name: &'static str,
    pub(super) no_script: &'static str,
    pub(super) unknown_in_script: &'static str,
    pub(super) arity_in_script: &'static str,
    pub(super) not_in_script: &'static str,
    pub(super) no_argument: &'static str,
    pub(super) no_text: &'static str,
    pub(super) wait_on_replica: &'static str,
}

static REDIS: Words = Words {
    product: "redis",
    name: "Redis",
    no_script: "NOSCRIPT No matching script. Please use EVAL.",
    unknown_in_script: "ERR Unknown Redis command called from script",
    arity_in_script: "ERR Wrong number of args calling Redis command from script",
    not_in_script: "ERR This Redis command is not allowed from script",
    no_argument: "ERR Please specify at least one argument for this redis lib call",
    no_text: "ERR Lua redis lib command arguments must be strings or integers",
    wait_on_replica: "ERR WAIT cannot be used with replica instances. Please also note that since \
                      Redis 4.0 if a replica is configured to be writable (which is not the \
                      default) writes to replicas are just local and are not propagated.",
};

static VALKEY: Words = Words {
    product: "valkey",
    name: "Valkey",
    no_script: "NOSCRIPT No matching script.",
    unknown_in_script: "ERR Unknown command called from script",
    arity_in_script: "ERR Wrong number of args calling command from script",
    not_in_script: "ERR This Valkey command is not allowed from script",
    no_argument: "ERR Please specify at least one argument for this call",
    no_text: "ERR Command arguments must be strings or integers",
    wait_on_replica: "ERR WAIT cannot be used with replica instances. Please also note that if a \
                      replica is configured to be writable (which is not the default) writes to \
                      replicas are just local and are not propagated.",
};

impl Version {
    pub(super) fn words(self) -> &'static Words {
        match self.valkey {
            Some(_) => &VALKEY,
            None => &REDIS,
        }
    }

    pub(super) fn style(self) -> Style {
        if self.is_7_2() {
            Style::Shortest
        } else {
            Style::SeventeenDigits
        }
    }

    /// Returns whether the server is Redis 7.0 or later, or Valkey. No earlier one is compared with a real server.
    pub(super) fn is_7(self) -> bool {
        self.redis >= (7, 0, 0)
    }

    /// Returns whether the server is Redis 7.2 or later, or Valkey.
    pub(super) fn is_7_2(self) -> bool {
        self.redis >= (7, 2, 0)
    }

    /// Returns whether a `SET` with an end that is over deletes the key at once.
    pub(super) fn sets_nothing_that_is_over(self) -> bool {
        self.valkey >= Some((9, 0, 0))
    }

    /// Returns whether a script is told that the memory is full before it is told that it may not call a command.
    pub(super) fn checks_memory_first(self) -> bool {
        self.valkey >= Some((9, 0, 0))
    }

    /// Returns whether a client that flushes all data is told of it before the reply.
    pub(super) fn tells_of_flush_first(self) -> bool {
        self.redis >= (8, 0, 0)
    }

    /// The error of a script that a command has failed with.
    pub(super) fn script_error(self, error: &str, hash: &str, name: &str, line: usize) -> String {
        match self.is_7() {
            true => [error, &self.place(hash, name, line)].concat(),
            false => {
                format!("ERR Error running script (call to f_{hash}): @{name}:{line}: {error}")
            }
        }
    }

    /// The end of the error of a script.
    fn place(self, hash: &str, name: &str, line: usize) -> String {
        match self.valkey {
            Some(_) => format!(" script: on @{name}:{line}."),
            None => format!(" script: {hash}, on @{name}:{line}."),
        }
    }

    /// The version that `HELLO` names.
    pub(super) fn of_product(self) -> String {
        text(self.valkey.unwrap_or(self.redis))
    }

    /// The lines of `INFO`.
    pub(super) fn report(self) -> String {
        let redis = format!("redis_version:{}\r\n", text(self.redis));
        let valkey = self.valkey;
        let valkey = valkey.map(|numbers| format!("valkey_version:{}\r\n", text(numbers)));
        redis + &valkey.unwrap_or_default()
    }
}

fn text((major, minor, patch): Numbers) -> String {
    format!("{major}.{minor}.{patch}")
}
