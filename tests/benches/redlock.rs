//! Measures a lock over five servers against the raw commands to all five at once.
//!
//! A second measurement has two of the five stopped.

mod raw;
mod together;

use std::time::{Duration, Instant};

use lock_core::LockManager;
use lock_tests::{RedisServer, wait};

pub(crate) use self::raw::Raw;
use crate::bars::Bars;
use crate::counts::Counts;
use crate::machine::{self, median};

pub(crate) const NODES: usize = 5;
/// The length of a turn, so short that other load on the machine affects all sides alike.
const TURN: Duration = Duration::from_millis(50);
/// The number of times that two servers are stopped, and of turns before and during each stop.
const STOPS: usize = 3;
const TURNS_A_STOP: usize = 10;

/// Runs the benchmark with all servers on one core, so that they work one after the other. Extra work of
/// one server therefore counts five times. `client` and `apart` are the cores of this process and of the servers.
pub(crate) fn run([client, apart]: [usize; 2], short: bool, bars: &mut Bars) {
    let nodes: Vec<RedisServer> = (0..NODES).map(|_| RedisServer::start()).collect();
    let on = |core| {
        for node in &nodes {
            machine::pin_server(node, core);
        }
    };
    on(apart);
    let runtime = crate::machine::runtime();
    let rounds = if short { 10 } else { 60 };
    runtime.block_on(async {
        let urls: Vec<String> = nodes.iter().map(RedisServer::url).collect();
        let kit = Kit::connect(&urls).await;
        let ratio = beside_raw(&nodes, &kit, rounds, "the servers on a core of their own").await;
        bars.at_most("Redlock pair: × five raw in parallel", ratio, 1.15);
        on(client);
        let ratio = beside_raw(&nodes, &kit, rounds, "all on one core").await;
        bars.at_most(
            "Redlock pair: × five raw in parallel, on one core",
            ratio,
            1.35,
        );
        on(apart);
        two_stopped(&nodes, &kit, if short { 1 } else { STOPS }, bars).await;
    });
}

/// Returns the time of a pair, as a multiple of the raw commands to all servers.
async fn beside_raw(nodes: &[RedisServer], kit: &Kit, rounds: usize, place: &str) -> f64 {
    let urls: Vec<String> = nodes.iter().map(RedisServer::url).collect();
    let raw = Raw::connect(&urls).await;
    // All sides make their connections and load their scripts before the first round.
    for wanted in [NODES, NODES / 2 + 1] {
        turn(async || raw.pair(wanted).await).await;
    }
    turn(async || kit.pair().await).await;
    let (mut all, mut third, mut kits) = <(Sample, Sample, Sample)>::default();
    let (mut to_all, mut to_third) = (Vec::new(), Vec::new());
    let mut counts = Counts::default();
    for _ in 0..rounds {
        let five = costed(nodes, async || raw.pair(NODES).await).await;
        let three = costed(nodes, async || raw.pair(NODES / 2 + 1).await).await;
        let before = counts_of(nodes);
        let kit = costed(nodes, async || kit.pair().await).await;
        counts += counts_of(nodes) - before;
        to_all.push(kit.usual() / five.usual());
        to_third.push(kit.usual() / three.usual());
        all.add(five);
        third.add(three);
        kits.add(kit);
    }
    let (to_all, to_third) = (median(to_all), median(to_third));
    println!(
        "\n| {NODES} servers, 1 task, {place} | acquire µs (p50) | release µs (p50) | pair µs (p50) | mean |"
    );
    println!("| --- | --- | --- | --- | --- |");
    all.print("raw SET NX PX, EVALSHA to all, until all have answered");
    third.print("the same until three have answered");
    kits.print("kit");
    println!("\n| CPU µs a pair | of the process | of each server |");
    println!("| --- | --- | --- |");
    all.print_cpu("raw, until all have answered");
    third.print_cpu("raw, until three have answered");
    kits.print_cpu("kit");
    println!("\n| kit ÷ raw, median of {rounds} rounds | a pair (p50) |");
    println!("| --- | --- |");
    println!("| until all have answered | {to_all:.2} |");
    println!("| until three have answered | {to_third:.2} |");
    let pairs = (kits.pairs.len() * NODES) as f64;
    println!(
        "\na pair of the kit, on each server: {:.2} scripts, {:.2} commands with those inside, {:.2} trips",
        counts.scripts / pairs,
        counts.commands / pairs,
        counts.trips / pairs
    );
    to_all
}

