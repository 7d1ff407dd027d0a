//! Faults: what goes wrong, from when, and for how long.

use super::events::Event;
use super::network::Ways;
use super::{MICRO, SECOND, State};
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
    StopReplica {
        server: usize,
        replica: usize,
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
}

impl State {
    /// Plans the faults of a history.
    pub fn plan_faults(&mut self, faults: Vec<Planned>) {
        for (number, planned) in faults.iter().enumerate() {
            self.at(planned.at, Event::FaultBegins(number));
            self.at(planned.end(), Event::FaultEnds(number));
        }
        self.faults = faults;
    }

    pub(super) fn fault_begins(&mut self, number: usize) {
        let fault = self.faults[number].fault.clone();
        self.note(&[9, number as u64], || format!("begins: {fault:?}"));
        match fault {
            Fault::Slow {
                process,
                server,
                by,
            } => self.link_mut(process, server).slow += by,
            Fault::Hold {
                process,
                server,
                ways,
            } => {
                let link = self.link_mut(process, server);
                link.holds_requests += u32::from(ways.requests());
                link.holds_replies += u32::from(ways.replies());
            }
            Fault::Freeze {
                process,
                server,
                ways,
            } => {
                for connection in self.connections_between(process, server) {
                    self.freeze(connection, ways, true);
                }
            }
            Fault::Cut { process, server } => {
                for connection in self.connections_between(process, server) {
                    self.cut(connection);
                }
            }
            Fault::Stop { process } => self.processes[process].stops += 1,
            Fault::Kill { process } => self.kill(process),
            Fault::Block { process } => {
                let runtime = self.processes[process].application;
                self.block_runtime(process, runtime);
            }
            Fault::StopServer { server } => self.stop_server(server),
            Fault::Restart { server, .. } => self.shut_down(server),
            Fault::EndConnections { server } => self.disconnect_clients(server),
            Fault::ForgetScripts { server } => self.hosts[server].server.forget_scripts(),
            Fault::Refuse { server, refusal } => self.hosts[server].server.refusal = Some(refusal),
            Fault::Deny { server, command } => {
                self.hosts[server].server.denied.insert(command);
            }
            Fault::StepClock { server, by } => self.hosts[server].clock += by,
            Fault::Flush { server } => {
                self.hosts[server].server.flush();
                self.after_operator(server);
            }
            Fault::Delete { server, key } => {
                self.hosts[server].server.delete(&key);
                self.after_operator(server);
            }
            Fault::StopReplica { server, replica } => self.stop_replica(server, replica),
        }
    }

    pub(super) fn fault_ends(&mut self, number: usize) {
        let fault = self.faults[number].fault.clone();
        self.note(&[10, number as u64], || format!("ends: {fault:?}"));
        match fault {
            Fault::Slow {
                process,
                server,
                by,
            } => self.link_mut(process, server).slow -= by,
            Fault::Hold {
                process,
                server,
                ways,
            } => {
                let link = self.link_mut(process, server);
                link.holds_requests -= u32::from(ways.requests());
                link.holds_replies -= u32::from(ways.replies());
                for connection in self.connections_between(process, server) {
                    self.release_held(connection);
                }
            }
            Fault::Freeze {
                process,
                server,
                ways,
            } => {
                for connection in self.connections_between(process, server) {
                    self.freeze(connection, ways, false);
                    self.release_held(connection);
                }
            }
            Fault::Stop { process } => self.resume(process),
            Fault::Block { process } => {
                let runtime = self.processes[process].application;
                self.unblock_runtime(process, runtime);
            }
            Fault::StopServer { server } => self.resume_server(server),
            Fault::Restart { server, keeps_data } => self.start_up(server, keeps_data),
            Fault::Refuse { server, .. } => self.hosts[server].server.refusal = None,
            Fault::Deny { server, command } => {
                self.hosts[server].server.denied.remove(&command);
            }
            Fault::StopReplica { server, replica } => self.resume_replica(server, replica),
            Fault::Cut { .. }
            | Fault::Kill { .. }
            | Fault::EndConnections { .. }
            | Fault::ForgetScripts { .. }
            | Fault::StepClock { .. }
            | Fault::Flush { .. }
            | Fault::Delete { .. } => {}
        }
    }

    /// Ends a process. Its memory stays, so that the values in it do nothing more; its sockets are closed.
    pub fn kill(&mut self, process: usize) {
        for connection in self.connections_of(process) {
            self.client_closes(connection);
        }
        self.processes[process].dead = true;
    }

    fn after_operator(&mut self, server: usize) {
        self.spread(server);
        self.send_pushes(server);
    }
}

impl Fault {
    /// Returns whether data that the kit relies on is lost.
    pub fn loses_data(&self) -> bool {
        matches!(
            self,
            Fault::Flush { .. }
                | Fault::Delete { .. }
                | Fault::Restart {
                    keeps_data: false,
                    ..
                }
        )
    }

    /// The length of a step of a server's clock.
    pub fn clock_step(&self) -> Option<u64> {
        match self {
            Fault::StepClock { by, .. } => Some(by.unsigned_abs() * MICRO),
            _ => None,
        }
    }

    /// The process that the fault is about.
    pub fn process(&self) -> Option<usize> {
        match self {
            Fault::Slow { process, .. }
            | Fault::Hold { process, .. }
            | Fault::Freeze { process, .. }
            | Fault::Cut { process, .. }
            | Fault::Stop { process }
            | Fault::Kill { process }
            | Fault::Block { process } => Some(*process),
            _ => None,
        }
    }
}
