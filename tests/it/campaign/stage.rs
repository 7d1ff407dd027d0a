//! Starts the servers of a round and the ways to them, and applies the faults.

use std::net::SocketAddr;
use std::time::Duration;

use lock_tests::{
    Direction, Flow, Proxy, RedisCluster, RedisOptions, RedisServer, ReplicaSet, Sentinels,
};
use lock_tests::{ServerClock, missing, wait};

use super::fault::Fault;
use super::plan::{Plan, Topology};
use super::twice::Recorder;

/// A time longer than any fault, so that no fault makes a server be replaced.
const DOWN_AFTER: Duration = Duration::from_secs(4);

pub(super) struct Stage {
    servers: Servers,
    /// The clock of all servers, if the plan steps it.
    clock: Option<ServerClock>,
    ways: Vec<Way>,
}

enum Servers {
    Independent(Vec<RedisServer>),
    Replicas(ReplicaSet),
    Sentinel(ReplicaSet, Sentinels),
    Cluster(RedisCluster),
}

/// The way from a worker to a server.
struct Way {
    worker: usize,
    node: usize,
    proxy: Proxy,
    recorder: Option<Recorder>,
}

impl Stage {
    pub(super) fn start(plan: &Plan) -> Stage {
        let steps = plan.faults.iter().any(|it| it.fault.steps_a_clock());
        let clock = (steps && missing::server_clock().is_ok()).then(ServerClock::new);
        let mut stage = Stage {
            servers: Servers::start(plan.topology, clock.as_ref()),
            clock,
            ways: Vec::new(),
        };
        for node in 0..plan.topology.nodes() {
            allow(stage.node(node));
            if plan.has(Fault::SnapshotFailed { node }) {
                fails_to_save_from_now_on(stage.node(node));
            }
        }
        if plan.topology.has_proxies() {
            let nodes = 0..plan.topology.nodes();
            let ways =
                (0..plan.workers).flat_map(|worker| nodes.clone().map(move |node| (worker, node)));
            stage.ways = ways
                .map(|(worker, node)| stage.lead(plan, worker, node))
                .collect();
        }
        stage
    }

    fn lead(&self, plan: &Plan, worker: usize, node: usize) -> Way {
        let server = self.node(node).address();
        let recorder = plan
            .has(Fault::Twice { worker, node })
            .then(|| Recorder::to(server));
        let next = recorder.as_ref().map_or(server, Recorder::address);
        Way {
            worker,
            node,
            proxy: Proxy::to(next),
            recorder,
        }
    }

