//! What a lock costs beside the raw commands, measured in the same run. See `--help`.
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark reads the real clock"
)]

mod free_pair;
mod held;
mod layer;

use lock_tests::RedisServer;

const USAGE: &str = "\
cargo bench -p lock-tests [-- pair | held | layer]

  pair   acquire + release of a free key against raw SET NX PX + EVALSHA, with 1 and 64 tasks
  held   100 000 held locks: CPU of the process and memory per lock while they are renewed
  layer  a request through the layer: CPU beside the plain router, a timeout layer and raw commands

Starts its own redis-server. HELD=n changes the number of held locks.
";

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let chosen = |name: &str| arguments.is_empty() || arguments.iter().any(|given| given == name);
    if arguments
        .iter()
        .any(|given| !["pair", "held", "layer"].contains(&given.as_str()))
    {
        print!("{USAGE}");
        return;
    }
    let server = RedisServer::start();
    if chosen("pair") {
        free_pair::run(&server);
    }
    if chosen("held") {
        held::run(&server);
    }
    if chosen("layer") {
        layer::run(&server);
    }
}
