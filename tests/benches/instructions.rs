//! Counts the client's instructions of a pair, and the server's commands and trips.
//!
//! Unlike a time, such a count does not change with other load on the machine. A child process runs the pairs
//! under a counter, once a few and once many. The difference contains no start of a process.

use std::process::Command;

use lock_core::LockManager;
use lock_tests::RedisServer;

use crate::counts::Counts;
use crate::free_pair::{connect_raw, raw_pair};
use crate::redlock::{self, NODES, Raw};

const FEW: usize = 512;
const MANY: usize = 2_560;
/// A single task takes so many keys in turn, because a service locks different keys.
const KEYS: usize = 16;

/// The title of each case, and the names of its children with the kit and with raw commands.
const CASES: [(&str, &str, &str); 3] = [
    ("1 task", "kit", "raw"),
    ("64 tasks", "kit-64", "raw-64"),
    ("five servers, 1 task", "kit-quorum", "raw-quorum"),
];

pub(crate) fn run() {
    let servers: Vec<RedisServer> = (0..NODES).map(|_| RedisServer::start()).collect();
    let counter = Counter::at_hand();
    if counter.is_none() {
        println!(
            "Instructions are not counted: `perf stat -e instructions:u` has no counter here, and valgrind is \
             missing or cannot run this program. Commands and trips are counted.\n"
        );
    }
    println!("| of a pair | client's instructions | commands of a server | its trips |");
    println!("| --- | --- | --- | --- |");
    for (what, kit, raw) in CASES {
        let number = if what.contains("servers") { NODES } else { 1 };
        let [raw, kit] = [raw, kit].map(|case| cost(counter, case, &servers[..number]));
        raw.print(&format!("{what}, raw"));
        kit.print(&format!("{what}, kit"));
        if let (Some(raw), Some(kit)) = (raw.instructions, kit.instructions) {
            println!("| {what}, kit ÷ raw | {:.2} | | |", kit / raw);
        }
    }
}

#[derive(Clone, Copy)]
enum Counter {
    Perf,
    Valgrind,
}

impl Counter {
    fn at_hand() -> Option<Self> {
        let works = |counter: &Self| counter.count(&["--help"]).is_some();
        [Self::Perf, Self::Valgrind].into_iter().find(works)
    }

    /// Returns the instructions of this program with these arguments, if they can be counted.
    fn count(self, arguments: &[&str]) -> Option<f64> {
        let mut command = match self {
            Self::Perf => {
                let mut perf = Command::new("perf");
                perf.args(["stat", "-x", ",", "-e", "instructions:u", "--"]);
                perf
            }
            Self::Valgrind => {
                let mut valgrind = Command::new("valgrind");
                valgrind.args(["--tool=cachegrind", "--cache-sim=no"]);
                valgrind.arg("--cachegrind-out-file=/dev/null");
                valgrind
            }
        };
        let program = std::env::current_exe().expect("this program");
        let ran = command.arg(program).args(arguments).output().ok()?;
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        let number = match self {
            Self::Perf => said.lines().find(|line| line.contains("instructions"))?,
            Self::Valgrind => said.lines().find_map(|line| line.split_once("refs:"))?.1,
        };
        // `perf` prints more columns behind two commas. Valgrind separates thousands by one comma.
        let number = number.split(",,").next()?.replace(',', "");
        ran.status.success().then(|| number.trim().parse().ok())?
    }
}

struct Cost {
    instructions: Option<f64>,
    counts: Counts,
}

impl Cost {
    fn print(&self, what: &str) {
        let instructions = match self.instructions {
            Some(instructions) => format!("{instructions:.0}"),
            None => "not counted".to_owned(),
        };
        println!(
            "| {what} | {instructions} | {:.1} | {:.1} |",
            self.counts.commands, self.counts.trips
        );
    }
}

fn cost(counter: Option<Counter>, case: &str, servers: &[RedisServer]) -> Cost {
    let urls: Vec<String> = servers.iter().map(RedisServer::url).collect();
    let [few, many] = [FEW, MANY].map(|pairs| {
        let before = Counts::of(&servers[0]);
        let (pairs, urls) = (pairs.to_string(), urls.join(","));
        let arguments = ["pairs", case, &pairs, &urls];
        let instructions = match counter {
            Some(counter) => counter.count(&arguments),
            None => {
                let program = std::env::current_exe().expect("this program");
                let status = Command::new(program).args(arguments).status();
                assert!(status.expect("a process").success());
                None
            }
        };
        (instructions, Counts::of(&servers[0]) - before)
    });
    let pairs = (MANY - FEW) as f64;
    Cost {
        instructions: many.0.zip(few.0).map(|(many, few)| (many - few) / pairs),
        counts: (many.1 - few.1) / pairs,
    }
}

/// Runs the pairs that are counted: `pairs <case> <number> <urls>`.
pub(crate) fn pairs(arguments: &[String]) {
    let [case, number, urls] = arguments else {
        panic!("pairs <case> <number> <urls>");
    };
    let number: usize = number.parse().expect("a number");
    let urls: Vec<String> = urls.split(',').map(str::to_owned).collect();
    crate::machine::runtime().block_on(async {
        match case.as_str() {
            "raw" => raw(&urls[0], 1, number).await,
            "raw-64" => raw(&urls[0], 64, number).await,
            "kit" => kit(&urls[0], 1, number).await,
            "kit-64" => kit(&urls[0], 64, number).await,
            "raw-quorum" => {
                let raw = Raw::connect(&urls).await;
                for _ in 0..number {
                    raw.pair(NODES).await;
                }
            }
            "kit-quorum" => {
                let kit = redlock::Kit::connect(&urls).await;
                for _ in 0..number {
                    kit.pair().await;
                }
            }
            other => panic!("no such case: {other}"),
        }
    });
    // The connections are not closed, because that costs a different number in each run.
    std::process::exit(0);
}

/// Returns the key of a pair. Each of many tasks has a key of its own.
fn key(task: usize, tasks: usize, pair: usize) -> String {
    format!("pair:{}", if tasks == 1 { pair % KEYS } else { task })
}

async fn raw(url: &str, tasks: usize, pairs: usize) {
    let connection = connect_raw(url).await;
    shared(tasks, |task| {
        let mut connection = connection.clone();
        async move {
            for pair in 0..pairs / tasks {
                let key = key(task, tasks, pair);
                raw_pair(&mut connection, &format!("lockkit:{key}"), pair).await;
            }
        }
    })
    .await;
}

async fn kit(url: &str, tasks: usize, pairs: usize) {
    let locks = LockManager::connect(url).await.expect("a manager");
    shared(tasks, |task| {
        let locks = locks.clone();
        async move {
            for pair in 0..pairs / tasks {
                let guard = locks.lock(key(task, tasks, pair)).acquire().await;
                guard.expect("free").release().await.expect("held");
            }
        }
    })
    .await;
}

async fn shared<F: Future<Output = ()> + Send + 'static>(tasks: usize, work: impl Fn(usize) -> F) {
    let running: Vec<_> = (0..tasks).map(|task| tokio::spawn(work(task))).collect();
    for task in running {
        task.await.expect("a task that does not panic");
    }
}
