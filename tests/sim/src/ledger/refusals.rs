//! A caller that comes to a record is refused with it, and soon.

use super::calm::{arrives_by, keep_requests};
use super::causes::is_slow;
use super::kept::Refused;
use super::records::text_of;
use super::{Answer, Ledger, Record};
use crate::plan::{Plan, Topology, Verb, lock_name};
use crate::server::Role;
use crate::world::{Fault, LAST, LONGEST_STOP, MILLI, Planned, SECOND, State, slowest_segment};

/// A process tells its callers the server's last answer to its waiter for so long, as `answers.rs` has it.
const REMEMBERED: u64 = 2 * SECOND;
const REMEMBERED_IN_TROUBLE: u64 = 12 * SECOND;
/// How long a call waits beside a record, without a fault and after faults.
const PROMPT: u64 = SECOND;
const PROMPT_AFTER_TROUBLE: u64 = 6 * SECOND;

impl Ledger {
    pub(super) fn check_refusals(&mut self, plan: &Plan, state: &State) {
        let is_calm = plan.faults.is_empty() && !plan.stops_inside && !is_slow(plan);
        for refused in self.kept.refusals.clone() {
            match &refused.record {
                Some(bytes) => {
                    let mut records = self.kept.records.iter();
                    match records.find(|it| it.bytes == *bytes && it.key == refused.key) {
                        Some(record) => self.check_refusal(plan, &refused, &record.clone()),
                        // Tasks that are aborted leave the record that their lock has at the moment.
                        None if self.is_of_the_aborted(plan, bytes) => {}
                        None => self.blames(&refused, None, "a record that no owner has left"),
                    }
                }
                None => self.check_without_record(plan, &refused),
            }
        }
        if !plan.loses_data() {
            for record in self.kept.records.clone() {
                self.check_waiters(plan, state, &record);
                self.check_readiness(plan, &record);
                if is_calm {
                    self.check_together(plan, &record);
                }
            }
        }
    }

    /// Returns whether a process that drops its manager has left the record, whose text names the call.
    fn is_of_the_aborted(&self, plan: &Plan, record: &[u8]) -> bool {
        let text = String::from_utf8_lossy(record);
        let number = text.trim_end_matches('.').rsplit(' ').next();
        let call = number.and_then(|it| self.calls.get(it.parse::<usize>().ok()?));
        call.is_some_and(|call| plan.processes[call.process].leaves.is_some())
    }

    /// Checks a refusal with a record.
    fn check_refusal(&mut self, plan: &Plan, refused: &Refused, record: &Record) {
        let (asked, answered) = self.span_of(refused);
        let is_quorum = plan.topology == Topology::Redlock;
        if answered < record.ended {
            return self.blames(refused, Some(record), "a record is seen before its time");
        }
        if plan.loses_data() || plan.has(Fault::loses_data) {
            return;
        }
        let asked = asked.saturating_sub(self.shared_from(plan, refused));
        let steps = plan.clock_steps();
        let longest = record.lifetime / 100 * 101 + 5 * MILLI;
        // A node may get the record late.
        if let (Some((_, heard)), false) = (record.outcome, is_quorum)
            && record.is_confirmed(plan)
            && asked > self.arrives_at_last(plan, record).max(heard) + longest + steps
        {
            self.blames(refused, Some(record), "a record is seen after its time");
        }
        if self.is_forgotten_by(plan, record, asked) {
            self.blames(refused, Some(record), "a forgotten record is seen");
        }
        let of_the_key = self.kept.records.iter().filter(|it| it.key == record.key);
        let mut stands = of_the_key
            .filter(|it| it.bytes != record.bytes)
            .filter(|it| {
                self.stands(plan, it)
                    .is_some_and(|(from, until)| from < asked && answered < until)
            });
        if let Some(newer) = stands.next().cloned() {
            let text = format!(
                "{}\n  seen: {}",
                self.show_record(&newer),
                self.show_record(record)
            );
            self.violates("another record than the one that stands is seen", text);
        }
        let beside = self.claims.iter().any(|claim| {
            claim.key == record.key
                && claim.call != record.call
                && claim.from <= asked
                && answered <= claim.until
        });
        // One node of a quorum may have a record of an owner that had lost the others.
        if beside && !is_quorum {
            self.blames(
                refused,
                Some(record),
                "a record is seen while the key has an owner",
            );
        }
    }

