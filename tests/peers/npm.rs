//! The work of each part with a package of npm, in a process of Node.

use std::process::Command;
use std::time::Duration;

use lock_tests::{ChildProcess, RedisServer, wait};
use serde_json::Value;

use crate::{KILLED, Part, Taken, rounds};

fn node(part: &str, server: &RedisServer) -> Command {
    let mut command = Command::new("node");
    let port = server.port().to_string();
    command.args(["tests/peers/peer.js", part, &port, &rounds().to_string()]);
    command
}

/// Runs a part to its end. Returns its last line.
fn answer(part: &str, server: &RedisServer) -> Value {
    let output = node(part, server).output().expect("node starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().last().unwrap_or_default();
    serde_json::from_str(last).unwrap_or_else(|_| {
        let errors = String::from_utf8_lossy(&output.stderr);
        panic!("the peer failed: {text}{errors}")
    })
}

pub(crate) fn work(part: Part, server: &RedisServer) -> Taken {
    let name = match part {
        Part::Semaphore => "semaphore",
        Part::Readers => "readers",
        Part::Pairs => "pairs",
    };
    let answer = answer(name, server);
    let time = |name: &str| {
        let millis = answer[name].as_f64().expect("a number");
        Duration::from_secs_f64(millis / 1e3)
    };
    Taken {
        took: time("took"),
        longest: time("longest"),
    }
}

/// Kills processes that hold permits. Returns how many permits are missing when their leases have run out.
pub(crate) fn missing_permits(server: &RedisServer) -> u64 {
    for _ in 0..KILLED {
        let mut process = ChildProcess::spawn(node("hold", server));
        let holding = process.line(wait::PATIENCE, |line| line == "holding");
        assert!(holding.is_some(), "{}", process.output());
        process.kill();
    }
    std::thread::sleep(Duration::from_secs(3));
    let free = answer("free", server)["free"].as_u64();
    5 - free.expect("a number")
}
