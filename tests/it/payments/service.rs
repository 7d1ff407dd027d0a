//! Runs the example `payments` as a process behind a proxy.

use std::path::{Path, PathBuf};
use std::process::Command;

use lock_tests::{ChildProcess, Port, Proxy, RedisServer, example, http, wait};
use serde::Deserialize;

/// One process, and the network before it.
pub(super) struct Service {
    pub(super) process: ChildProcess,
    pub(super) proxy: Proxy,
    port: Port,
    redis: String,
    folder: PathBuf,
}

impl Service {
    pub(super) fn start(redis: &RedisServer, folder: &Path) -> Service {
        let port = Port::free();
        Service {
            process: spawn(&port, &redis.url(), folder),
            proxy: Proxy::to(port.address()),
            port,
            redis: redis.url(),
            folder: folder.to_owned(),
        }
    }

    /// Starts the process again after its end, on the same port.
    pub(super) fn start_again(&mut self) {
        self.process = spawn(&self.port, &self.redis, &self.folder);
    }

    /// Asks the process to end, as a deployment does, and starts it again.
    pub(super) fn restart(&mut self) {
        self.process.terminate();
        let ended = self.process.wait(wait::PATIENCE).expect("an orderly end");
        assert!(ended.success(), "{}", self.process.output());
        self.start_again();
    }
}

fn spawn(port: &Port, redis: &str, folder: &Path) -> ChildProcess {
    let mut command = Command::new(example("payments"));
    command
        .env("PORT", port.number().to_string())
        .env("REDIS_URL", redis)
        .env("PAYMENTS_DB", folder.join("payments.sqlite"));
    let process = ChildProcess::spawn(command);
    let serves = process.line(wait::PATIENCE, |line| line.starts_with("payments: http"));
    assert!(serves.is_some(), "it does not serve:\n{}", process.output());
    process
}

#[derive(Debug, Deserialize)]
pub(super) struct Payment {
    pub(super) amount: u64,
    pub(super) process: u32,
}

/// Returns the rows of a table, as the process lists them.
pub(super) async fn payments(service: &Service, path: &str) -> Vec<Payment> {
    let customer = [("x-customer", "ada")];
    let answer = http::request(service.port.number(), "GET", path, &customer, "").await;
    let answer = answer.expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.body);
    serde_json::from_str(&answer.body).expect("a list of payments")
}