    /// Returns when a late copy of the record may be stored, because a fault has kept a copy of the call's acquire, too, and the
    /// key was free when the two arrived.
    fn arrives_at_last(&self, plan: &Plan, record: &Record) -> u64 {
        let call = &self.calls[record.call];
        let kept = keep_requests(plan, call.process).filter(|it| {
            let keeps_both = Some(it.at) < call.answered;
            keeps_both && record.ended < arrives_by(it)
        });
        kept.map(arrives_by).max().unwrap_or(0)
    }

    /// Checks a refusal without a record.
    fn check_without_record(&mut self, plan: &Plan, refused: &Refused) {
        let call = &self.calls[refused.call];
        if call.answer != Answer::Busy
            || plan.has(Fault::loses_data)
            || plan.ends_early(call.process)
        {
            return;
        }
        let (asked, answered) = self.span_of(refused);
        let remembered = match plan.faults.is_empty() && !plan.stops_inside {
            true => REMEMBERED,
            false => REMEMBERED_IN_TROUBLE,
        };
        let of_the_key = self.kept.records.iter().filter(|it| it.key == refused.key);
        let stands = of_the_key.filter_map(|it| Some((it, self.stands(plan, it)?)));
        let mut stands =
            stands.filter(|(_, (from, until))| asked > from + remembered && answered < *until);
        if let Some((record, _)) = stands.next() {
            let record = record.clone();
            self.blames(
                refused,
                Some(&record),
                "refused without the record that stands",
            );
        }
    }

    /// Checks that no call waits long beside a record.
    fn check_waiters(&mut self, plan: &Plan, state: &State, record: &Record) {
        let Some((from, until)) = self.stands(plan, record) else {
            return;
        };
        let trouble = match plan.stops_inside {
            true => LAST + LONGEST_STOP,
            // Waiters hear of a record in a slot that moves.
            false if plan.faults.iter().all(|it| it.fault.is_hidden()) => 0,
            false => state.last_fault_ends(),
        };
        let is_calm = plan.faults.is_empty() && !plan.stops_inside;
        for number in 0..self.calls.len() {
            let call = &self.calls[number];
            let from = match is_calm {
                true => from.max(call.asked) + PROMPT,
                false => from.max(call.asked).max(trouble) + PROMPT_AFTER_TROUBLE,
            };
            let waits = call.keys == [record.key] && call.wait != Some(0);
            let is_late =
                call.asked < until && from < until && call.answered.is_none_or(|it| it > from);
            if waits && is_late && !plan.ends_early(call.process) {
                let text = format!("{}\n  {}", self.show_record(record), self.show(number));
                self.violates("a call waits beside a record", text);
                return;
            }
        }
    }

    /// Checks that a record is an answer as soon as a majority has answered, while one node is in trouble.
    fn check_readiness(&mut self, plan: &Plan, record: &Record) {
        let Some((from, until)) = self.stands(plan, record) else {
            return;
        };
        let named = |it: &Planned| it.fault.server();
        let Some(bad) = plan.faults.first().and_then(named) else {
            return;
        };
        let is_one = plan.faults.iter().all(|it| named(it) == Some(bad));
        let mut others = (0..plan.servers).filter(|server| *server != bad);
        let has_majority = others.all(|server| record.on.contains(&server));
        if plan.topology != Topology::Redlock || !is_one || plan.stops_inside || !has_majority {
            return;
        }
        let longest = 8 * slowest_segment(plan.latency) + 20 * MILLI;
        for number in 0..self.calls.len() {
            let call = &self.calls[number];
            if call.keys != [record.key]
                || call.asked < from.max(SECOND) + longest
                || plan.ends_early(call.process)
            {
                continue;
            }
            let beside = self.calls.iter().enumerate().any(|(other, it)| {
                other != number
                    && it.process == call.process
                    && it.keys.contains(&record.key)
                    && it.asked <= call.asked
                    && it.answered.is_none_or(|answered| answered >= call.asked)
            });
            let late = call.asked + longest;
            if !beside && late < until && call.answered.is_none_or(|answered| answered > late) {
                let text = format!("{}\n  {}", self.show_record(record), self.show(number));
                self.violates("a record of a majority is told late", text);
                return;
            }
        }
    }

