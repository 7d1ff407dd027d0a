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

pub(super) struct Lua {
    source: &'static str,
    hash: String,
}

impl Lua {
    fn new(source: &'static str) -> Self {
        Self {
            source,
            hash: Script::new(source).get_hash().to_owned(),
        }
    }

    /// One round trip; two, the first time a server sees the script.
    pub(super) async fn run(
        &self,
        on: &Connection,
        keys: &[String],
        arguments: &[String],
    ) -> Result<Value, Trouble> {
        match on
            .send(&self.command("EVALSHA", &self.hash, keys, arguments))
            .await
        {
            Err(Trouble::NoScript) => {}
            answer => return answer,
        }
        match on
            .send(&self.command("EVAL", self.source, keys, arguments))
            .await
        {
            Err(Trouble::NoScript) => Err(Trouble::Failed(Failure::not_understood())),
            answer => answer,
        }
    }

    fn command(&self, verb: &str, script: &str, keys: &[String], arguments: &[String]) -> Cmd {
        let mut command = Cmd::with_capacity(3 + keys.len() + arguments.len(), 256);
        command
            .arg(verb)
            .arg(script)
            .arg(keys.len())
            .arg(keys)
            .arg(arguments);
        command
    }
}
