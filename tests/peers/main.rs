//! Compares shares and locks of several keys with two packages of npm. `tests/peers/run` starts it.

#![allow(
    clippy::disallowed_methods,
    reason = "it compares the times of two programs by the clock of the machine"
)]

mod kit;
mod npm;

use std::process::ExitCode;
use std::time::Duration;

use lock_tests::RedisServer;

/// The work of a part, for the kit and for the peer alike.
#[derive(Clone, Copy, Debug)]
enum Part {
    /// 64 tasks share 5 permits.
    Semaphore,
    /// 16 readers and 2 writers share a key.
    Readers,
    /// 16 tasks lock one of 4 keys and one of 3.
    Pairs,
}

/// The result of a part.
struct Taken {
    took: Duration,
    longest: Duration,
}

impl Part {
    fn tasks(self) -> usize {
        match self {
            Part::Semaphore => 64,
            Part::Readers => 18,
            Part::Pairs => 16,
        }
    }
}

const KILLED: usize = 20;

/// How often each task acquires its lock.
fn rounds() -> usize {
    let rounds = std::env::var("PEERS_ROUNDS");
    rounds.map_or(100, |rounds| rounds.parse().expect("a number"))
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [verb, url] = &arguments[..]
        && verb == "hold"
    {
        kit::hold(url).await;
        return ExitCode::SUCCESS;
    }
    if let Err(missing) = lock_tests::missing::redis() {
        eprintln!("peers: {missing}");
        return ExitCode::from(3);
    }
    let mut worse = Vec::new();
    println!(
        "| part | peer | acquisitions a second, peer | kit | ratio | longest wait, peer | kit |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for (part, name, peer) in [
        (Part::Semaphore, "64 tasks, 5 permits", "redis-semaphore"),
        (Part::Readers, "16 readers, 2 writers", "redis-semaphore"),
        (Part::Pairs, "16 tasks, two keys", "redlock"),
    ] {
        let theirs = npm::work(part, &RedisServer::start());
        let ours = kit::work(part, &RedisServer::start()).await;
        let acquisitions = (part.tasks() * rounds()) as f64;
        let a_second = |taken: &Taken| acquisitions / taken.took.as_secs_f64();
        let ratio = a_second(&ours) / a_second(&theirs);
        println!(
            "| {name} | {peer} | {:.0} | {:.0} | {ratio:.2} | {:.0?} | {:.0?} |",
            a_second(&theirs),
            a_second(&ours),
            theirs.longest,
            ours.longest
        );
        if ratio < 1.0 || ours.longest > theirs.longest {
            worse.push(format!("{name}: the kit is not better than {peer}"));
        }
    }
    let theirs = npm::missing_permits(&RedisServer::start());
    let ours = kit::missing_permits(&RedisServer::start()).await;
    println!(
        "\nOf 5 permits, {theirs} (redis-semaphore) and {ours} (kit) are missing after {KILLED} kills."
    );
    if ours > 0 {
        worse.push("a permit of the kit is missing".to_owned());
    }
    for line in &worse {
        eprintln!("peers: {line}");
    }
    ExitCode::from(u8::from(!worse.is_empty()))
}