    /// Checks that one question answers all callers of a process that wait for it.
    fn check_together(&mut self, plan: &Plan, record: &Record) {
        // The shortest time of a question. A caller of several keys answers those behind it in two questions.
        let question = plan.latency;
        let is_exact = question >= 5 * MILLI && !plan.verbs.contains(&Verb::Several);
        if !is_exact || plan.topology == Topology::Redlock {
            return;
        }
        for process in 0..plan.processes.len() {
            let refused = self.kept.refusals.iter();
            let mut told: Vec<(u64, u64)> = refused
                .filter(|it| it.record.as_ref() == Some(&record.bytes))
                .filter(|it| self.calls[it.call].process == process)
                .filter(|it| self.calls[it.call].keys == [record.key])
                .map(|it| self.span_of(it))
                .collect();
            told.sort_by_key(|(_, answered)| *answered);
            let Some((_, first)) = told.first().copied() else {
                continue;
            };
            let later = told.iter().find(|(asked, answered)| {
                asked + MILLI / 10 < first && *answered > first + question
            });
            if later.is_some() {
                let text = format!("p{process} {told:?}: {}", self.show_record(record));
                self.violates("callers of a process are told of a record one by one", text);
            }
        }
    }

    /// Checks that no waiter stands in the queue of a key with a record, where no fault kept the queue from its deletion.
    pub(super) fn check_queue_beside(&mut self, state: &State, call: usize, key: usize) {
        let topology = match state.hosts[0].server.cluster {
            Some(_) => Topology::Cluster,
            None => Topology::One,
        };
        let (lock, queue) = (lock_name(key), topology.queue_name(key));
        let waits_at = |server: usize| {
            let has_record = text_of(state, server, lock.as_bytes());
            let has_record = has_record.is_some_and(|text| text.starts_with(b"done/"));
            let millis = state.server_time(server) / 1_000;
            let queue = state.hosts[server].server.entry(queue.as_bytes());
            has_record && queue.is_some_and(|queue| !queue.is_over(millis))
        };
        // A replica has the changes of one script one by one.
        let is_master = |server: &usize| state.hosts[*server].server.role == Role::Master;
        let mut masters = (0..state.hosts.len()).filter(is_master);
        let waits = masters.any(waits_at);
        if waits && state.last_fault_ends() == 0 {
            let text = self.show(call);
            self.violates("a waiter stands in the queue of a key with a record", text);
        }
    }

    /// A caller shares the answer to a question that its process has sent so long before the call.
    pub(super) fn shared_from(&self, plan: &Plan, refused: &Refused) -> u64 {
        let process = self.calls[refused.call].process;
        let stops = plan.stops_processes();
        // An answer of PostgreSQL passes through several tasks, and the process may stand still in each. Elsewhere another
        // process that stops meanwhile makes the stop longer.
        let times = match plan.topology {
            Topology::Postgres => 3,
            _ => 2,
        };
        let stop = if stops { times * LONGEST_STOP } else { 0 };
        match plan.faults.is_empty() {
            true => 2 * slowest_segment(plan.latency) + stop,
            false => plan.processes[process].operation_timeout + 50 * MILLI + stop,
        }
    }

    pub(super) fn span_of(&self, refused: &Refused) -> (u64, u64) {
        let call = &self.calls[refused.call];
        call.span()
    }

