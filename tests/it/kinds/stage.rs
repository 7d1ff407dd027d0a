//! The servers of a storm, and the disturbances beside the processes that are killed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use lock_core::LockManager;
use lock_tests::wait::PATIENCE;
use lock_tests::{ChildProcess, RedisCluster, RedisServer};
use tokio::time::sleep;

use super::KEYS;
use crate::cluster::migration::Move;
use crate::dice::Dice;
use crate::steps::{keys, manager};

/// The kind of a stage, as a process of the storm knows it by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// One server.
    Kills,
    /// One server, and processes are also stopped for a while.
    Stops,
    /// Three servers that vote and hang in turn.
    Hangs,
    /// A cluster whose slots move all the time.
    Moves,
}

impl Kind {
    pub(super) const ALL: [Kind; 4] = [Kind::Kills, Kind::Stops, Kind::Hangs, Kind::Moves];

    pub(super) fn named(name: &str) -> Kind {
        let mut all = Self::ALL.into_iter();
        all.find(|kind| format!("{kind:?}") == name)
            .expect("a kind")
    }

    /// How many of a hundred disturbances kill a process.
    ///
    /// The nodes of a cluster do not know whether a push has receivers, so each dead waiter keeps its key for its grant.
    /// Deaths that come faster than that add up, and the last caller waits for all of them.
    pub(super) fn deaths(self) -> u64 {
        match self {
            Kind::Moves => 3,
            Kind::Kills | Kind::Stops | Kind::Hangs => 30,
        }
    }

    /// Makes a manager for servers with these URLs, with commas between.
    pub(super) async fn manager(self, urls: &str) -> LockManager {
        if self != Kind::Hangs {
            return manager(urls).await;
        }
        let several = LockManager::quorum(urls.split(','));
        // A server that hangs is noticed while the others are at work.
        let several = several
            .operation_timeout(Duration::from_secs(2))
            .connect_timeout(PATIENCE);
        several.assume_fresh().connect().await.expect("a manager")
    }
}

enum Servers {
    Alone(Vec<RedisServer>),
    Cluster(Arc<RedisCluster>, Mover),
}

pub(super) struct Stage {
    pub(super) kind: Kind,
    servers: Servers,
    disturbed: u64,
}

impl Stage {
    pub(super) fn of(kind: Kind) -> Stage {
        let alone = |count| Servers::Alone((0..count).map(|_| RedisServer::start()).collect());
        let servers = match kind {
            Kind::Kills | Kind::Stops => alone(1),
            Kind::Hangs => alone(3),
            Kind::Moves => {
                let cluster = Arc::new(RedisCluster::start(Duration::from_secs(15)));
                let mover = Mover::start(&cluster);
                Servers::Cluster(cluster, mover)
            }
        };
        Stage {
            kind,
            servers,
            disturbed: 0,
        }
    }

    pub(super) fn urls(&self) -> String {
        match &self.servers {
            Servers::Alone(servers) => {
                let urls: Vec<_> = servers.iter().map(RedisServer::url).collect();
                urls.join(",")
            }
            Servers::Cluster(cluster, _) => cluster.url(),
        }
    }

    /// Disturbs a server or a process. `false`: the dice or the stage have it otherwise.
    pub(super) async fn disturbs(
        &mut self,
        processes: &mut [ChildProcess],
        dice: &mut Dice,
    ) -> bool {
        let happens = match (&self.servers, self.kind) {
            (Servers::Alone(servers), Kind::Hangs) if dice.percent(40) => {
                let hangs = &servers[dice.index(servers.len())];
                hangs.stop();
                sleep(Duration::from_millis(dice.between(10, 400))).await;
                hangs.cont();
                true
            }
            (_, Kind::Stops) if dice.percent(50) => {
                let stopped = &processes[dice.index(processes.len())];
                stopped.stop();
                sleep(Duration::from_millis(dice.between(10, 3_000))).await;
                stopped.cont();
                true
            }
            _ => false,
        };
        self.disturbed += u64::from(happens);
        happens
    }

    /// Ends the disturbances. Returns how many there were.
    pub(super) fn calms_down(&mut self) -> u64 {
        match &mut self.servers {
            Servers::Alone(_) => self.disturbed,
            Servers::Cluster(_, mover) => mover.ends(),
        }
    }

    /// Returns the keys of locks, queues and shares that are left.
    pub(super) fn left(&self) -> Vec<String> {
        let servers: Vec<&RedisServer> = match &self.servers {
            Servers::Alone(servers) => servers.iter().collect(),
            Servers::Cluster(cluster, _) => cluster.masters(),
        };
        let mut left: Vec<_> = servers.into_iter().flat_map(keys).collect();
        let is_of_the_store = ["lockkit:!h:", "lockkit:!r", "lockkit:!f"];
        left.retain(|key| !is_of_the_store.iter().any(|start| key.starts_with(start)));
        left
    }
}

/// Moves the slot of one key after the other from node to node, key by key.
struct Mover {
    goes_on: Arc<AtomicBool>,
    thread: Option<JoinHandle<u64>>,
}

impl Mover {
    fn start(cluster: &Arc<RedisCluster>) -> Mover {
        let goes_on = Arc::new(AtomicBool::new(true));
        let (cluster, going) = (Arc::clone(cluster), Arc::clone(&goes_on));
        let thread = std::thread::spawn(move || {
            let mut moves = 0;
            let mut dice = Dice::of(&[4]);
            while going.load(Ordering::SeqCst) {
                let moving = Move::begin(&cluster, &format!("lockkit:{}", dice.one_of(&KEYS)));
                for _ in 0..dice.between(0, 4) {
                    std::thread::sleep(Duration::from_millis(dice.between(0, 400)));
                    let begins = [
                        "lockkit:k",
                        "lockkit:p",
                        "lockkit:!q",
                        "lockkit:!s",
                        "lockkit:!f",
                    ];
                    moving.keys_move(dice.one_of(&begins));
                }
                moving.end();
                moves += 1;
            }
            moves
        });
        Mover {
            goes_on,
            thread: Some(thread),
        }
    }

    fn ends(&mut self) -> u64 {
        self.goes_on.store(false, Ordering::SeqCst);
        let thread = self.thread.take();
        thread.map_or(0, |thread| thread.join().expect("no panic"))
    }
}

impl Drop for Mover {
    fn drop(&mut self) {
        self.goes_on.store(false, Ordering::SeqCst);
    }
}
