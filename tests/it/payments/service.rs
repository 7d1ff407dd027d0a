//! Runs the example `payments` as a process.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::process::Command;

use lock_tests::http::Response;
use lock_tests::{ChildProcess, Port, example, http, wait};
use serde::Deserialize;

/// One process of the service, which can be started again on the same port.
pub(crate) struct Service {
    pub(crate) process: ChildProcess,
    port: Port,
    program: &'static str,
    settings: BTreeMap<&'static str, String>,
}

/// A payment, as an answer has it.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub(crate) struct Payment {
    pub(crate) id: i64,
    pub(crate) amount: u64,
    pub(crate) process: u32,
}

impl Payment {
    pub(crate) fn new(id: i64, amount: i64, process: i64) -> Payment {
        Payment {
            id,
            amount: amount.try_into().expect("an amount"),
            process: process.try_into().expect("a process"),
        }
    }
}

impl Service {
    /// Starts an example with these variables.
    pub(crate) fn start(
        program: &'static str,
        settings: impl IntoIterator<Item = (&'static str, String)>,
    ) -> Service {
        let (port, settings) = (Port::free(), settings.into_iter().collect());
        Service {
            process: spawn(program, &port, &settings),
            port,
            program,
            settings,
        }
    }

    /// Kills the process and starts it again.
    pub(crate) fn kill(&mut self) {
        self.process.kill();
        self.start_again();
    }

    /// Asks the process to end, as a deployment does, and starts it again.
    pub(crate) fn restart(&mut self) {
        self.process.terminate();
        let ended = self.process.wait(wait::PATIENCE).expect("an orderly end");
        assert!(ended.success(), "{}", self.process.output());
        self.start_again();
    }

    fn start_again(&mut self) {
        self.process = spawn(self.program, &self.port, &self.settings);
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Returns the payments of a route.
    pub(crate) async fn payments(&self, path: &str) -> Vec<Payment> {
        let customer = [("x-customer", "ada")];
        let answer = http::request(self.port.number(), "GET", path, &customer, "").await;
        let answer = answer.expect("an answer");
        assert_eq!(answer.status, 200, "{}", answer.body);
        serde_json::from_str(&answer.body).expect("a list of payments")
    }
}

/// Sends the request for a payment, whose amount is also its idempotency key.
pub(crate) async fn pay(address: SocketAddr, path: &str, amount: u64) -> io::Result<Response> {
    let key = format!("op-{amount}");
    let headers = [("x-customer", "ada"), ("idempotency-key", &key)];
    let order = format!("{{\"amount\":{amount}}}");
    http::post(address.port(), path, &headers, &order).await
}

fn spawn(program: &str, port: &Port, settings: &BTreeMap<&'static str, String>) -> ChildProcess {
    let mut command = Command::new(example(program));
    command
        .env_remove("DATABASE_URL")
        .env_remove("PAYMENTS_DB")
        .env_remove("REDIS_URL")
        .envs(settings)
        .env("PORT", port.number().to_string());
    let process = ChildProcess::spawn(command);
    let serves = process.line(wait::PATIENCE, |line| line.starts_with("payments: http"));
    assert!(serves.is_some(), "it does not serve:\n{}", process.output());
    process
}