    pub(super) fn blames(
        &mut self,
        refused: &Refused,
        record: Option<&Record>,
        rule: &'static str,
    ) {
        let record = record.map(|record| self.show_record(record));
        let bytes = refused.record.as_deref().unwrap_or_default();
        let text = format!(
            "{} with {:?}\n  {}",
            self.show(refused.call),
            String::from_utf8_lossy(bytes),
            record.unwrap_or_default()
        );
        self.violates(rule, text);
    }
}

#[cfg(test)]
mod tests {
    use lock_core::middleware::{Forgotten, RecordOutcome};

    use super::super::Owning;
    use super::super::kept::Forget;
    use super::super::tests::{asks, calm, leaves_record, with, world};
    use super::*;
    use crate::world::Ways;

    /// The rules that are broken if this call was refused with the record.
    fn broken_by(mut ledger: Ledger, plan: &Plan, call: usize) -> Vec<&'static str> {
        ledger.kept.refusals.push(Refused {
            call,
            key: 0,
            record: Some(b"paid".to_vec()),
            is_cooling_down: false,
            retry_after: None,
        });
        world().judge(ledger, plan, Ledger::check_refusals)
    }

    /// The rules that are broken where a call is refused with a record, so long behind the call that has forgotten it.
    fn broken(topology: Topology, stops_inside: bool, behind: u64) -> Vec<&'static str> {
        let mut plan = calm();
        (plan.topology, plan.stops_inside) = (topology, stops_inside);
        let mut ledger = Ledger::default();
        let owner = asks(&mut ledger, Owning::Alone, Some(0), 2, Some(2));
        leaves_record(&mut ledger, owner, (RecordOutcome::Stored, 3 * SECOND));
        ledger.kept.forgets.push(Forget {
            process: 0,
            key: 0,
            begun: 4 * SECOND,
            ended: Some(5 * SECOND),
            answer: Some(Forgotten::Yes),
        });
        let call = asks(&mut ledger, Owning::Alone, Some(0), 6, Some(6));
        let it = &mut ledger.calls[call];
        it.asked = 5 * SECOND + behind;
        (it.answered, it.answer) = (Some(it.asked), Answer::Busy);
        broken_by(ledger, &plan, call)
    }

    #[test]
    fn a_caller_shares_an_answer_that_is_older_than_the_stops_of_its_process() {
        let rule = "a forgotten record is seen";
        let question = 2 * slowest_segment(calm().latency);
        for (topology, stops) in [(Topology::One, 2), (Topology::Postgres, 3)] {
            let oldest = question + stops * LONGEST_STOP;
            assert!(broken(topology, true, oldest).is_empty());
            assert_eq!(broken(topology, true, oldest + MILLI), [rule]);
            assert!(broken(topology, false, question).is_empty());
            assert_eq!(broken(topology, false, question + MILLI), [rule]);
        }
    }

    #[test]
    fn a_record_may_be_seen_again_where_its_acquire_and_itself_were_kept() {
        // The owner has asked up to second 2, its record of a second is stored at second 3, and a call sees it at second 7.
        let broken = |from: u64, to: u64, process: usize| {
            let mut plan = with(Fault::Freeze {
                process,
                server: 0,
                ways: Ways::Both,
            });
            (plan.faults[0].at, plan.faults[0].lasts) = (from * SECOND, (to - from) * SECOND);
            let mut ledger = Ledger::default();
            let owner = asks(&mut ledger, Owning::Alone, Some(0), 2, Some(2));
            leaves_record(&mut ledger, owner, (RecordOutcome::Stored, 3 * SECOND));
            ledger.kept.records[0].lifetime = SECOND;
            let call = asks(&mut ledger, Owning::Alone, Some(0), 7, Some(7));
            ledger.calls[call].answer = Answer::Busy;
            broken_by(ledger, &plan, call)
        };
        let rule = "a record is seen after its time";
        assert!(broken(1, 6, 0).is_empty());
        assert_eq!(broken(1, 5, 0), [rule], "it was over by then");
        assert_eq!(broken(1, 6, 1), [rule], "another process");
        assert_eq!(broken(2, 6, 0), [rule], "the acquire was not kept");
    }
}
