//! The Lua scripts: each by its hash, and whole where the server does not know it yet.
//!
//! The scripts of an acquire and of a release begin with a short part for a key without waiters. It spares the
//! server the making of the functions of the rest.

use std::io::Write;
use std::sync::LazyLock;

use redis::{Arg, Cmd, Pipeline, RedisWrite, Script, Value};

use super::connection::Connection;
use super::send_error::SendError;
use crate::store::Failure;

macro_rules! lua {
    ($($part:literal),+) => {
        LazyLock::new(|| Lua::new(concat!($(include_str!(concat!("../../../scripts/", $part))),+)))
    };
}

macro_rules! script {
    ($name:ident, $($part:literal),+) => {
        pub(in crate::store::redis) static $name: LazyLock<Lua> = lua!($($part),+);
    };
}

/// Makes each script twice, because the part between the two lists differs between one server and a node of a cluster.
macro_rules! of_a_lock {
    ($($name:ident: [$($before:literal),*] [$($behind:literal),+],)+) => {
        /// The scripts about one lock and its companion keys.
        pub(in crate::store::redis) struct Scripts {
            $(pub(in crate::store::redis) $name: LazyLock<Lua>,)+
        }

        pub(in crate::store::redis) static ON_ONE_SERVER: Scripts = Scripts {
            $($name: lua!($($before,)* "one_server.lua", $($behind),+),)+
        };

        pub(in crate::store::redis) static ON_A_NODE: Scripts = Scripts {
            $($name: lua!($($before,)* "cluster.lua", $($behind),+),)+
        };
    };
}

of_a_lock! {
    acquire: ["stand_in_line.lua", "acquire_first.lua"] ["common.lua", "acquire.lua"],
    release: [] ["release_first.lua", "common.lua", "release.lua"],
    cool: [] ["common.lua", "cool.lua"],
    remember: [] ["common.lua", "tell_all.lua", "remember.lua"],
    vacate: [] ["common.lua", "vacate.lua"],
    share: [] ["share_first.lua", "common.lua", "stand_in_line.lua", "share_set.lua", "share.lua"],
    force: [] ["common.lua", "force.lua"],
}

script!(PROBE, "probe.lua");
script!(EXTEND, "extend.lua", "extend_reply.lua");
// Where the server reports changes of the keys.
script!(
    EXTEND_AND_WATCH,
    "extend.lua",
    "extend_watch.lua",
    "extend_reply.lua"
);
script!(ALL, "all.lua");
script!(EXTEND_SHARES, "extend_shares.lua");
script!(BATCH, "one_server.lua", "common.lua", "batch.lua");
script!(JOIN, "register_node.lua");
script!(
    PROPOSE,
    "propose_first.lua",
    "one_server.lua",
    "common.lua",
    "stand_in_line.lua",
    "node_vote.lua",
    "propose.lua"
);
script!(
    WITHDRAW,
    "withdraw_first.lua",
    "one_server.lua",
    "common.lua",
    "withdraw.lua"
);
script!(SET_ASIDE, "set_aside.lua");
script!(
    PROPOSE_SHARE,
    "share_value.lua",
    "one_server.lua",
    "common.lua",
    "stand_in_line.lua",
    "share_set.lua",
    "node_vote.lua",
    "propose_share.lua"
);
script!(
    WITHDRAW_SHARE,
    "share_value.lua",
    "one_server.lua",
    "common.lua",
    "share_set.lua",
    "withdraw_share.lua"
);

script!(FORGET, "forget.lua");
script!(CLOCK, "clock.lua");
script!(SWAP, "swap.lua");

// For operators.
script!(INSPECT, "inspect.lua");

// About one key each, for a lock whose slot is moving.
script!(FREE, "delete_owned.lua");
script!(EXTEND_SHARE_PART, "extend_share_part.lua");
script!(REMOVE_SHARE, "remove_share.lua");
script!(FREE_SHARED, "free_shared.lua");
script!(RAISE, "raise.lua");
script!(TELL, "cluster.lua", "common.lua", "notify.lua");

pub(in crate::store::redis) struct Lua {
    source: &'static str,
    hash: String,
}

impl Lua {
    fn new(source: &'static str) -> Self {
        let hash = Script::new(source).get_hash().to_owned();
        Self { source, hash }
    }

