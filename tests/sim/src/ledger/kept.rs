//! Keys that stay taken when their owners have ended: by a record, or by a cooldown.

use std::collections::BTreeSet;

use lock_core::Error;
use lock_core::middleware::{Forgotten, RecordOutcome};

use super::{Call, Ledger};
use crate::plan::{MOST_KEYS, Plan, Topology, key_name};
use crate::server::Refusal;
use crate::world::{Fault, SECOND, sim};

/// A request that was given up may still arrive for so long.
const LATE: u64 = 12 * SECOND;

/// A record that an owner leaves.
#[derive(Clone, Debug)]
pub struct Record {
    pub call: usize,
    pub key: usize,
    /// No other record of the history has them.
    pub bytes: Vec<u8>,
    pub lifetime: u64,
    /// The owner began to end its lock.
    pub ended: u64,
    /// Until when the lock would have lasted without another renewal, if the owner had it to its end.
    pub lasts: Option<u64>,
    /// The servers that had the owner's token when it ended.
    pub on: Vec<usize>,
    /// What the owner heard of it, and when.
    pub outcome: Option<(RecordOutcome, u64)>,
}

/// A cooldown that an owner leaves.
#[derive(Clone, Debug)]
pub struct Cooldown {
    pub call: usize,
    pub span: u64,
    /// The owner began to end its lock.
    pub ended: u64,
    /// As that of a record.
    pub lasts: Option<u64>,
}

/// A call of `LockManager::forget`.
#[derive(Clone, Debug)]
pub(super) struct Forget {
    pub process: usize,
    pub key: usize,
    pub begun: u64,
    pub ended: Option<u64>,
    /// Absent if it failed or was cancelled.
    pub answer: Option<Forgotten>,
}

/// What the error of a refused call says.
#[derive(Clone, Debug)]
pub(super) struct Refused {
    pub call: usize,
    pub key: usize,
    pub record: Option<Vec<u8>>,
    pub is_cooling_down: bool,
    pub retry_after: Option<u64>,
}

#[derive(Clone, Debug, Default)]
pub struct Kept {
    pub(super) records: Vec<Record>,
    pub(super) cooldowns: Vec<Cooldown>,
    pub(super) forgets: Vec<Forget>,
    pub(super) refusals: Vec<Refused>,
}

impl Ledger {
    /// The keys that stay taken because a record found no memory: its own, and the lower keys of a call that waits for one of
    /// these without end, because the call holds them meanwhile.
    pub(super) fn taken_without_room(&self, plan: &Plan) -> BTreeSet<usize> {
        let records = self.kept.records.iter().filter(|it| it.has_no_room(plan));
        let mut taken: BTreeSet<usize> = records.map(|it| it.key).collect();
        // From the highest key on, because only lower ones are added.
        for key in (0..plan.keys).rev() {
            if taken.contains(&key) {
                let waits =
                    |it: &&Call| (it.answered, it.wait) == (None, None) && it.keys.contains(&key);
                let keys = self.calls.iter().filter(waits).flat_map(|it| &it.keys);
                taken.extend(keys.filter(|lower| **lower < key));
            }
        }
        taken
    }

    /// Notes a record that is on its way. Returns its number.
    pub fn leaves_record(&mut self, record: Record) -> usize {
        self.kept.records.push(record);
        self.kept.records.len() - 1
    }

    pub fn cools(&mut self, cooldown: Cooldown) {
        self.kept.cooldowns.push(cooldown);
    }

    /// Notes that a record or a cooldown is about to be deleted. Returns the number of the call.
    pub fn forgets(&mut self, process: usize, key: usize) -> usize {
        self.kept.forgets.push(Forget {
            process,
            key,
            begun: sim().now(),
            ended: None,
            answer: None,
        });
        self.kept.forgets.len() - 1
    }

    pub fn forgot(&mut self, number: usize, answer: Option<Forgotten>) {
        let forget = &mut self.kept.forgets[number];
        forget.ended = Some(sim().now());
        forget.answer = answer;
    }

    /// Notes the error of a call.
    pub fn refused(&mut self, call: usize, error: &Error) {
        let of_the_call = &self.calls[call].keys;
        let named = error
            .key()
            .and_then(|name| (0..MOST_KEYS).find(|key| key_name(*key) == name));
        self.kept.refusals.push(Refused {
            call,
            key: named.unwrap_or(of_the_call[0]),
            record: error.record().map(<[u8]>::to_vec),
            is_cooling_down: error.is_cooling_down(),
            retry_after: error.retry_after().map(|after| after.as_nanos() as u64),
        });
        if error.record().is_some() {
            let key = self.kept.refusals.last().map_or(0, |refused| refused.key);
            sim().look(|state| self.check_queue_beside(state, call, key));
        }
    }

    /// When the owner of a call was last seen to have a key, or else when the call was answered.
    pub(super) fn last_seen(&self, call: usize, key: usize) -> u64 {
        let own = self
            .claims
            .iter()
            .filter(|it| it.call == call && it.key == key);
        let seen = own.map(|claim| claim.until).max();
        seen.or(self.calls[call].answered).unwrap_or(u64::MAX)
    }

    /// When the first call begins that may delete what the key has had since `ended`.
    pub(super) fn forgotten_from(&self, key: usize, ended: u64) -> u64 {
        let of_the_key = self.kept.forgets.iter().filter(|it| it.key == key);
        let since = of_the_key.filter(|it| it.ends() > ended);
        since.map(|it| it.begun).min().unwrap_or(u64::MAX)
    }
}

impl Forget {
    /// When it deletes nothing more.
    pub fn ends(&self) -> u64 {
        match (self.ended, self.answer) {
            (Some(ended), Some(_)) => ended,
            _ => self.begun + LATE,
        }
    }
}

impl Record {
    /// Returns whether its owner has heard that the record is stored where no later owner can overlook it.
    pub(super) fn is_confirmed(&self, plan: &Plan) -> bool {
        match self.outcome {
            Some((RecordOutcome::Stored, _)) => true,
            // Of several servers a minority may have it.
            Some((RecordOutcome::Unacknowledged, _)) => plan.topology != Topology::Redlock,
            _ => false,
        }
    }

    /// Returns whether the token of its owner stays in its place.
    pub(super) fn has_no_room(&self, plan: &Plan) -> bool {
        let is_full = |it: &Fault| it.refuses_as(Refusal::OutOfMemory);
        match self.outcome {
            Some((RecordOutcome::Failed, _)) => true,
            // Of several servers a minority has it, and the others may have had no memory for it.
            Some((RecordOutcome::Unacknowledged, _)) => {
                plan.topology == Topology::Redlock && plan.has(is_full)
            }
            _ => false,
        }
    }

    /// Until when it stands at least, if nothing deletes it.
    pub(super) fn stands_until(&self) -> u64 {
        self.ended + self.lifetime / 100 * 99
    }
}
