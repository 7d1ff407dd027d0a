//! The Lua scripts: each by its hash, and whole where the server does not know it yet.

use std::sync::LazyLock;

use redis::{Cmd, Script, Value};

use super::answers::Trouble;
use super::connection::Connection;
use crate::store::Failure;

macro_rules! script {
    ($name:ident, $($part:literal),+) => {
        pub(super) static $name: LazyLock<Lua> =
            LazyLock::new(|| Lua::new(concat!($(include_str!(concat!("../../scripts/", $part))),+)));
    };
}

script!(ACQUIRE, "common.lua", "acquire.lua");
script!(RELEASE, "common.lua", "release.lua");
script!(COOL, "common.lua", "cool.lua");
script!(EXTEND, "extend.lua");
script!(BATCH, "common.lua", "batch.lua");
script!(RESERVE, "common.lua", "reserve.lua");

pub(super) struct Lua {
    source: &'static str,
    hash: String,
}

impl Lua {
    fn new(source: &'static str) -> Self {
        let hash = Script::new(source).get_hash().to_owned();
        Self { source, hash }
    }

    /// One round trip; two, the first time a server sees the script.
    pub(super) async fn run(
        &self,
        on: &Connection,
        keys: &[&str],
        arguments: &[&str],
    ) -> Result<Value, Trouble> {
        let known = command("EVALSHA", &self.hash, keys, arguments);
        match on.send(&known).await {
            // Boxed, as the other ways that are rarely taken: the usual way stays small.
            Err(Trouble::NoScript) => Box::pin(self.run_whole(on, keys, arguments)).await,
            answer => answer,
        }
    }

    async fn run_whole(
        &self,
        on: &Connection,
        keys: &[&str],
        arguments: &[&str],
    ) -> Result<Value, Trouble> {
        let whole = command("EVAL", self.source, keys, arguments);
        match on.send(&whole).await {
            Err(Trouble::NoScript) => Err(Trouble::Failed(Failure::not_understood())),
            answer => answer,
        }
    }
}

fn command(verb: &str, script: &str, keys: &[&str], arguments: &[&str]) -> Cmd {
    let texts = keys.iter().chain(arguments);
    let bytes: usize = texts.map(|text| text.len()).sum();
    let parts = 3 + keys.len() + arguments.len();
    let mut command = Cmd::with_capacity(parts, script.len() + bytes + 16);
    command.arg(verb).arg(script).arg(keys.len());
    for text in keys.iter().chain(arguments) {
        command.arg(text);
    }
    command
}

#[cfg(test)]
mod tests {
    use crate::cohort::MOST;

    #[test]
    fn the_scripts_know_how_often_a_lease_is_passed_on() {
        let common = include_str!("../../scripts/common.lua");
        assert!(common.contains(&format!("\nlocal passes = {MOST}\n")));
    }
}
