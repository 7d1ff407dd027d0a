//! Tests the example console as a process: its commands for the terminal. `browser::console` tests its page.

mod terminal;

use std::process::Command;

use lock_tests::{ChildProcess, RedisServer, example, wait};

/// A running console, which ends when this value is dropped.
#[derive(Debug)]
pub(crate) struct Console {
    _child: ChildProcess,
    url: String,
}

impl Console {
    /// Starts the page on a free port.
    #[track_caller]
    pub(crate) fn start(redis: &RedisServer) -> Console {
        Self::opened(command(redis, &[]))
    }

    /// Starts the page without a Redis, so that it shows locks of its own.
    #[track_caller]
    pub(crate) fn demo() -> Console {
        let mut command = Command::new(example("console"));
        command
            .env("LISTEN", "127.0.0.1:0")
            .env_remove("REDIS_URL")
            .env_remove("DATABASE_URL")
            .env_remove("NAMESPACE")
            .env_remove("HOST");
        Self::opened(command)
    }

    #[track_caller]
    fn opened(command: Command) -> Console {
        let child = ChildProcess::spawn(command);
        let opening = child.line(wait::PATIENCE, |line| line.contains("http://"));
        let opening = opening.unwrap_or_else(|| panic!("no opening line:\n{}", child.output()));
        let at = opening.find("http://").expect("its address");
        Console {
            url: opening[at..].trim().to_owned(),
            _child: child,
        }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

/// Returns the command that runs the console on this server.
fn command(redis: &RedisServer, arguments: &[&str]) -> Command {
    let mut command = Command::new(example("console"));
    command
        .env("REDIS_URL", redis.url())
        .env("LISTEN", "127.0.0.1:0")
        .env("OPERATOR", "ops@example")
        .env_remove("NAMESPACE")
        .env_remove("HOST")
        .args(arguments);
    command
}
