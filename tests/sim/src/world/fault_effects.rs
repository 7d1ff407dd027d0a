//! The effects of faults, when they begin and when they end.

use super::cluster::{HEARS, REPLACED};
use super::events::Event;
use super::faults::{Fault, Planned};
use super::network::Ways;
use super::{SECOND, State};
use crate::server::{Bytes, Role};

/// The number of a connection that no process has.
const STRANGER: usize = usize::MAX;
/// The mark of the fencing tokens.
const MARK: &str = "lockkit:!f";
/// A server deletes a key that is over within this time, by itself, in microseconds: Redis looks ten times a second.
const DELETED_WITHIN: i64 = 150_000;
/// For how long a stranger takes a key.
const STRANGERS_TTL: i64 = 30_000_000;

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
            } => self.hold(process, server, ways),
            Fault::HoldOthers {
                process,
                server,
                ways,
            } => {
                for other in self.servers_but(server) {
                    self.hold(process, other, ways);
                }
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
            Fault::Stop { process } if self.stops_amid_a_release => {
                self.stops_to_come.insert(process, number);
            }
            Fault::Stop { process } | Fault::Halt { process } => {
                self.processes[process].stops += 1;
            }
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
            Fault::Conflicts { server } => {
                self.with_postgres(server, |postgres, _| postgres.conflicts = true);
            }
            Fault::Deny { server, command } => {
                self.hosts[server].server.denied.insert(command);
            }
            Fault::StepClock { server, by } => {
                self.delete_what_is_over(server);
                self.hosts[server].clock += by;
            }
            Fault::Flush { server } => {
                if self.hosts[server].server.role == Role::Master {
                    self.hosts[server].server.flush();
                    self.with_postgres(server, |postgres, _| postgres.table.clear());
                    self.after_operator(server);
                }
            }
            Fault::Delete { server, key } => self.stranger_deletes(server, &key),
            Fault::Late { process, server } => {
                for connection in self.connections_between(process, server) {
                    self.freeze(connection, Ways::Requests, true);
                    let soon = self.now + self.rng.below(SECOND / 2);
                    let kind = std::io::ErrorKind::ConnectionReset;
                    self.at(soon, Event::ClientHearsEnd { connection, kind });
                }
            }
            Fault::Repeat { process, server } => {
                self.recorded.insert((process, server), Vec::new());
                self.with_postgres(server, |postgres, _| postgres.recorded = Some(Vec::new()));
            }
            Fault::OtherType { server, key } => self.put_other_type(number, server, &key),
            Fault::Gone { server, key, count } => {
                let waiters = self.dead_waiters(&key, count);
                self.as_stranger(server, &waiters);
            }
            Fault::SpoilMark { server, is_number } => {
                let value: &[&str] = match is_number {
                    true => &["SET", MARK, "9000000000000007"],
                    false => &["ZADD", MARK, "1", "something"],
                };
                self.as_stranger(server, &[words(&["DEL", MARK]), words(value)]);
            }
            Fault::StopReplica { replica } => self.stop_replica(replica),
            Fault::Promote { server } => self.promote(server),
            Fault::Isolate { sentinel } => self.isolate_sentinel(sentinel),
            Fault::ResetSentinels => self.reset_sentinels(),
            Fault::Strike { server, key } => {
                self.hosts[server].strikes.insert(key);
            }
            Fault::Touch { .. } => self.touch(number),
            Fault::Spoil { server } => self.spoil(server),
            Fault::Dead { server, key } => self.add_dead_waiters(server, &key),
            Fault::MoveSlot {
                slot,
                further,
                in_dispute,
            } => {
                let lasts = self.faults[number].lasts;
                self.move_slot(slot, further, in_dispute, lasts);
            }
            Fault::GiveWay { server } if self.is_well(server) => self.fail_over(server),
            Fault::GiveWay { .. } => {}
            Fault::Crash { server } => {
                self.shut_down(server);
                let soon = self.now + self.rng.below(REPLACED - HEARS);
                self.at(soon, Event::FailOver { master: server });
            }
            Fault::Stranger { server, key, value } => {
                let time = self.server_time(server);
                let ends = time + STRANGERS_TTL;
                let it = &mut self.hosts[server].server;
                if it.set_if_free(time, &key, value.as_bytes(), ends) {
                    self.strangers.insert(number);
                    self.after_operator(server);
                }
            }
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
            } => self.end_hold(process, server, ways),
            Fault::HoldOthers {
                process,
                server,
                ways,
            } => {
                for other in self.servers_but(server) {
                    self.end_hold(process, other, ways);
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
            Fault::Late { process, server } => {
                for connection in self.connections_between(process, server) {
                    self.freeze(connection, Ways::Requests, false);
                    self.release_held(connection);
                }
            }
            Fault::Repeat { process, server } => self.repeat(process, server),
            Fault::SpoilMark { server, .. } => {
                self.as_stranger(server, &[words(&["DEL", MARK])]);
            }
            Fault::Stop { process } if self.stops_amid_a_release => {
                self.stops_to_come.remove(&process);
            }
            Fault::Stop { process } => self.resume(process),
            Fault::Block { process } => {
                let runtime = self.processes[process].application;
                self.unblock_runtime(process, runtime);
            }
            Fault::StopServer { server } => self.resume_server(server),
            Fault::Restart { server, keeps_data } => self.start_up(server, keeps_data),
            Fault::Crash { server } => self.start_up(server, true),
            Fault::Refuse { server, .. } => self.hosts[server].server.refusal = None,
            Fault::Conflicts { server } => {
                self.with_postgres(server, |postgres, _| postgres.conflicts = false);
            }
            Fault::Deny { server, command } => {
                self.hosts[server].server.denied.remove(&command);
            }
            Fault::OtherType { server, key } => self.delete_other_type(number, server, &key),
            Fault::StopReplica { replica } => self.resume_replica(replica),
            Fault::Promote { .. } => self.demote_former_masters(),
            Fault::Isolate { sentinel } => self.rejoin_sentinel(sentinel),
            Fault::Strike { server, key } => {
                self.hosts[server].strikes.remove(&key);
            }
            Fault::Stranger { server, key, value } => {
                if self.strangers.contains(&number) {
                    let has = self.hosts[server].server.delete_if(&key, value.as_bytes());
                    self.robbed |= !has;
                    self.after_operator(server);
                }
            }
            Fault::Touch { .. }
            | Fault::Spoil { .. }
            | Fault::Dead { .. }
            | Fault::Cut { .. }
            | Fault::Kill { .. }
            | Fault::Halt { .. }
            | Fault::EndConnections { .. }
            | Fault::ForgetScripts { .. }
            | Fault::StepClock { .. }
            | Fault::Flush { .. }
            | Fault::Delete { .. }
            | Fault::Gone { .. }
            | Fault::ResetSentinels
            | Fault::MoveSlot { .. }
            | Fault::GiveWay { .. } => {}
        }
    }

    /// Blocks the runtime of the application for a while.
    pub fn block(&mut self, process: usize, lasts: u64) {
        let (at, number) = (self.now, self.faults.len());
        let fault = Fault::Block { process };
        self.faults.push(Planned { at, lasts, fault });
        self.fault_begins(number);
        self.at(at + lasts, Event::FaultEnds(number));
    }

    fn hold(&mut self, process: usize, server: usize, ways: Ways) {
        let link = self.link_mut(process, server);
        link.holds_requests += u32::from(ways.requests());
        link.holds_replies += u32::from(ways.replies());
    }

    fn end_hold(&mut self, process: usize, server: usize, ways: Ways) {
        let link = self.link_mut(process, server);
        link.holds_requests -= u32::from(ways.requests());
        link.holds_replies -= u32::from(ways.replies());
        for connection in self.connections_between(process, server) {
            self.release_held(connection);
        }
    }

    fn servers_but(&self, server: usize) -> impl Iterator<Item = usize> + use<> {
        (0..self.hosts.len()).filter(move |other| *other != server)
    }

    /// Ends a process. Its memory stays, so that the values in it do nothing more; its sockets are closed.
    pub fn kill(&mut self, process: usize) {
        for connection in self.connections_of(process) {
            self.client_closes(connection);
        }
        let it = &mut self.processes[process];
        it.dead = true;
        it.ended.get_or_insert(self.now);
    }

    /// Runs commands of a client that is none of the kit's.
    pub(super) fn as_stranger(&mut self, server: usize, commands: &[Vec<Bytes>]) {
        let time = self.server_time(server);
        for command in commands {
            self.hosts[server]
                .server
                .run(STRANGER, time, command, &mut Vec::new());
        }
        self.after_operator(server);
    }

    /// The command that puts waiters of killed processes into a queue.
    fn dead_waiters(&mut self, queue: &[u8], count: usize) -> Vec<Vec<Bytes>> {
        let now = self.server_time(0);
        let mut command = words(&["ZADD"]);
        command.push(queue.to_vec());
        for number in 0..count {
            let (address, lease) = (self.rng.next(), self.rng.next());
            let score = now + number as i64;
            let waiter = format!("{address:016x}/{lease:032x} 2000");
            command.extend(words(&[&score.to_string(), &waiter]));
        }
        let mut ends = words(&["PEXPIRE"]);
        ends.extend([queue.to_vec(), b"90000".to_vec()]);
        vec![command, ends]
    }

    /// Deletes the keys of a node of a cluster that have been over for a while. Elsewhere each question about such a key deletes
    /// it, but a node whose slot moves only says that the key is missing, and has it again when its clock is set back.
    fn delete_what_is_over(&mut self, server: usize) {
        let over = self.server_time(server) - DELETED_WITHIN;
        let host = &mut self.hosts[server];
        if host.server.cluster.is_some() {
            host.server.expire(over);
            self.after_operator(server);
        }
    }

    pub(super) fn after_operator(&mut self, server: usize) {
        self.spread(server);
        self.send_pushes(server);
    }
}

fn words(words: &[&str]) -> Vec<Bytes> {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}
