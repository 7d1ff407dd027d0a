//! A record that was confirmed stands for its lifetime, and no owner is beside it.

use lock_core::middleware::{Forgotten, RecordOutcome};

use super::causes::is_slow;
use super::kept::Forget;
use super::{Ledger, Record};
use crate::plan::{Plan, Topology, lock_name};
use crate::server::Data;
use crate::world::{Fault, LAST, LONGEST_STOP, SECOND, State, slowest_segment};

/// How long after a fault its effects last.
const AFTERMATH: u64 = 2 * SECOND;
/// How long a record may be without an answer.
const ANSWERED: u64 = 4 * SECOND;

impl Ledger {
    pub fn check_records(&mut self, plan: &Plan, state: &State) {
        for record in self.kept.records.clone() {
            self.check_owners_beside(plan, &record);
            self.check_outcome(plan, state, &record);
            self.check_at_the_end(plan, state, &record);
        }
        self.check_refusals(plan, state);
    }

    /// Notes the store's answer to a record, and checks it against the keys of the servers.
    pub fn record_is(&mut self, plan: &Plan, state: &State, number: usize, outcome: RecordOutcome) {
        let record = &mut self.kept.records[number];
        record.outcome = Some((outcome, state.now));
        let record = record.clone();
        if self.stands(plan, &record).is_none() || plan.has(Fault::loses_data) {
            return;
        }
        let mut missing = !has_enough(plan, &servers_with(plan, state, &record));
        if outcome == RecordOutcome::Stored && plan.topology == Topology::Replicas {
            // The clock of a replica may be another one.
            let is_there = |replica: usize| {
                let name = lock_name(record.key);
                let entry = state.hosts[replica].server.entry(name.as_bytes());
                matches!(entry.map(|it| &it.data), Some(Data::Text(text)) if text.ends_with(&record.bytes))
            };
            missing |= !(plan.servers..state.hosts.len()).any(is_there);
        }
        if missing {
            let text = self.show_record(&record);
            self.violates("a record is confirmed and not there", text);
        }
    }

    /// From when and until when a record stands for certain.
    pub(super) fn stands(&self, plan: &Plan, record: &Record) -> Option<(u64, u64)> {
        let (_, heard) = record.outcome?;
        if !record.is_confirmed(plan) || plan.loses_data() {
            return None;
        }
        let forgotten = self.forgotten_from(record.key, record.ended);
        let until = record.stands_until().min(forgotten);
        (heard < until).then_some((heard, until))
    }

    /// Checks that the key had no other owner from the end of the record's owner to the end of the record.
    fn check_owners_beside(&mut self, plan: &Plan, record: &Record) {
        let forgotten = self.forgotten_from(record.key, record.ended);
        let until = match record.outcome {
            Some((RecordOutcome::Failed, _))
                if matches!(plan.topology, Topology::One | Topology::Postgres) =>
            {
                // The token stays for one more ttl, unless a copy of the request stores the record late, and it is forgotten.
                forgotten.min(record.ended + self.calls[record.call].ttl / 100 * 99)
            }
            // A minority has it, and the owner had not lost the lock when it ended.
            Some((RecordOutcome::Unacknowledged, _)) if plan.topology == Topology::Redlock => {
                record.ended
            }
            Some(_) if record.is_confirmed(plan) => forgotten.min(record.stands_until()),
            _ => return,
        };
        if plan.loses_data() || plan.topology == Topology::Redlock && plan.has(Fault::loses_data) {
            return;
        }
        let from = self.last_seen(record.call, record.key);
        let beside = self.claims.iter().find(|claim| {
            claim.call != record.call
                && claim.key == record.key
                && claim.from > from
                && claim.from < until
        });
        if let Some(beside) = beside.cloned() {
            let text = format!(
                "{}\n  {}",
                self.show_record(record),
                self.show_claim(&beside)
            );
            self.violates("an owner beside a record", text);
        }
    }

