//! Runs the example shop as a process, as `cargo run --example shop` does.

use std::process::Command;

use crate::{ChildProcess, example, wait};

/// Options for the start of the shop; [`ShopProcess::options`] makes them.
#[derive(Debug, Clone, Default)]
pub struct ShopOptions {
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
}

impl ShopOptions {
    /// Adds an argument, for example `--pair`.
    #[must_use]
    pub fn arg(mut self, argument: &str) -> Self {
        self.arguments.push(argument.to_owned());
        self
    }

    /// Sets a variable in the shop's environment. `PORT` is 0 unless set here, and `REDIS_URL` is
    /// unset.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Starts the shop and does not wait for it.
    ///
    /// A test may expect that it fails to start.
    ///
    /// # Panics
    ///
    /// When the example cannot be built.
    #[track_caller]
    pub fn spawn(self) -> ChildProcess {
        let mut command = Command::new(example("shop"));
        command
            .env_remove("REDIS_URL")
            .env_remove("DATABASE_URL")
            .env_remove("SHOP_DB")
            .env("PORT", "0")
            // No test but those of the nights sees one.
            .env("SHOP_DAY", "100000000")
            .args(&self.arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)));
        ChildProcess::spawn(command)
    }

    /// Starts the shop and waits for its opening line.
    ///
    /// # Panics
    ///
    /// When the example cannot be built, ends at once or does not print its address.
    #[track_caller]
    pub fn start(self) -> ShopProcess {
        let child = self.spawn();
        let opening = child.line(wait::PATIENCE, |line| !ports_in(line).is_empty());
        let opening = opening.unwrap_or_else(|| panic!("no opening line:\n{}", child.output()));
        ShopProcess {
            ports: ports_in(&opening),
            opening,
            child,
        }
    }
}

/// A running shop, which ends with its own children when this value is dropped.
#[derive(Debug)]
pub struct ShopProcess {
    child: ChildProcess,
    opening: String,
    ports: Vec<u16>,
}

impl ShopProcess {
    /// Starts a shop on its embedded store; panics as [`ShopOptions::start`] does.
    #[track_caller]
    pub fn start() -> ShopProcess {
        ShopProcess::options().start()
    }

    /// Returns options for a shop with arguments or an environment.
    pub fn options() -> ShopOptions {
        ShopOptions::default()
    }

    /// Returns the opening line of the shop.
    pub fn opening(&self) -> &str {
        &self.opening
    }

    /// Returns the port that the shop listens on; the first, if its opening line names several.
    pub fn port(&self) -> u16 {
        self.ports[0]
    }

    /// Returns all ports that the opening line names.
    pub fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// Returns `http://127.0.0.1:<port>`.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port())
    }

    /// Returns the process, for tests that kill, end, freeze or read it.
    pub fn process(&mut self) -> &mut ChildProcess {
        &mut self.child
    }
}

/// Returns the numbers after `http://<host>:` in a line.
fn ports_in(line: &str) -> Vec<u16> {
    let port = |after: &str| {
        let authority = after.split(['/', ' ']).next()?;
        let digits = authority.rsplit_once(':')?.1;
        let end = digits
            .find(|it: char| !it.is_ascii_digit())
            .unwrap_or(digits.len());
        digits[..end].parse().ok()
    };
    line.split("http://").skip(1).filter_map(port).collect()
}