async fn two_stopped(nodes: &[RedisServer], kit: &Kit, stops: usize, bars: &mut Bars) {
    let (mut healthy, mut stopped) = <(Sample, Sample)>::default();
    let mut longest = Sample::default();
    for first in 0..stops {
        kit.until_all_agree().await;
        for _ in 0..TURNS_A_STOP {
            healthy.add(turn(async || kit.pair().await).await);
        }
        let gone = [&nodes[first % NODES], &nodes[(first + 2) % NODES]];
        gone.iter().for_each(|node| node.stop());
        let mut missing = Sample::default();
        let found_out = Instant::now() + kit.patience;
        while Instant::now() < found_out {
            missing.push(kit.pair().await);
        }
        longest.push(missing.longest());
        for _ in 0..TURNS_A_STOP {
            stopped.add(turn(async || kit.pair().await).await);
        }
        gone.iter().for_each(|node| node.cont());
    }
    println!(
        "\n| kit, {NODES} servers, 1 task | acquire µs (p50) | release µs (p50) | pair µs (p50) | mean |"
    );
    println!("| --- | --- | --- | --- | --- |");
    healthy.print("all answer");
    longest.print("two are stopped: the longest pair until the manager notices");
    stopped.print("two are stopped: after that");
    let ratio = |of: fn(&Sample) -> Vec<f64>| median(of(&stopped)) / median(of(&healthy));
    let (acquire, pair) = (
        ratio(|all| all.acquires.clone()),
        ratio(|all| all.pairs.clone()),
    );
    println!("\ntwo of {NODES} stopped ÷ healthy: acquire {acquire:.2}, pair {pair:.2}");
    bars.at_most("two of five stopped: acquire p50 × healthy", acquire, 1.2);
    bars.at_most("two of five stopped: pair p50 × healthy", pair, 1.2);
}

pub(crate) struct Kit {
    locks: LockManager,
    /// The time after which the manager knows which servers do not answer.
    patience: Duration,
}

impl Kit {
    pub(crate) async fn connect(urls: &[String]) -> Self {
        let operation_timeout = Duration::from_secs(1);
        let builder = LockManager::quorum(urls.iter().cloned());
        let builder = builder.assume_fresh().operation_timeout(operation_timeout);
        Self {
            locks: builder.connect().await.expect("a manager"),
            patience: operation_timeout,
        }
    }

    pub(crate) async fn pair(&self) -> Pair {
        let start = Instant::now();
        let guard = self.locks.lock("kit").acquire().await;
        let guard = guard.expect("a majority is free");
        let acquired = Instant::now();
        guard.release().await.expect("held");
        Pair::new(start, acquired)
    }

    /// Waits until the servers that were stopped have caught up.
    async fn until_all_agree(&self) {
        wait::eventually("all agree", async || {
            let Ok(guard) = self.locks.lock("kit").acquire().await else {
                return false;
            };
            tokio::time::sleep(Duration::from_millis(5)).await;
            let agree = guard.acks().granted();
            guard.release().await.expect("held");
            usize::try_from(agree) == Ok(NODES)
        })
        .await;
    }
}

/// The microseconds of a pair.
#[derive(Clone, Copy)]
pub(crate) struct Pair {
    acquire: f64,
    release: f64,
}

impl Pair {
    fn new(start: Instant, acquired: Instant) -> Self {
        Self {
            acquire: (acquired - start).as_secs_f64() * 1e6,
            release: acquired.elapsed().as_secs_f64() * 1e6,
        }
    }

    fn whole(self) -> f64 {
        self.acquire + self.release
    }
}

#[derive(Default)]
struct Sample {
    acquires: Vec<f64>,
    releases: Vec<f64>,
    pairs: Vec<f64>,
    /// The CPU time of all pairs together.
    client: f64,
    servers: f64,
}

impl Sample {
    fn push(&mut self, pair: Pair) {
        self.acquires.push(pair.acquire);
        self.releases.push(pair.release);
        self.pairs.push(pair.whole());
    }

    fn add(&mut self, more: Self) {
        self.acquires.extend(more.acquires);
        self.releases.extend(more.releases);
        self.pairs.extend(more.pairs);
        self.client += more.client;
        self.servers += more.servers;
    }

    /// Returns the time of a pair when no other process takes the core.
    fn usual(&self) -> f64 {
        median(self.pairs.clone())
    }

    fn mean(&self) -> f64 {
        self.pairs.iter().sum::<f64>() / self.pairs.len() as f64
    }

    fn longest(&self) -> Pair {
        let longest = |of: &[f64]| of.iter().copied().fold(0.0, f64::max);
        Pair {
            acquire: longest(&self.acquires),
            release: longest(&self.releases),
        }
    }

    fn print_cpu(&self, what: &str) {
        let pairs = self.pairs.len() as f64;
        println!(
            "| {what} | {:.1} | {:.1} |",
            self.client / pairs,
            self.servers / pairs / NODES as f64
        );
    }

    fn print(&self, what: &str) {
        println!(
            "| {what} | {:.1} | {:.1} | {:.1} | {:.1} |",
            median(self.acquires.clone()),
            median(self.releases.clone()),
            self.usual(),
            self.mean()
        );
    }
}

/// Runs a turn and measures its CPU time.
async fn costed(nodes: &[RedisServer], pair: impl AsyncFnMut() -> Pair) -> Sample {
    let servers = || {
        nodes
            .iter()
            .map(|node| machine::cpu_micros(node.pid()))
            .sum::<f64>()
    };
    let before = (machine::own_cpu(), servers());
    let mut sample = turn(pair).await;
    sample.client = (machine::own_cpu() - before.0).as_secs_f64() * 1e6;
    sample.servers = servers() - before.1;
    sample
}

async fn turn(mut pair: impl AsyncFnMut() -> Pair) -> Sample {
    let mut sample = Sample::default();
    let end = Instant::now() + TURN;
    while Instant::now() < end {
        sample.push(pair().await);
    }
    sample
}

fn counts_of(nodes: &[RedisServer]) -> Counts {
    let mut counts = Counts::default();
    for node in nodes {
        counts += Counts::of(node);
    }
    counts
}
