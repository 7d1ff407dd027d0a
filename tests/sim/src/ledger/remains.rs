//! Nothing is left behind when the managers are drained.

use lock_core::middleware::RecordOutcome;

use super::calm::is_brought_back;
use super::registers::may_be_newer_than_its_withdrawal;
use super::waits::AFTERMATH;
use super::{Answer, Call, Cooldown, Ledger};
use crate::plan::{Plan, Topology, Verb, lock_name};
use crate::server::{Data, Entry, slot_of};
use crate::world::{Fault, Host, SECOND, Sim, State};

impl Ledger {
    pub fn check_remains(&mut self, plan: &Plan, sim: &Sim) {
        // A key whose set of shares was deleted stays to its end.
        let keeps = |fault: &Fault| match fault {
            Fault::Delete { key, .. } => key.starts_with(b"lockkit:!s"),
            fault => fault.is_death(),
        };
        if plan.has(keeps) {
            return;
        }
        // A crash may lose the release of a ticket, which then stays as long as it may be picked up. Others wait for it.
        if sim.look(|state| (0..plan.keys).any(|key| is_brought_back(plan, state, key))) {
            return;
        }
        // Waiters wait for the end of a token that stays in place of a record.
        if self.kept.records.iter().any(|it| it.has_no_room(plan)) {
            return;
        }
        // A drain does not wait for copies of requests that arrive late, also because the runtime was blocked.
        let exits = plan.processes.iter().any(|process| process.exits.is_some());
        // Neither does the keeper of a manager that was dropped. On a quorum it withdraws its votes.
        let leaves = plan.topology != Topology::Redlock
            && plan
                .processes
                .iter()
                .any(|process| process.leaves.is_some());
        let is_calm = plan.faults.is_empty() && !plan.has_stops();
        if (exits || leaves) && !is_calm {
            return;
        }
        // The set of a lock that a stranger has deleted stays to its end.
        let deletes =
            plan.has(|fault| matches!(fault, Fault::Delete { .. } | Fault::Strike { .. }));
        for (process, is_complete) in self.drained.clone() {
            if !is_complete {
                self.violates("a manager is not drained", format!("p{process}"));
            }
        }
        let has_dead_waiters = plan.has(|fault| matches!(fault, Fault::Gone { .. }));
        // A failover may forget releases.
        if plan.has(|fault| matches!(fault, Fault::Promote { .. } | Fault::Crash { .. })) {
            return;
        }
        if !self.interrupted.is_empty() {
            return;
        }
        // The keys, and what is in each on which server.
        let left: Vec<(String, String)> = sim.look(|state| {
            state
                .masters()
                .flat_map(|server| {
                    let millis = state.server_time(server) / 1_000;
                    let host = &state.hosts[server];
                    let entries = host.server.entries();
                    entries
                        .filter(move |(_, entry)| entry.ends.is_none_or(|ends| ends >= millis))
                        .filter(move |(_, entry)| !may_be_newer_than_its_withdrawal(host, entry))
                        .filter(move |(key, _)| !may_keep_entries(plan, server, key))
                        .map(move |(key, entry)| (server, key, entry))
                })
                .filter(|(_, _, entry)| !cools(entry))
                .filter(|(_, key, entry)| !self.is_kept(key, entry, plan, state))
                .filter(|(_, key, _)| !self.is_passed_on_or_freed(key, state.now))
                // A drain of a quorum waits for a majority.
                .filter(|(_, key, entry)| {
                    let may_stay = exits && plan.topology == Topology::Redlock;
                    !may_stay || is_of_majority(key, entry, state)
                })
                .map(|(server, key, entry)| {
                    let key = String::from_utf8_lossy(key).into_owned();
                    let shown = format!("s{server} {key} {entry:?}");
                    (key, shown)
                })
                .filter(|(key, _)| !stays(key, plan))
                .filter(|(key, _)| !(deletes && key.starts_with("lockkit:!s")))
                .filter(|(key, _)| !is_parted_from_its_key(plan, key))
                // The dead stay in a queue until a lock is released.
                .filter(|(key, _)| !key.starts_with("lockkit:!q") || !has_dead_waiters)
                .collect()
        });
        // A client of another library ends with its process, and its lock by its ttl.
        let is_foreign = |key: &String| {
            let mut foreign = self.foreign.iter();
            plan.ends_early(0) && foreign.any(|it| *key == lock_name(it.key))
        };
        if !left.iter().all(|(key, _)| is_foreign(key)) {
            let shown: Vec<String> = left.into_iter().map(|(_, shown)| shown).collect();
            self.violates("left behind", shown.join(", "));
        }
    }

    /// Returns whether a ticket or an order of a moment ago keeps a key.
    fn is_passed_on_or_freed(&self, name: &[u8], now: u64) -> bool {
        let is_named = |key: usize| lock_name(key).as_bytes() == name;
        let mut keys = self.tickets.iter().map(|ticket| ticket.key);
        let passed_on = keys.any(|key| is_named(key) && self.is_on_its_way_at(key, now));
        let orders = self.orders.iter().filter(|order| is_named(order.key));
        let mut freed = orders.map(|order| order.answered.unwrap_or(now) + 2 * SECOND);
        passed_on || freed.any(|until| until > now)
    }

