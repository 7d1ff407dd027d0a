//! Measures the cost of a lock against the raw commands in the same run. See `--help`.
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark reads the real clock"
)]

mod ball;
mod bars;
mod counts;
mod crew;
mod free_pair;
mod functions;
mod held;
mod idle;
mod instructions;
mod layer;
mod machine;
mod member;
mod nap;
mod once;
mod postgres;
mod record;
mod redlock;
mod replay;
mod waiting;
mod wakeup;

use lock_tests::RedisServer;

use self::bars::Bars;
use self::machine::Spinners;

const NAMES: [&str; 10] = [
    "pair", "held", "layer", "replay", "once", "waiting", "wakeup", "idle", "redlock", "postgres",
];
const USAGE: &str = "\
cargo bench -p lock-tests [-- pair | held | layer | replay | once | waiting | wakeup | idle | redlock | postgres] [--hot] [--short]
cargo bench -p lock-tests -- --instructions

  pair     acquire + release of a free key against raw SET NX PX + EVALSHA: with 1 and 64 tasks,
           released in the background, and with client and server on one core
  held     100 000 held locks: CPU of the process and memory per lock while they are renewed
  layer    a request through the layer: CPU beside the plain router, a timeout layer and raw commands
  replay   a request whose answer is recorded, and a duplicate, against the layer with a cooldown; and a function with
           `#[idempotent]` against one with `#[distributed_lock]`
  once     a request whose answer is in the commit of its effect, on SQLite and PostgreSQL: the time beside a plain
           transaction and the read of a record
  waiting  one key, held for 1 ms, wanted by 16 tasks, by 2 and 8 processes, and by 2 × 8 tasks
  wakeup   the time from a release to the waiter's wake in another process, against a bare PUBLISH
  idle     1 000 waiters for one key and 5 000 keys with a waiter each, while the locks are held
  redlock  acquire + release on five servers against the raw commands to all five at once, also with
           client and servers on one core, and with two of the five stopped
  postgres acquire + release on PostgreSQL beside plain SQL, advisory locks, locks of rows and the statements of ShedLock; and
           a hand-over beside a bare NOTIFY

--instructions counts the client's instructions and the server's commands and trips of a pair. Other load on
the machine does not change these counts. They need `perf` with a hardware counter, or valgrind.

The program starts its own redis-server on a core of its own. HELD=n changes the number of held locks.
--hot keeps the cores from sleeping. --short shortens once, waiting, wakeup, redlock and postgres to a rough estimate.
";

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    // The benchmark has started this program itself.
    match arguments.first().map(String::as_str) {
        Some("member") => return member::run(&arguments[1..]),
        Some("pairs") => return instructions::pairs(&arguments[1..]),
        Some("spin") => return machine::spin(&arguments[1]),
        _ => {}
    }
    arguments.retain(|argument| argument != "--bench");
    let mut option = |name: &str| {
        let before = arguments.len();
        arguments.retain(|argument| argument != name);
        arguments.len() < before
    };
    let (hot, short) = (option("--hot"), option("--short"));
    if option("--instructions") {
        return instructions::run();
    }
    if arguments
        .iter()
        .any(|given| !NAMES.contains(&given.as_str()))
    {
        print!("{USAGE}");
        return;
    }
    let chosen = |name: &str| arguments.is_empty() || arguments.iter().any(|given| given == name);
    let server = RedisServer::start();
    let cores = machine::pin(&server);
    let _spinners = hot.then(|| Spinners::start(&cores));
    let mut bars = Bars::default();
    if chosen("pair") {
        free_pair::run(&server, cores, &mut bars);
    }
    if chosen("held") {
        held::run(&server);
    }
    if chosen("layer") {
        layer::run(&server);
    }
    if chosen("replay") {
        replay::run(&server, &mut bars);
        functions::run(&server, &mut bars);
    }
    if chosen("once") {
        once::run(cores, short, &mut bars);
    }
    if chosen("waiting") {
        waiting::run(&server, short, &mut bars);
    }
    if chosen("wakeup") {
        wakeup::run(&server, short, &mut bars);
    }
    if chosen("idle") {
        idle::run(&server, &mut bars);
    }
    if chosen("redlock") {
        redlock::run(cores, short, &mut bars);
    }
    if chosen("postgres") {
        postgres::run(cores, short, &mut bars);
    }
    bars.print();
}