    /// Returns the URL at which a worker reaches the servers.
    pub(super) fn url(&self, worker: usize) -> String {
        let ways = self.ways.iter().filter(|way| way.worker == worker);
        let mut urls = ways.map(|way| format!("redis://kit:kit@{}", way.proxy.address()));
        match &self.servers {
            Servers::Independent(_) => urls.collect::<Vec<_>>().join(","),
            Servers::Replicas(_) => urls.next().expect("the way to the master"),
            Servers::Sentinel(_, sentinels) => sentinels.url(),
            Servers::Cluster(cluster) => cluster.url(),
        }
    }

    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.all().iter().map(RedisServer::address).collect()
    }

    fn all(&self) -> &[RedisServer] {
        match &self.servers {
            Servers::Independent(servers) => servers,
            Servers::Replicas(set) | Servers::Sentinel(set, _) => set.servers(),
            Servers::Cluster(cluster) => cluster.nodes(),
        }
    }

    fn masters(&self) -> impl Iterator<Item = &RedisServer> {
        let up = self.all().iter().filter(|node| node.is_up());
        up.filter(|node| node.role() == "master")
    }

    fn node(&self, node: usize) -> &RedisServer {
        &self.all()[node]
    }

    fn way(&self, worker: usize, node: usize) -> &Way {
        let mut ways = self.ways.iter();
        let found = ways.find(|way| (way.worker, way.node) == (worker, node));
        found.expect("a way")
    }

    fn sentinels(&self) -> &Sentinels {
        match &self.servers {
            Servers::Sentinel(_, sentinels) => sentinels,
            _ => panic!("no sentinels"),
        }
    }

    /// Returns the locks that exist, without queues, high-water marks and registers.
    pub(super) fn locks(&self) -> Vec<String> {
        let keys = self.masters().flat_map(RedisServer::keys);
        keys.filter(|key| !is_ours(key, "!")).collect()
    }

    /// Returns keys that would stay for ever, without high-water marks and registers.
    pub(super) fn without_end(&self) -> Vec<String> {
        let endless = |node: &RedisServer| {
            let keys = node.keys().into_iter();
            let keys = keys.filter(|key| !is_ours(key, "!f") && !is_ours(key, "!r"));
            keys.filter(|key| node.cli(&["PTTL", key]) == "-1")
                .collect::<Vec<_>>()
        };
        self.masters().flat_map(endless).collect()
    }

    /// Begins a fault of the servers or of the network. The round itself applies the faults of
    /// workers.
    pub(super) fn begin(&self, plan: &Plan, fault: Fault, lasts: Duration) {
        let millis = lasts.as_millis().to_string();
        match fault {
            Fault::Slow { worker, node, by } => {
                for direction in [Direction::Requests, Direction::Replies] {
                    let by = Duration::from_millis(by / 2);
                    self.way(worker, node).proxy.set(direction, Flow::Delay(by));
                }
            }
            Fault::Cut { worker, node } => self.way(worker, node).proxy.cut(),
            Fault::BlackHole { worker, node } => self.way(worker, node).proxy.black_hole(),
            Fault::Late { worker, node } => self.way(worker, node).proxy.freeze(),
            Fault::Twice { worker, node } => {
                let recorder = self.way(worker, node).recorder.as_ref();
                recorder.expect("a planned recorder").replay();
            }
            Fault::StopServer { node } => self.node(node).stop(),
            Fault::StopSentinel { index } => self.sentinels().servers()[index].stop(),
            Fault::Pause { node } => self.say(node, &["CLIENT", "PAUSE", &millis, "ALL"]),
            Fault::KillClients { node } => {
                self.say(node, &["CLIENT", "KILL", "TYPE", "normal"]);
                self.say(node, &["CLIENT", "KILL", "TYPE", "pubsub"]);
            }
            Fault::ForgetScripts { node } => self.say(node, &["SCRIPT", "FLUSH"]),
            Fault::Full { node } => self.set(node, "maxmemory", "1"),
            Fault::NoReplicas { node } => self.set(node, "min-replicas-to-write", "9"),
            Fault::ReadOnly { node } => self.say(node, &["REPLICAOF", "127.0.0.1", "1"]),
            Fault::SnapshotFailed { node } => self.set(node, "stop-writes-on-bgsave-error", "yes"),
            Fault::NoRight { node, command } => {
                self.say(node, &["ACL", "SETUSER", "kit", &format!("-{command}")]);
            }
            Fault::BusyScript { node } => {
                let seconds = lasts.as_secs_f64().to_string();
                let script =
                    "local from = os.clock() while os.clock() - from < tonumber(ARGV[1]) do end";
                self.say(node, &["EVAL", script, "0", &seconds]);
            }
            Fault::Flush { node } => self.say(node, &["FLUSHALL"]),
            Fault::DeleteLock { node, key } => self.say(node, &["DEL", &plan.keys[key].in_redis()]),
            Fault::DeleteQueues { node } => {
                let queues = self
                    .node(node)
                    .try_cli(&["KEYS", "*!q*"])
                    .unwrap_or_default();
                queues
                    .lines()
                    .for_each(|queue| self.say(node, &["DEL", queue]));
            }
            Fault::Restart { node } => {
                let server = self.node(node);
                let fails_to_save = plan.has(Fault::SnapshotFailed { node });
                if fails_to_save {
                    // A server does not start if a folder is in the place of its snapshot.
                    std::fs::remove_dir(snapshot(server)).expect("a folder");
                }
                server.restart();
                allow(server);
                if fails_to_save {
                    fails_to_save_from_now_on(server);
                }
            }
            Fault::FailOver => self.fail_over(),
            Fault::ClockBack { by, .. } => {
                self.clock
                    .iter()
                    .for_each(|it| it.step_back(Duration::from_millis(by)));
            }
            Fault::ClockAhead { by, .. } => {
                self.clock
                    .iter()
                    .for_each(|it| it.step_ahead(Duration::from_millis(by)));
            }
            Fault::StopWorker { .. } | Fault::KillWorker { .. } => {
                unreachable!("a fault of a worker")
            }
        }
    }

    /// Ends a fault that does not end by itself.
    pub(super) fn end(&self, fault: Fault) {
        match fault {
            Fault::Slow { worker, node, .. } | Fault::BlackHole { worker, node } => {
                self.way(worker, node).proxy.pass();
            }
            Fault::Late { worker, node } => self.way(worker, node).proxy.thaw(),
            Fault::StopServer { node } => self.node(node).cont(),
            // A clock that is set back meanwhile prolongs the pause. The server answers when the
            // pause is over.
            Fault::Pause { node } => self.node(node).wait_for_answer(),
            Fault::StopSentinel { index } => self.sentinels().servers()[index].cont(),
            Fault::Full { node } => self.set(node, "maxmemory", "0"),
            Fault::NoReplicas { node } => self.set(node, "min-replicas-to-write", "0"),
            Fault::ReadOnly { node } => self.say(node, &["REPLICAOF", "NO", "ONE"]),
            Fault::SnapshotFailed { node } => self.set(node, "stop-writes-on-bgsave-error", "no"),
            Fault::NoRight { node, command } => {
                self.say(node, &["ACL", "SETUSER", "kit", &format!("+{command}")]);
            }
            _ => {}
        }
    }

    /// Sends a command and ignores a refusal, because only the observations of the workers count.
    fn say(&self, node: usize, words: &[&str]) {
        let _ = self.node(node).try_cli(words);
    }

    fn set(&self, node: usize, directive: &str, value: &str) {
        self.say(node, &["CONFIG", "SET", directive, value]);
    }

    /// Makes a replica take its master's place, if one can.
    fn fail_over(&self) {
        match &self.servers {
            Servers::Sentinel(_, sentinels) => {
                let up = sentinels.servers().iter().find(|it| it.is_up());
                let _ = up.map(|it| it.try_cli(&["SENTINEL", "FAILOVER", Sentinels::SERVICE]));
            }
            Servers::Cluster(cluster) => {
                let replica = cluster.up().find(|node| node.role() == "slave");
                let _ = replica.map(|it| it.try_cli(&["CLUSTER", "FAILOVER"]));
            }
            _ => unreachable!("a topology without a failover"),
        }
    }
}

