//! Runs scripts of the kit by themselves.

use lock_tests::RedisServer;

/// The tokens of two owners.
pub(super) const OURS: &str = "0123456789abcdef/0123456789abcdef0123456789abcdef";
pub(super) const NEXT: &str = "0123456789abcdef/ffffffffffffffffffffffffffffffff";

/// Returns the parts of a script, by the names of their files.
macro_rules! scripts {
    ($($part:literal),+ $(,)?) => {
        [$(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../lock-core/src/scripts/", $part))),+]
    };
}
pub(super) use scripts;

pub(super) const ACQUIRE: [&str; 5] = scripts!(
    "stand_in_line.lua",
    "acquire_first.lua",
    "one_server.lua",
    "common.lua",
    "acquire.lua"
);

/// Runs a script, and returns its answer, a line for each part.
pub(super) fn run(
    server: &RedisServer,
    parts: &[&str],
    keys: &[&str],
    arguments: &[&str],
) -> String {
    let script = parts.concat();
    let count = keys.len().to_string();
    server.cli(&[&["EVAL", script.as_str(), &count], keys, arguments].concat())
}

/// Returns the milliseconds until the key of the lock runs out.
pub(super) fn pttl(server: &RedisServer) -> i64 {
    let left = server.cli(&["PTTL", "lockkit:k"]);
    left.parse().expect("a number")
}
