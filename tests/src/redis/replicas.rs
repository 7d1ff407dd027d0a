//! Runs a master and its replicas.

use std::net::SocketAddr;

use crate::{RedisOptions, RedisServer, wait};

/// A master and its replicas. After a failover another server is the master.
#[derive(Debug)]
pub struct ReplicaSet {
    servers: Vec<RedisServer>,
}

impl ReplicaSet {
    /// Starts a master and so many replicas, and waits until these have caught up.
    ///
    /// # Panics
    ///
    /// As [`RedisOptions::start`], and when a replica does not catch up.
    #[track_caller]
    pub fn start(replicas: usize) -> ReplicaSet {
        ReplicaSet::with(&RedisServer::options(), replicas)
    }

    /// Starts a set as [`ReplicaSet::start`] does, each server with these options.
    ///
    /// # Panics
    ///
    /// As [`ReplicaSet::start`].
    #[track_caller]
    pub fn with(options: &RedisOptions, replicas: usize) -> ReplicaSet {
        // A replica that joins late or again is synchronised at once. A replica that is cut off is
        // noticed within a second.
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

    /// Returns all servers, the first master first.
    pub fn servers(&self) -> &[RedisServer] {
        &self.servers
    }

    /// Returns the server that listens at this address.
    ///
    /// # Panics
    ///
    /// When no server of the set listens there.
    #[track_caller]
    pub fn at(&self, address: SocketAddr) -> &RedisServer {
        let mut servers = self.servers.iter();
        let found = servers.find(|server| server.address() == address);
        found.expect("one of these servers")
    }

    /// Returns the first server of the set that is up and calls itself the master.
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

    /// Returns the servers that are up and call themselves replicas.
    #[track_caller]
    pub fn replicas(&self) -> Vec<&RedisServer> {
        let up = self.servers.iter().filter(|server| server.is_up());
        up.filter(|server| server.role() == "slave").collect()
    }

    /// Waits until every replica that is up follows its master and has all data of the master.
    ///
    /// # Panics
    ///
    /// When a replica does not catch up.
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
    /// Returns `master`, `slave` or `sentinel`.
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