    /// Checks that an owner hears of its record, and that it is stored if the owner had the lock to its end.
    fn check_outcome(&mut self, plan: &Plan, state: &State, record: &Record) {
        let process = self.calls[record.call].process;
        if plan.ends_early(process) || plan.loses_data() || plan.has(Fault::loses_data) {
            return;
        }
        let is_calm = plan.faults.is_empty() && !plan.stops_inside && !is_slow(plan);
        let over = match plan.stops_inside {
            true => LAST + LONGEST_STOP,
            false => state.last_fault_ends(),
        };
        // The ledger does not wait for longer.
        let is_watched = record.ended < plan.work_ends + 2 * SECOND;
        let is_well = is_watched && (is_calm || record.ended > over + AFTERMATH);
        let rule = match (record.outcome, record.lasts) {
            // The background gives up when the lock would have run out by itself.
            (None, _) => is_well.then_some("a record has no answer"),
            (Some((RecordOutcome::Stored, heard)), _) if is_well => {
                (heard > record.ended + ANSWERED).then_some("a record is answered late")
            }
            (Some((RecordOutcome::Lost, heard)), Some(lasts)) => {
                let until = lasts.min(record.stands_until());
                let forgotten = self.forgotten_from(record.key, record.ended);
                (heard < until && heard < forgotten)
                    .then_some("a record is lost though its owner had the lock")
            }
            (Some((outcome, _)), Some(_)) => (is_calm && outcome != RecordOutcome::Stored)
                .then_some("a record is not stored without a fault"),
            _ => None,
        };
        if let Some(rule) = rule {
            self.violates(rule, self.show_record(record));
        }
    }

    /// Checks the keys of the servers when the managers are drained.
    fn check_at_the_end(&mut self, plan: &Plan, state: &State, record: &Record) {
        if plan.loses_data() {
            return;
        }
        let has = servers_with(plan, state, record);
        let wrong = if let Some((_, until)) = self.stands(plan, record) {
            // A node that has lost its data has no records. One of the majority that has stored this one may have it.
            let lost = (0..plan.servers).filter(|server| loses_data_after(plan, *server, record));
            let enough = match plan.has(Fault::loses_data) {
                true => has.is_empty() && lost.count() <= plan.servers / 2,
                false => !has_enough(plan, &has),
            };
            let is_calm = plan.faults.is_empty() && !plan.stops_inside && !is_slow(plan);
            // A server whose vote is still on its way to the owner gets no record.
            let begun = self.calls[record.call].answered.unwrap_or(record.ended);
            let are_heard = record.ended.saturating_sub(begun) > 4 * slowest_segment(plan.latency);
            // A drain waits for a majority, and the process may exit then.
            let exits = plan.processes[self.calls[record.call].process].exits;
            let lacks = is_calm
                && are_heard
                && exits.is_none()
                && record.lasts.is_some()
                && !record.on.iter().all(|server| has.contains(server));
            (until > state.now && (enough || lacks)).then_some("a confirmed record is gone")
        } else {
            let is_forgotten = self.is_forgotten_by(plan, record, state.now);
            (is_forgotten && !has.is_empty()).then_some("a forgotten record stands again")
        };
        if let Some(rule) = wrong {
            self.violates(rule, format!("on {has:?}: {}", self.show_record(record)));
        }
    }

    /// Checks that no server has a record of the key that was forgotten.
    pub fn check_forgotten(&mut self, plan: &Plan, state: &State, key: usize) {
        if plan.loses_data() || plan.has(Fault::loses_data) {
            return;
        }
        for record in self.kept.records.clone() {
            let has = match record.key == key && self.is_forgotten_by(plan, &record, state.now) {
                true => servers_with(plan, state, &record),
                false => Vec::new(),
            };
            if !has.is_empty() {
                let text = format!("on {has:?}: {}", self.show_record(&record));
                self.violates("a forgotten record stands again", text);
            }
        }
    }

    /// Returns whether a call that was over by `time` has found that the record does not stand any more.
    pub(super) fn is_forgotten_by(&self, plan: &Plan, record: &Record, time: u64) -> bool {
        let heard = record.outcome.map(|(_, heard)| heard);
        let counts = |forget: &Forget| match (forget.answer, plan.topology) {
            // On a quorum it may have deleted an earlier one while this one was on its way to the nodes.
            (Some(Forgotten::Yes), Topology::Redlock) => {
                let is_stored = record.is_confirmed(plan) && heard < Some(forget.begun);
                is_stored || record.ended < forget.begun && self.is_first_kept(plan, record, forget)
            }
            // It is beside no other owner, so nothing but this record can have been deleted since.
            (Some(Forgotten::Yes), _) => record.ended < forget.begun,
            (Some(Forgotten::Nothing), topology) => {
                let is_stored = topology != Topology::Redlock || record.is_confirmed(plan);
                // The row stays when the record is over, and has it again when the clock is set back.
                let stands_again =
                    topology == Topology::Postgres && plan.steps_back(forget.begun, u64::MAX) < 0;
                is_stored && !stands_again && heard.is_some_and(|heard| heard < forget.begun)
            }
            _ => false,
        };
        // A request to store the record may stand still in a connection, or be slow, while another one stores it. It arrives later.
        let process = self.calls[record.call].process;
        let comes_late = |forget: &Forget| {
            plan.faults.iter().any(|it| {
                let arrives = match it.fault {
                    Fault::Freeze { process: its, .. } if its == process => it.end(),
                    // Later segments of a connection arrive behind those that are slow.
                    Fault::Slow {
                        process: its, by, ..
                    } if its == process => it.end() + by + plan.segments(1),
                    _ => return false,
                };
                it.at <= heard.unwrap_or(record.ended) && arrives > forget.begun
            })
        };
        self.kept.forgets.iter().any(|forget| {
            let is_over = forget.ended.is_some_and(|ended| ended < time);
            is_over && forget.key == record.key && counts(forget) && !comes_late(forget)
        })
    }

