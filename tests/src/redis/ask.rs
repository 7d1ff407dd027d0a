//! Asks a server directly, on a connection beside the client under test.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use crate::resp::{Connection, Reply};
use crate::{RedisServer, wait};

/// The longest time that an answer may take.
const ANSWER: Duration = Duration::from_secs(10);

impl RedisServer {
    /// Runs one command on a connection of its own.
    ///
    /// Returns the answer as redis-cli prints it to a pipe.
    ///
    /// # Panics
    ///
    /// When there is no answer, or the answer is an error.
    #[track_caller]
    pub fn cli(&self, arguments: &[&str]) -> String {
        self.try_cli(arguments)
            .unwrap_or_else(|error| panic!("{}: {error}", arguments[0]))
    }

    /// Runs one command as [`RedisServer::cli`] does, for a command that the server may refuse.
    ///
    /// # Errors
    ///
    /// Returns the server's error line.
    ///
    /// # Panics
    ///
    /// When there is no answer.
    #[track_caller]
    pub fn try_cli(&self, arguments: &[&str]) -> Reply {
        self.ask(arguments)
            .unwrap_or_else(|error| panic!("{} is not answered: {error}", arguments[0]))
    }

    /// Waits until the server answers, also if it closes connections meanwhile.
    ///
    /// # Panics
    ///
    /// When the server does not answer.
    #[track_caller]
    pub fn wait_for_answer(&self) {
        wait::until("the server answers", || self.ask(&["PING"]).is_ok());
    }

    /// Runs a command that changes nothing, and repeats it once if the connection closes on the way.
    ///
    /// Sentinels close all connections of a server when they reconfigure it.
    #[track_caller]
    pub(super) fn read(&self, arguments: &[&str]) -> String {
        let answer = self.ask(arguments).or_else(|_| self.ask(arguments));
        let answer =
            answer.unwrap_or_else(|error| panic!("{} is not answered: {error}", arguments[0]));
        answer.unwrap_or_else(|error| panic!("{}: {error}", arguments[0]))
    }

    fn ask(&self, arguments: &[&str]) -> io::Result<Reply> {
        self.connect()?.command(arguments)
    }

    /// Returns the value of a string key.
    #[track_caller]
    pub fn get(&self, key: &str) -> Option<String> {
        if self.cli(&["EXISTS", key]) == "0" {
            return None;
        }
        Some(self.cli(&["GET", key])).filter(|value| value != "(nil)")
    }

    /// Returns all keys, sorted, without the identities that each manager leaves when it connects.
    #[track_caller]
    pub fn keys(&self) -> Vec<String> {
        let mut keys = self.all_keys();
        keys.retain(|key| !key.contains("!h:"));
        keys
    }

    /// Returns all keys, sorted.
    #[track_caller]
    pub fn all_keys(&self) -> Vec<String> {
        let mut keys: Vec<_> = self
            .cli(&["KEYS", "*"])
            .lines()
            .map(str::to_owned)
            .collect();
        keys.sort();
        keys
    }

    /// Returns how long `key` will live; `None` when it does not exist or never expires.
    #[track_caller]
    pub fn time_to_live(&self, key: &str) -> Option<Duration> {
        self.cli(&["PTTL", key])
            .parse()
            .ok()
            .map(Duration::from_millis)
    }

    /// Returns a section of INFO, by field.
    #[track_caller]
    pub fn info(&self, section: &str) -> BTreeMap<String, String> {
        let text = self.read(&["INFO", section]);
        let fields = text
            .lines()
            .filter_map(|line| line.trim_end().split_once(':'));
        fields
            .map(|(field, value)| (field.to_owned(), value.to_owned()))
            .collect()
    }

    /// Returns how often each command was called since the start or [`RedisServer::reset_stats`].
    ///
    /// The names are in lower case (`"set"`, `"config|get"`). The harness itself calls `info` to ask.
    ///
    /// # Panics
    ///
    /// When the server's answer does not have the known form.
    #[track_caller]
    pub fn commandstats(&self) -> BTreeMap<String, u64> {
        let calls = |value: &str| {
            value
                .strip_prefix("calls=")?
                .split(',')
                .next()?
                .parse()
                .ok()
        };
        let entry = |(field, value): (String, String)| {
            let command = field.strip_prefix("cmdstat_")?.to_owned();
            Some((command, calls(&value)?))
        };
        let stats = self.info("commandstats");
        stats
            .into_iter()
            .map(|it| entry(it).expect("cmdstat_<command>:calls=<n>,…"))
            .collect()
    }

    /// Sets the counts of [`RedisServer::commandstats`] to zero.
    #[track_caller]
    pub fn reset_stats(&self) {
        self.cli(&["CONFIG", "RESETSTAT"]);
    }

    pub(super) fn answers(&self) -> bool {
        let ping = self
            .connect()
            .and_then(|mut connection| connection.command(&["PING"]));
        matches!(ping, Ok(Ok(pong)) if pong == "PONG")
    }

    fn connect(&self) -> io::Result<Connection> {
        let mut connection = Connection::open(self.address(), ANSWER)?;
        if let Some(password) = &self.options.password {
            // The answer to the command itself shows a refusal.
            let _ = connection.command(&["AUTH", password])?;
        }
        Ok(connection)
    }
}
