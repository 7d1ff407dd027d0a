//! Registers of a node of a quorum: those that a stranger has raised so high that no token can be counted from them, and those
//! of a node that was flushed.

use std::collections::BTreeMap;

use super::Ledger;
use super::dead::addresses;
use crate::plan::{Plan, Topology};
use crate::server::{Bytes, Data, Entry};
use crate::world::{Fault, Host, State};

/// The lowest number from which no token can be counted (`HIGH_WATER_LIMIT` of lock-core), as a register has it.
const TOO_HIGH: &[u8] = b"9000000000000000";

impl Ledger {
    /// Checks that such a number stays on the nodes where a stranger has written it.
    pub fn check_registers(&mut self, plan: &Plan, state: &State) {
        let is_spoiled = |server: usize| {
            plan.has(|fault| matches!(fault, Fault::Spoil { server: at } if *at == server))
        };
        for (server, host) in state.hosts.iter().enumerate() {
            if let Some(register) = too_high(host).find(|_| !is_spoiled(server)) {
                let text = format!("s{server}: {}", String::from_utf8_lossy(register));
                self.violates("a register is too high on a node without a stranger", text);
            }
        }
    }
}

/// Returns whether a server that was flushed votes at once, because a process has taken it for a new one. The documentation of
/// `assume_fresh` says so: the process found all servers without data, and no answer of this one came back before the flush. Such
/// a process has connected again.
pub(super) fn is_taken_for_a_new_one(plan: &Plan, state: &State) -> bool {
    let mut servers = (0..state.hosts.len()).filter(|server| {
        let is_its = |fault: &Fault| matches!(fault, Fault::Flush { server: it } if it == server);
        plan.topology == Topology::Redlock && plan.has(is_its)
    });
    servers.any(|server| {
        let registers = fields(&state.hosts[server]);
        let field = |name: &[u8]| registers?.get(name);
        let name = field(b"name").filter(|_| field(b"opens").is_some_and(|opens| opens == b"0"));
        let is_its = |process: &usize| {
            let addresses = addresses(state, *process);
            addresses
                .iter()
                .any(|its| name.is_some_and(|name| name.starts_with(its)))
        };
        let namer = (0..plan.processes.len()).find(is_its);
        namer.is_some_and(|process| state.dials(process, server) > 1)
    })
}

/// Returns whether an entry is a vote whose number was raised. For its withdrawal it is a newer vote, which stays to its end.
pub(super) fn may_be_newer_than_its_withdrawal(host: &Host, entry: &Entry) -> bool {
    let Data::Text(token) = &entry.data else {
        return false;
    };
    too_high(host).any(|register| register.get(TOO_HIGH.len()..) == Some(token))
}

/// The registers of a node from which no token can be counted.
fn too_high(host: &Host) -> impl Iterator<Item = &Bytes> {
    let fields = fields(host).into_iter().flat_map(|fields| fields.iter());
    // The others are its name and the time from which it votes.
    let registers = fields.filter(|(field, _)| field.iter().all(u8::is_ascii_digit));
    let registers = registers.map(|(_, register)| register);
    registers.filter(|register| register.as_slice() >= TOO_HIGH)
}

fn fields(host: &Host) -> Option<&BTreeMap<Bytes, Bytes>> {
    match &host.server.entry(b"lockkit:!r")?.data {
        Data::Hash(fields) => Some(fields),
        Data::Text(_) | Data::Sorted(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Owning;
    use super::super::tests::{MANY, owns, with, world};
    use super::*;

    /// The rules that two owners at once break where process 0 has connected so often to a server with this loss, and its
    /// manager has named it: it votes from this time on.
    fn broken(loss: Fault, dials: usize, opens: &[u8]) -> Vec<&'static str> {
        let mut plan = with(loss);
        (plan.topology, plan.servers) = (Topology::Redlock, 3);
        let mut ledger = Ledger::default();
        owns(&mut ledger, Owning::Alone, 1, 2, 6);
        owns(&mut ledger, Owning::Alone, 2, 5, 7);
        let sim = world();
        sim.change(|state| {
            let card: [&[u8]; 3] = [b"SET", b"lockkit:!h:00000000000000aa", b"1\nhost-0"];
            state.stranger_runs(0, &card);
            let name: [&[u8]; 4] = [b"HSET", b"lockkit:!r", b"name", b"00000000000000aa/0"];
            state.stranger_runs(0, &name);
            state.stranger_runs(0, &[b"HSET", b"lockkit:!r", b"opens", opens]);
            for _ in 0..dials {
                state.dial(0, 0);
            }
        });
        sim.judge(ledger, &plan, Ledger::check_owners)
    }

    #[test]
    fn two_owners_are_there_where_a_process_takes_a_flushed_server_for_a_new_one() {
        let flush = Fault::Flush { server: 0 };
        assert!(broken(flush.clone(), 2, b"0").is_empty());
        assert_eq!(broken(flush.clone(), 1, b"0"), [MANY], "it has met it");
        assert_eq!(broken(flush, 2, b"1700000600000"), [MANY], "it waits");
        assert_eq!(broken(Fault::Flush { server: 1 }, 2, b"0"), [MANY]);
        let (server, keeps_data) = (0, false);
        let restart = Fault::Restart { server, keeps_data };
        assert_eq!(broken(restart, 2, b"0"), [MANY], "it has another name");
    }
}