    /// The command that runs the script on a server that knows it. The caller adds the `keys` keys and the
    /// arguments, which together have so many bytes.
    pub(in crate::store::redis) fn command(
        &self,
        keys: usize,
        arguments: usize,
        bytes: usize,
    ) -> Cmd {
        let bytes = "EVALSHA".len() + self.hash.len() + 4 + bytes;
        let mut command = Cmd::with_capacity(3 + keys + arguments, bytes);
        command.arg("EVALSHA").arg(&self.hash).arg(keys);
        command
    }

    /// The command that runs the script on any server.
    pub(in crate::store::redis) fn whole(&self, keys: &[&str], arguments: &[&str]) -> Cmd {
        let mut command = redis::cmd("EVAL");
        command.arg(self.source).arg(keys.len());
        for text in keys.iter().chain(arguments) {
            command.arg(text);
        }
        command
    }

    pub(in crate::store::redis) async fn run(
        &self,
        on: &Connection,
        keys: &[&str],
        arguments: &[&str],
    ) -> Result<Value, SendError> {
        let texts = keys.iter().chain(arguments);
        let bytes = texts.clone().map(|text| text.len()).sum();
        let mut command = self.command(keys.len(), arguments.len(), bytes);
        for text in texts {
            command.arg(text);
        }
        self.ask(on, &command).await
    }

    /// Sends a command of this script. One round trip, and a second one when a server sees the script for the
    /// first time.
    pub(in crate::store::redis) async fn ask(
        &self,
        on: &Connection,
        known: &Cmd,
    ) -> Result<Value, SendError> {
        match on.send(known).await {
            // Boxed, as all rare cases, so that the usual future stays small.
            Err(SendError::NoScript) => Box::pin(self.ask_whole(on, known)).await,
            answer => answer,
        }
    }

    /// As [`Lua::ask`], for a script whose pushes are to leave the server before its reply.
    ///
    /// Redis writes to its clients in the reverse of the order in which it first had something for them. So the caller
    /// asks for the time first, in the same write. Without that, a caller that shares a core with the waiter runs
    /// before it, which adds a third to the time of a hand-over.
    pub(in crate::store::redis) async fn ask_behind_pushes(
        &self,
        on: &Connection,
        known: &Cmd,
    ) -> Result<Value, SendError> {
        let mut commands = Pipeline::with_capacity(2);
        commands.add_command(redis::cmd("TIME"));
        commands.add_command(known.clone());
        let [_, answer] = on.send_all(&commands).await?;
        match SendError::of(&answer) {
            None => Ok(answer),
            Some(SendError::NoScript) => self.ask_whole(on, known).await,
            Some(error) => Err(error),
        }
    }

    /// Loads the script into the server, so that no later command has to send it whole.
    pub(in crate::store::redis) async fn load(&self, on: &Connection) -> Result<(), SendError> {
        let load = redis::cmd("SCRIPT").arg("LOAD").arg(self.source).take();
        on.send(&load).await.map(drop)
    }

    /// A command of this script with the script itself, which the server then knows.
    pub(in crate::store::redis) fn whole_of(&self, known: &Cmd) -> Cmd {
        let mut whole = redis::cmd("EVAL");
        whole.arg(self.source);
        for argument in known.args_iter().skip(2) {
            if let Arg::Simple(argument) = argument {
                whole.arg(argument);
            }
        }
        whole
    }

    /// Sends a command of this script with the script itself.
    pub(in crate::store::redis) async fn ask_whole(
        &self,
        on: &Connection,
        known: &Cmd,
    ) -> Result<Value, SendError> {
        match on.send(&self.whole_of(known)).await {
            Err(SendError::NoScript) => Err(SendError::Failed(Failure::not_understood())),
            answer => answer,
        }
    }
}

/// Adds an argument that is made of several pieces, without joining them elsewhere first.
pub(in crate::store::redis) fn push<P: AsRef<[u8]> + ?Sized>(command: &mut Cmd, pieces: &[&P]) {
    let mut argument = command.writer_for_next_arg();
    for piece in pieces {
        let written = argument.write_all(piece.as_ref());
        written.expect("there is room in memory for a command");
    }
}

#[cfg(test)]
mod tests {
    use crate::lease::cohort::MOST;

    #[test]
    fn the_scripts_know_how_often_a_lease_is_passed_on() {
        let common = include_str!("../../../scripts/common.lua");
        assert!(common.contains(&format!("\nlocal passes = {MOST}\n")));
        let all = include_str!("../../../scripts/all.lua");
        assert!(all.contains(&format!("string.format('%.0f', fence + {MOST})")));
    }
}