impl Servers {
    fn start(topology: Topology, clock: Option<&ServerClock>) -> Servers {
        let options = RedisServer::options()
            .config("lua-time-limit", "50")
            .config("dbfilename", "snapshot")
            .config("stop-writes-on-bgsave-error", "no");
        let options = match clock {
            Some(clock) => options.clock(clock),
            None => options,
        };
        let watched = |options: &RedisOptions| {
            let set = ReplicaSet::with(options, 1);
            let sentinels = Sentinels::with(&RedisServer::options(), &set, 3, DOWN_AFTER);
            Servers::Sentinel(set, sentinels)
        };
        match topology {
            Topology::One | Topology::Redlock => {
                let all = (0..topology.nodes()).map(|_| options.clone().start());
                Servers::Independent(all.collect())
            }
            Topology::Replicas => Servers::Replicas(ReplicaSet::with(&options, 1)),
            Topology::Sentinel => watched(&options),
            Topology::Cluster => Servers::Cluster(RedisCluster::with(&options, 3, DOWN_AFTER)),
        }
    }
}

/// Returns whether the kit keeps this key for itself, in one of the two namespaces.
fn is_ours(key: &str, kind: &str) -> bool {
    key.strip_prefix("lockkit:")
        .unwrap_or(key)
        .starts_with(kind)
}

/// Makes the user of the kit.
///
/// A fault can take this user's rights without those of the test.
fn allow(server: &RedisServer) {
    server.cli(&["ACL", "SETUSER", "kit", "on", ">kit", "~*", "&*", "+@all"]);
}

fn snapshot(server: &RedisServer) -> String {
    let folder = server.cli(&["CONFIG", "GET", "dir"]);
    let folder = folder.lines().last().expect("a folder");
    format!("{folder}/snapshot")
}

/// Makes the server's last snapshot fail.
///
/// A folder is in the place of its file.
fn fails_to_save_from_now_on(server: &RedisServer) {
    std::fs::create_dir(snapshot(server)).expect("a folder");
    server.cli(&["CONFIG", "SET", "save", "3600 1000000"]);
    server.cli(&["BGSAVE"]);
    wait::until("the snapshot has failed", || {
        server.info("persistence")["rdb_last_bgsave_status"] == "err"
    });
}
