//! Rights: the commands, keys and channels that the user may not use.

use super::commands::{ALWAYS, CHANNEL, CHANNELS, Command};
use super::patterns::matches;
use super::resp::Failure;
use super::{Bytes, Server, Version};

/// What a user may not use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Denied {
    Command,
    Key,
    Channel,
}

impl Denied {
    /// The error of a command that a client has sent.
    pub(super) fn at_top(self, command: &Command, version: Version) -> Failure {
        let name = command.name.to_lowercase();
        let text = match (self, version.is_7_2()) {
            (Denied::Command, false) => {
                format!("NOPERM this user has no permissions to run the '{name}' command")
            }
            (Denied::Key, false) => {
                "NOPERM this user has no permissions to access one of the keys \
                 used as arguments"
                    .to_owned()
            }
            (Denied::Channel, false) => "NOPERM this user has no permissions to access one of the \
                 channels used as arguments"
                .to_owned(),
            (_, true) => ["NOPERM ", &self.in_later_words(&name)].concat(),
        };
        text.into()
    }

    /// The error of a command that a script calls.
    pub(super) fn in_script(self, command: &Command, version: Version) -> Failure {
        let name = command.name.to_lowercase();
        let text = match (self, version.is_7_2()) {
            (Denied::Command, false) => "run this command or subcommand",
            (Denied::Key, false) => {
                "access at least one of the keys mentioned in the command arguments"
            }
            (Denied::Channel, false) => "publish to the channel mentioned in the command",
            (_, true) => {
                let why = self.in_later_words(&name);
                return format!("ERR ACL failure in script: {why}").into();
            }
        };
        format!("ERR The user executing the script can't {text}").into()
    }

    fn in_later_words(self, name: &str) -> String {
        match self {
            Denied::Command => {
                format!("User default has no permissions to run the '{name}' command")
            }
            Denied::Key => "No permissions to access a key".to_owned(),
            Denied::Channel => "No permissions to access a channel".to_owned(),
        }
    }
}

impl Server {
    /// Returns what the user may not use of a command.
    pub(super) fn denied(&self, command: &Command, words: &[&[u8]]) -> Option<Denied> {
        if !self.denied.is_empty() && !command.is(ALWAYS) {
            let container = command.name.split('|').next().unwrap_or_default();
            if self.denied.contains(command.name) || self.denied.contains(container) {
                return Some(Denied::Command);
            }
        }
        if forbids(&self.allowed_keys, command.keys(words)) {
            return Some(Denied::Key);
        }
        let channels = if command.is(CHANNEL) {
            &words[1..2]
        } else if command.is(CHANNELS) {
            &words[1..]
        } else {
            &[]
        };
        forbids(&self.allowed_channels, channels).then_some(Denied::Channel)
    }
}

fn forbids(allowed: &Option<Vec<Bytes>>, names: &[&[u8]]) -> bool {
    let Some(patterns) = allowed else {
        return false;
    };
    let is_allowed = |name: &&[u8]| patterns.iter().any(|pattern| matches(pattern, name));
    !names.iter().all(is_allowed)
}
