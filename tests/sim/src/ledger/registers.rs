//! Registers of a node of a quorum that a stranger has raised so high that no token can be counted from them.

use super::Ledger;
use crate::plan::Plan;
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

/// Returns whether an entry is a vote whose number was raised. For its withdrawal it is a newer vote, which stays to its end.
pub(super) fn may_be_newer_than_its_withdrawal(host: &Host, entry: &Entry) -> bool {
    let Data::Text(token) = &entry.data else {
        return false;
    };
    too_high(host).any(|register| register.get(TOO_HIGH.len()..) == Some(token))
}

/// The registers of a node from which no token can be counted.
fn too_high(host: &Host) -> impl Iterator<Item = &Bytes> {
    let registers = host.server.entry(b"lockkit:!r");
    let fields = registers.and_then(|registers| match &registers.data {
        Data::Hash(fields) => Some(fields),
        Data::Text(_) | Data::Sorted(_) => None,
    });
    let fields = fields.into_iter().flat_map(|fields| fields.iter());
    // The others are its name and the time from which it votes.
    let registers = fields.filter(|(field, _)| field.iter().all(u8::is_ascii_digit));
    let registers = registers.map(|(_, register)| register);
    registers.filter(|register| register.as_slice() >= TOO_HIGH)
}
