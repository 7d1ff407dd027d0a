//! A node of a cluster whose slots move: what it serves, and where it sends its clients.
//!
//! The other node stands in the real one's file of nodes only. No command of the test needs it.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::server::{Bytes, Cluster, Node, SLOTS, Server, slot_of};

use super::START;
use super::kit::words;
use super::random::Random;
use super::real::{Folder, Link, Real};
use super::{shown, stage};

const STEPS: usize = 3_000;
/// The numbers of the nodes.
const HERE: usize = 0;
const ELSEWHERE: usize = 1;
/// The node has all slots but those of these tags. The other one has the first of them, and no node the second.
const OF_THE_OTHER: &str = "b";
const OF_NONE: &str = "c";
const KEYS: [&str; 7] = ["{a}1", "{a}2", "{a}3", "{b}1", "{b}2", "{c}1", "d"];
const SCRIPTS: [&str; 5] = [
    "return redis.call('GET', KEYS[1])",
    "return redis.call('GET', ARGV[1])",
    "return redis.pcall('MGET', KEYS[1], KEYS[2])",
    "redis.call('SET', KEYS[1], 'x') return redis.pcall('SET', ARGV[1], 'y')",
    "return redis.call('TIME')[1] + 0",
];

struct Pair {
    real: Real,
    operator: Link,
    client: Link,
    simulated: Server,
    micros: i64,
}

/// Compares the answers to random commands about keys whose slots an operator moves.
pub fn compare(program: &Path, library: &Path, folder: &Folder, seed: u64) {
    let mut pair = Pair::new(program, library, folder);
    let random = &mut Random::new(seed);
    let mut last = Vec::new();
    for _ in 0..STEPS {
        pair.micros += random.between(0, 30_000);
        pair.real.set_clock(pair.micros);
        if random.once_in(12) {
            last.push(pair.change(random));
        }
        let command = words(&command(random));
        last.push(shown(&command));
        let [real, simulated] = pair.ask(&command).map(|it| it.escape_ascii().to_string());
        assert!(
            real == simulated,
            "{} as a node differs, SIM_SEED={seed}\n{}\n  real      {real}\n  simulated {simulated}",
            program.display(),
            last[last.len().saturating_sub(12)..].join("\n"),
        );
    }
}

fn command(random: &mut Random) -> Vec<&'static str> {
    let (one, two) = (random.pick(&KEYS), random.pick(&KEYS));
    // Keys of one slot come often.
    let two = if random.once_in(2) { "{a}2" } else { two };
    match random.below(16) {
        0..2 => vec!["GET", one],
        2 => vec!["SET", one, "v", "PX", random.pick(&["1", "50", "1000"])],
        3 => vec!["SET", one, "v", "NX"],
        4 => vec!["DEL", one, two],
        5..7 => vec!["MGET", one, two],
        7..10 => {
            let script = random.pick(&SCRIPTS);
            vec!["EVAL", script, "2", one, two, random.pick(&KEYS)]
        }
        10 => vec!["EVAL", SCRIPTS[1], "0", one],
        11..14 => vec!["ASKING"],
        14 => random
            .pick(&[
                &["PING"][..],
                &["NONE"],
                &["GET"],
                &["ASKING", "x"],
                &["SELECT", "1"],
            ])
            .to_vec(),
        _ => random
            .pick(&[
                &["CLUSTER", "SLOTS"][..],
                &["DBSIZE"],
                &["HELLO", "3"],
                &["HELLO", "2"],
            ])
            .to_vec(),
    }
}