    /// Returns whether an owner has left a record in the key, or its token stays in place of a record: where there was no
    /// memory for it, or on a node of a quorum that has missed it while no majority has confirmed it.
    fn is_kept(&self, key: &[u8], entry: &Entry, plan: &Plan, state: &State) -> bool {
        let Data::Text(text) = &entry.data else {
            return false;
        };
        let name = |key: usize| lock_name(key).into_bytes();
        let cools = |it: &Cooldown| {
            let keys = &self.calls[it.call].keys;
            text.starts_with(b"cooling/")
                && it.ended + 2 * it.span > state.now
                && keys.iter().any(|of| name(*of) == key)
        };
        let may_miss = plan.topology == Topology::Redlock && !plan.faults.is_empty();
        // Tasks that are aborted leave the record that their lock has at the moment.
        let is_of_the_aborted = |call: &Call| {
            let leaves = plan.processes[call.process].leaves;
            let until = leaves.map_or(0, |leaves| leaves + 3 * call.ttl);
            let is_owner = call.answer == Answer::Granted && call.left.is_none();
            is_owner && until > state.now && call.keys.iter().any(|of| name(*of) == key)
        };
        let aborted = may_miss && plan.verbs.contains(&Verb::Records);
        let mut records = self.kept.records.iter();
        self.kept.cooldowns.iter().any(cools)
            || aborted && self.calls.iter().any(is_of_the_aborted)
            || records.any(|it| {
                let ttl = self.calls[it.call].ttl;
                let is_stored = matches!(it.outcome, Some((RecordOutcome::Stored, _)));
                let token_stays = may_miss && !is_stored && it.ended + 3 * ttl > state.now;
                key == name(it.key) && (token_stays || text.ends_with(&it.bytes))
            })
    }
}

/// The mark, the registers of a node and the cards of managers stay, and a queue with dead waiters stays to its end.
pub(super) fn stays(key: &str, plan: &Plan) -> bool {
    // Of another namespace, too.
    let own = key.split_once('!').map_or("", |(_, own)| own);
    own.starts_with('f')
        || own.starts_with('r')
        || own.starts_with("h:")
        || plan.has(|fault| matches!(fault, Fault::Dead { .. })) && own.starts_with('q')
}

/// Returns whether the set is one of shares whose key may be lost without it: the key was at another node while its slot
/// moved, and that node has lost its data. Such a set stays to its end, as that of a key which a stranger has deleted.
fn is_parted_from_its_key(plan: &Plan, set: &str) -> bool {
    let of = (0..plan.keys).find(|of| set == format!("lockkit:!s:{{{}}}", lock_name(*of)));
    let Some(its) = of.map(|of| slot_of(lock_name(of).as_bytes())) else {
        return false;
    };
    let losses = || plan.faults.iter().filter(|it| it.fault.loses_data());
    plan.faults.iter().any(|it| {
        let moves = matches!(it.fault, Fault::MoveSlot { slot, .. } if slot == its);
        // A move goes on when its nodes do.
        moves && losses().any(|loss| it.at <= loss.end() && loss.at <= it.end() + AFTERMATH)
    })
}

/// Returns whether the queue of a node may keep the entry of an owner. The release notifies the waiters although the right to
/// remove the entry is missing, and does not come again.
fn may_keep_entries(plan: &Plan, server: usize, key: &[u8]) -> bool {
    plan.topology == Topology::Redlock
        && key.starts_with(b"lockkit:!q")
        && plan.has(|fault| fault.denies("ZREM") && fault.server() == Some(server))
}

/// Returns whether a cooldown or a tick keeps the key until its end.
fn cools(entry: &Entry) -> bool {
    matches!(&entry.data, Data::Text(value) if value.starts_with(b"cooling/"))
}

/// Returns whether the entry is neither a lock nor a queue, or a majority of the servers has it.
fn is_of_majority(key: &[u8], entry: &Entry, state: &State) -> bool {
    let is_queue = key.starts_with(b"lockkit:!q");
    let has = |host: &&Host| {
        let other = host.server.entry(key);
        other.is_some_and(|other| is_queue || other.data == entry.data)
    };
    let hosts = state.hosts.iter().filter(has).count();
    let is_known = is_queue || matches!(entry.data, Data::Text(_));
    !is_known || hosts > state.hosts.len() / 2
}

#[cfg(test)]
mod tests {
    use super::super::tests::{calm, plans};
    use super::*;

    #[test]
    fn a_set_of_shares_stays_if_its_key_was_at_a_node_that_has_lost_its_data() {
        // The key whose slot moves in the seconds 4 to 5, and the second at which a node loses its data.
        let is_parted = |moves: usize, lost: u64, set: &str| {
            let mut plan = calm();
            plan.keys = 2;
            let slot = slot_of(lock_name(moves).as_bytes());
            let faults = [
                (
                    4,
                    Fault::MoveSlot {
                        slot,
                        further: 0,
                        in_dispute: false,
                    },
                ),
                (lost, Fault::Flush { server: 0 }),
            ];
            for (at, fault) in faults {
                plans(&mut plan, (at * 1_000, at * 1_000 + 1_000), fault);
            }
            is_parted_from_its_key(&plan, set)
        };
        let set = "lockkit:!s:{lockkit:k1}";
        assert!(is_parted(1, 4, set));
        assert!(is_parted(1, 6, set));
        assert!(!is_parted(1, 8, set));
        assert!(!is_parted(1, 2, set));
        assert!(!is_parted(0, 4, set));
        assert!(!is_parted(1, 4, "lockkit:k1"));
    }
}
