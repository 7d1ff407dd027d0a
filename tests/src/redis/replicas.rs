//! A master and its replicas.

use std::net::SocketAddr;

use crate::{RedisOptions, RedisServer, wait};

/// A master and its replicas, each as itself sees it: after a failover another server is the master.
#[derive(Debug)]
pub struct ReplicaSet {
    servers: Vec<RedisServer>,
}

impl ReplicaSet {
    /// A master and so many replicas, which have caught up with it.
    ///
    /// # Panics
    ///
    /// As [`RedisOptions::start`], and when a replica does not catch up.
    #[track_caller]
    pub fn start(replicas: usize) -> ReplicaSet {
        ReplicaSet::with(&RedisServer::options(), replicas)
    }

    /// As [`ReplicaSet::start`], each of them with these options.
    ///
    /// # Panics
    ///
    /// As [`ReplicaSet::start`].
    #[track_caller]
    pub fn with(options: &RedisOptions, replicas: usize) -> ReplicaSet {
        // A replica that comes late, or comes again, has what it needs at once; one that is cut off
        // is noticed within a second.
        let options = options
            .clone()
            .config("repl-diskless-sync-delay", "0")
            .config("repl-ping-replica-period", "1");
        let mut servers = vec![options.clone().start()];
        for _ in 0..replicas {
            let replica = options.clone().replica_of(&servers[0]);
            servers.push(replica.start());
        }
        let set = ReplicaSet { servers };
        set.caught_up();
        set
    }

    /// All of them, the first master first.
    pub fn servers(&self) -> &[RedisServer] {
        &self.servers
    }

    /// The server that listens there.
    ///
    /// # Panics
    ///
    /// When it is none of these.
    #[track_caller]
    pub fn at(&self, address: SocketAddr) -> &RedisServer {
        let mut servers = self.servers.iter();
        let found = servers.find(|server| server.address() == address);
        found.expect("one of these servers")
    }

    /// The first server of the set that is up and takes itself for the master.
    ///
    /// # Panics
    ///
    /// When there is none.
    #[track_caller]
    pub fn master(&self) -> &RedisServer {
        let mut servers = self.servers.iter();
        let found = servers.find(|server| server.is_up() && server.role() == "master");
        found.expect("a master")
    }

    /// Those that are up and take themselves for replicas.
    #[track_caller]
    pub fn replicas(&self) -> Vec<&RedisServer> {
        let up = self.servers.iter().filter(|server| server.is_up());
        up.filter(|server| server.role() == "slave").collect()
    }

    /// Waits until every replica that is up follows its master and has all that the master has.
    ///
    /// # Panics
    ///
    /// When one does not.
    #[track_caller]
    pub fn caught_up(&self) {
        wait::until("the replicas have caught up", || {
            self.replicas().iter().all(|replica| {
                let info = replica.info("replication");
                let Some(port) = info["master_port"].parse::<u16>().ok() else {
                    return false;
                };
                let mut servers = self.servers.iter();
                let Some(master) = servers.find(|server| server.port_of_others() == port) else {
                    return false;
                };
                info["master_link_status"] == "up"
                    && master.is_up()
                    && info["slave_repl_offset"] == master.info("replication")["master_repl_offset"]
            })
        });
    }
}

impl RedisServer {
    /// `master`, `slave` or `sentinel`.
    ///
    /// # Panics
    ///
    /// When there is no answer.
    #[track_caller]
    pub fn role(&self) -> String {
        let role = self.read(&["ROLE"]);
        role.lines().next().unwrap_or_default().to_owned()
    }
}
