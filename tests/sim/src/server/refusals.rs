//! Refusals of commands by the state of the server: where Redis 7 checks them, also within scripts.

use std::borrow::Cow;

use super::Server;
use super::commands::{Command, GROWS, LOADING, WRITE};
use super::resp::Failure;

/// Why a server refuses commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// The memory is full.
    OutOfMemory,
    /// Too few replicas are connected.
    NoReplicas,
    /// The server is a replica.
    ReadOnly,
    /// The server cannot write its snapshots.
    Misconfigured,
    /// The server loads its data.
    Loading,
}

impl Refusal {
    /// The error, with the name of the product.
    fn text(self, name: &str) -> Failure {
        Cow::Borrowed(match self {
            Refusal::OutOfMemory => "OOM command not allowed when used memory > 'maxmemory'.",
            Refusal::NoReplicas => "NOREPLICAS Not enough good replicas to write.",
            Refusal::ReadOnly => "READONLY You can't write against a read only replica.",
            Refusal::Misconfigured => {
                return format!(
                    "MISCONF {name} is configured to save RDB snapshots, but it's currently unable \
                     to persist to disk. Commands that may modify the data set are disabled, \
                     because this instance is configured to report errors during writes if RDB \
                     snapshotting fails (stop-writes-on-bgsave-error option). Please check the \
                     {name} logs for details about the RDB error."
                )
                .into();
            }
            Refusal::Loading => {
                return format!("LOADING {name} is loading the dataset in memory").into();
            }
        })
    }
}

impl Server {
    /// Returns why the server refuses a command of a client.
    pub(super) fn refused(&self, command: &Command) -> Option<Failure> {
        let refusal = self.standing_refusal()?;
        let is_refused = match refusal {
            Refusal::OutOfMemory => command.is(GROWS),
            Refusal::NoReplicas | Refusal::ReadOnly => command.is(WRITE),
            Refusal::Misconfigured => command.is(WRITE) || command.name == "PING",
            Refusal::Loading => !command.is(LOADING),
        };
        is_refused.then(|| refusal.text(self.version.words().name))
    }

    /// Returns why the server refuses a command of a script. A script that has written once is not refused any more.
    pub(super) fn refused_in_script(
        &self,
        command: &Command,
        has_written: bool,
    ) -> Option<Failure> {
        let refusal = self.standing_refusal()?;
        let is_refused = match refusal {
            Refusal::OutOfMemory => command.is(GROWS),
            Refusal::NoReplicas | Refusal::ReadOnly | Refusal::Misconfigured => command.is(WRITE),
            // The script itself was refused.
            Refusal::Loading => false,
        };
        (is_refused && !has_written).then(|| refusal.text(self.version.words().name))
    }

    fn standing_refusal(&self) -> Option<Refusal> {
        self.refusal
            .or_else(|| self.is_replica().then_some(Refusal::ReadOnly))
    }
}