impl Pair {
    fn new(program: &Path, library: &Path, folder: &Folder) -> Self {
        let [port, bus] = [free_port(), free_port()];
        let ids = ["a".repeat(40), "b".repeat(40)];
        let [mine, other, none] = ["a", OF_THE_OTHER, OF_NONE].map(|tag| slot_of(tag.as_bytes()));
        assert!(mine != other && other != none);
        let [first, second] = if other < none {
            [other, none]
        } else {
            [none, other]
        };
        let (between, last) = (format!("{}-{}", first + 1, second - 1), SLOTS - 1);
        let nodes = format!(
            "{} 127.0.0.1:{port}@{bus} myself,master - 0 0 1 connected 0-{} {between} {}-{last}\n\
             {} 127.0.0.1:1@2 master - 0 0 2 connected {other}\nvars currentEpoch 2 lastVoteEpoch 0\n",
            ids[HERE],
            first - 1,
            second + 1,
            ids[ELSEWHERE],
        );
        let home = folder.path().join("node");
        fs::create_dir_all(&home).expect("a folder");
        fs::write(home.join("nodes.conf"), nodes).expect("the file of nodes");
        let (port_text, bus) = (port.to_string(), bus.to_string());
        let arguments = [
            "--cluster-enabled",
            "yes",
            "--port",
            &port_text,
            "--cluster-port",
            &bus,
            "--cluster-node-timeout",
            "1000000000",
            "--cluster-require-full-coverage",
            "no",
        ];
        let real = Real::start_with(program, library, folder, "node", START, &arguments);
        let mut operator = real.connect();
        operator.order(&["DEBUG", "SET-ACTIVE-EXPIRE", "0"]);
        let mut simulated = Server::new("simulated".to_owned());
        simulated.version = stage::version(&mut operator);
        let ports = [port, 1];
        let nodes = ids.into_iter().zip(ports).map(|(id, port)| Node {
            id,
            host: "127.0.0.1".to_owned(),
            port,
        });
        let owners = (0..SLOTS).map(|slot| match slot {
            _ if slot == none => None,
            _ if slot == other => Some(ELSEWHERE),
            _ => Some(HERE),
        });
        let cluster = Cluster::new(nodes.collect(), HERE, owners.collect());
        simulated.cluster = Some(Box::new(cluster));
        let client = real.connect();
        let mut pair = Self {
            real,
            operator,
            client,
            simulated,
            micros: START,
        };
        // A node serves some time after its start.
        pair.await_state("ok");
        pair
    }

    fn cluster(&mut self) -> &mut Cluster {
        self.simulated.cluster.as_deref_mut().expect("a node")
    }

    /// Lets the clock run until the real node takes the cluster for one in this state.
    fn await_state(&mut self, state: &str) {
        let start = Instant::now();
        let state = format!("cluster_state:{state}");
        while !self.operator.ask(&["CLUSTER", "INFO"]).contains(&state) {
            assert!(start.elapsed() < Duration::from_secs(10), "{state}");
            self.micros += 100_000;
            self.real.set_clock(self.micros);
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// An operator begins or ends the move of a slot, or has the node take the cluster for down or whole.
    fn change(&mut self, random: &mut Random) -> String {
        let [mine, other] = ["a", OF_THE_OTHER].map(|tag| slot_of(tag.as_bytes()));
        let other_id = self.cluster().nodes[ELSEWHERE].id.clone();
        let mut set = |slot: usize, words: &[&str]| {
            let slot = slot.to_string();
            self.operator
                .order(&[&["CLUSTER", "SETSLOT", &slot], words].concat());
        };
        match random.below(9) {
            0..3 => {
                set(mine, &["MIGRATING", &other_id]);
                self.cluster().gives(mine, ELSEWHERE);
                "the slot of a moves away".to_owned()
            }
            3..6 => {
                set(other, &["IMPORTING", &other_id]);
                self.cluster().takes(other);
                "the slot of b moves here".to_owned()
            }
            6 | 7 => {
                let slot = if random.once_in(2) { mine } else { other };
                set(slot, &["STABLE"]);
                self.cluster().settle(slot);
                format!("slot {slot} stays")
            }
            _ => {
                let serves = !self.cluster().serves;
                self.cluster().serves = serves;
                let (covered, state) = if serves {
                    ("no", "ok")
                } else {
                    ("yes", "fail")
                };
                self.operator
                    .order(&["CONFIG", "SET", "cluster-require-full-coverage", covered]);
                // The node looks at its state again.
                let untouched = slot_of(b"d").to_string();
                self.operator
                    .order(&["CLUSTER", "SETSLOT", &untouched, "STABLE"]);
                self.await_state(state);
                format!("the cluster is {state}")
            }
        }
    }

    /// The replies of the real node and of the simulated one.
    fn ask(&mut self, command: &[Bytes]) -> [Bytes; 2] {
        if self.real.lags {
            self.operator.ask(&["PING"]);
        }
        let mut simulated = Bytes::new();
        self.simulated.run(0, self.micros, command, &mut simulated);
        self.client.send(command);
        self.client.await_bytes(stage::comparable(&simulated).len());
        // The node has written the rest when it has answered the operator.
        self.operator.ask(&["PING"]);
        let real = self.client.take();
        [&real, &simulated].map(|bytes| stage::comparable(bytes).to_vec())
    }
}

fn free_port() -> u16 {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    free.expect("a free port").port()
}