    /// Returns whether nothing but this record can have been in its key before a call was over.
    fn is_first_kept(&self, plan: &Plan, record: &Record, forget: &Forget) -> bool {
        // Tasks that are aborted leave records of which the ledger does not hear.
        if plan.processes.iter().any(|it| it.leaves.is_some()) {
            return false;
        }
        let is_before = |ended: u64| forget.ended.is_none_or(|over| ended < over);
        let mut others = self.kept.records.iter().filter(|it| it.call != record.call);
        let mut cooldowns = self.kept.cooldowns.iter();
        !others.any(|it| it.key == record.key && is_before(it.ended))
            && !cooldowns
                .any(|it| self.calls[it.call].keys.contains(&record.key) && is_before(it.ended))
    }

    pub(super) fn show_record(&self, record: &Record) -> String {
        let ms = |time: u64| time as f64 / 1e6;
        let outcome = record.outcome.map(|(outcome, heard)| (outcome, ms(heard)));
        format!(
            "record {:?} for {} ms of k{}, from {:.3} on {:?}, {:?}: {}",
            String::from_utf8_lossy(&record.bytes),
            ms(record.lifetime),
            record.key,
            ms(record.ended),
            record.on,
            outcome,
            self.show(record.call)
        )
    }
}

/// The servers that have the record: of a cluster, the present masters.
fn servers_with(plan: &Plan, state: &State, record: &Record) -> Vec<usize> {
    let has = |server: &usize| has_record(state, *server, record);
    match plan.topology {
        Topology::Cluster => state.masters().filter(has).collect(),
        _ => (0..plan.servers).filter(has).collect(),
    }
}

fn loses_data_after(plan: &Plan, server: usize, record: &Record) -> bool {
    let mut faults = plan.faults.iter();
    faults.any(|it| {
        it.fault.loses_data() && it.fault.server() == Some(server) && it.end() >= record.ended
    })
}

/// Returns whether callers must find a record that these servers have.
fn has_enough(plan: &Plan, servers: &[usize]) -> bool {
    match plan.topology {
        // One of them has the key.
        Topology::Cluster => !servers.is_empty(),
        _ => servers.len() > plan.servers / 2,
    }
}

/// Returns whether a server has the record, in a key that is not over.
pub(super) fn has_record(state: &State, server: usize, record: &Record) -> bool {
    let name = lock_name(record.key);
    let text = text_of(state, server, name.as_bytes());
    text.is_some_and(|text| text.ends_with(&record.bytes) && text.starts_with(b"done/"))
}

/// The servers of a majority with one value in a key. In a cluster, the node that has the key.
pub fn servers_with_token(plan: &Plan, state: &State, key: usize) -> Vec<usize> {
    let name = lock_name(key);
    let servers = plan.servers;
    let text = |server: usize| text_of(state, server, name.as_bytes());
    if plan.topology == Topology::Cluster {
        return state.masters().filter(|it| text(*it).is_some()).collect();
    }
    let alike = |of: usize| {
        let alike = (0..servers).filter(|server| text(*server) == text(of));
        alike.collect::<Vec<_>>()
    };
    let sets = (0..servers)
        .filter(|server| text(*server).is_some())
        .map(alike);
    let most = sets.max_by_key(Vec::len);
    most.filter(|it| it.len() > servers / 2).unwrap_or_default()
}

/// The text in a key that is not over.
pub(super) fn text_of<'a>(state: &'a State, server: usize, name: &[u8]) -> Option<&'a [u8]> {
    let entry = state.hosts[server].server.entry(name)?;
    let millis = state.server_time(server) / 1_000;
    match &entry.data {
        Data::Text(text) if !entry.is_over(millis) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
#[path = "records_tests.rs"]
mod tests;
