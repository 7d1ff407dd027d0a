//! The work of each part with a package of npm, in a process of Node.

use std::process::Command;
use std::time::Duration;

use lock_tests::{ChildProcess, RedisServer, wait};
use serde_json::Value;

use crate::{KILLED, Part, Taken};

fn node(part: &str, server: &RedisServer, span: Duration) -> Command {
    let mut command = Command::new("node");
    let port = server.port().to_string();
    command.args([
        "tests/peers/peer.js",
        part,
        &port,
        &span.as_millis().to_string(),
    ]);
    command
}

/// Runs a part to its end. Returns its last line.
fn answer(part: &str, server: &RedisServer, span: Duration) -> Value {
    let output = node(part, server, span).output().expect("node starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().last().unwrap_or_default();
    serde_json::from_str(last).unwrap_or_else(|_| {
        let errors = String::from_utf8_lossy(&output.stderr);
        panic!("the peer failed: {text}{errors}")
    })
}

pub(crate) fn work(part: Part, server: &RedisServer, span: Duration) -> Taken {
    let name = match part {
        Part::Semaphore => "semaphore",
        Part::Readers => "readers",
        Part::Pairs => "pairs",
    };
    let answer = answer(name, server, span);
    Taken {
        acquisitions: answer["acquisitions"].as_u64().expect("a number"),
        longest: Duration::from_secs_f64(answer["longest"].as_f64().expect("a number") / 1e3),
    }
}

/// Kills processes that hold permits. Returns how many permits are missing when their leases have run out.
pub(crate) fn missing_permits(server: &RedisServer) -> u64 {
    for _ in 0..KILLED {
        let mut process = ChildProcess::spawn(node("hold", server, Duration::ZERO));
        let holding = process.line(wait::PATIENCE, |line| line == "holding");
        assert!(holding.is_some(), "{}", process.output());
        process.kill();
    }
    std::thread::sleep(Duration::from_secs(3));
    let free = answer("free", server, Duration::ZERO)["free"].as_u64();
    5 - free.expect("a number")
}
