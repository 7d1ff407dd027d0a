//! Faults: what goes wrong, from when, and for how long.

use super::SECOND;
use super::cluster::REJOINS;
use super::network::Ways;
use crate::server::Refusal;

/// No fault lasts longer than this time of the history.
pub const LAST: u64 = 6 * SECOND;

#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// The link is slow by about so much.
    Slow {
        process: usize,
        server: usize,
        by: u64,
    },
    /// A partition between a process and a server, for new connections too.
    Hold {
        process: usize,
        server: usize,
        ways: Ways,
    },
    /// A partition between a process and all servers but this one.
    HoldOthers {
        process: usize,
        server: usize,
        ways: Ways,
    },
    /// The connections that there are stand still; new ones work.
    Freeze {
        process: usize,
        server: usize,
        ways: Ways,
    },
    /// The connections that there are break.
    Cut {
        process: usize,
        server: usize,
    },
    /// The process is stopped, as by SIGSTOP.
    Stop {
        process: usize,
    },
    /// The process is killed, as by SIGKILL.
    Kill {
        process: usize,
    },
    /// The process is stopped, and never goes on. Its connections stay.
    Halt {
        process: usize,
    },
    /// A task blocks the runtime of the application; the keeper's thread runs.
    Block {
        process: usize,
    },
    StopServer {
        server: usize,
    },
    /// The server is down, and comes back with or without its data.
    Restart {
        server: usize,
        keeps_data: bool,
    },
    /// An operator ends all connections.
    EndConnections {
        server: usize,
    },
    ForgetScripts {
        server: usize,
    },
    Refuse {
        server: usize,
        refusal: Refusal,
    },
    /// On PostgreSQL, transactions meet each other: one of them is chosen to fail, passes over a row, or has an old snapshot.
    Conflicts {
        server: usize,
    },
    /// The user loses the right to a command.
    Deny {
        server: usize,
        command: String,
    },
    /// The server's clock steps by so many microseconds, and stays so.
    StepClock {
        server: usize,
        by: i64,
    },
    /// All data is deleted.
    Flush {
        server: usize,
    },
    /// A stranger deletes a key.
    Delete {
        server: usize,
        key: Vec<u8>,
    },
    /// A stranger has a hash in a lock's key, if that is free.
    OtherType {
        server: usize,
        key: Vec<u8>,
    },
    /// A replica receives nothing from its master.
    StopReplica {
        replica: usize,
    },
    /// A proxy breaks the connections for the process, and passes to the server later what it has of them.
    Late {
        process: usize,
        server: usize,
    },
    /// At its end a proxy sends all requests again that it has passed on.
    Repeat {
        process: usize,
        server: usize,
    },
    /// So many waiters were killed that stand in a queue.
    Gone {
        server: usize,
        key: Vec<u8>,
        count: usize,
    },
    /// A stranger writes something else into the mark, and an operator deletes that.
    SpoilMark {
        server: usize,
        /// A number above every clock, or a key of another type.
        is_number: bool,
    },
    /// A replica becomes the master. At the end the former master becomes a replica.
    Promote {
        server: usize,
    },
    /// A sentinel does not hear of failovers.
    Isolate {
        sentinel: usize,
    },
    /// The sentinels are set up anew.
    ResetSentinels,
    /// A stranger deletes a key right after its next renewal.
    Strike {
        server: usize,
        key: Vec<u8>,
    },
    /// A stranger lengthens a key by a moment again and again.
    Touch {
        server: usize,
        key: Vec<u8>,
    },
    /// A stranger raises the registers of a node above every clock.
    Spoil {
        server: usize,
    },
    /// Very many waiters of a key are dead.
    Dead {
        server: usize,
        key: Vec<u8>,
    },
    /// A slot of a cluster moves to the next master, or to one that is `further`. `in_dispute`: the new owner is told at
    /// last, so that for some time each node names another one.
    MoveSlot {
        slot: usize,
        further: usize,
        in_dispute: bool,
    },
    /// A master of a cluster gives its place to its replica, which has all data.
    GiveWay {
        server: usize,
    },
    /// A master of a cluster is down, and its replica takes its place with the data that it has.
    Crash {
        server: usize,
    },
    /// A client of another library takes a key that is free, for long, and deletes it when the fault ends.
    Stranger {
        server: usize,
        key: Vec<u8>,
        value: &'static str,
    },
}

/// A fault with its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    pub at: u64,
    pub lasts: u64,
    pub fault: Fault,
}

impl Planned {
    pub fn end(&self) -> u64 {
        self.at + self.lasts
    }

    /// When servers serve again. A node of a cluster needs some time after its start.
    pub fn over(&self, in_cluster: bool) -> u64 {
        let starts = matches!(self.fault, Fault::Restart { .. } | Fault::Crash { .. });
        self.end() + if in_cluster && starts { REJOINS } else { 0 }
    }
}
