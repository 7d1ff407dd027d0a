//! The state of a world, and its checks.

use std::mem;

use super::design::{Fault, Key, Keys, Limits};

/// The number of a run. It is used again once nothing names the run.
pub(super) type Id = u8;

/// The place of a run in its process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Place {
    Lock,
    Peek,
    Claim,
    Handler,
    Record,
    Commit,
    /// The COMMIT has no answer yet.
    Committing,
    /// The connection has ended, and the COMMIT has no answer.
    Unknown,
    /// The process has ended the run, or has died, or there is no run.
    #[default]
    Ended,
}

/// The transaction of a run in the database. It stays open for a while after its connection has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Transaction {
    /// There is none, or it has rolled back.
    #[default]
    None,
    Open,
    /// Its COMMIT is on its way.
    Sent,
    Committed,
    /// Each statement commits alone.
    Autocommit,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Run {
    pub(super) place: Place,
    pub(super) transaction: Transaction,
    pub(super) request: u8,
    /// The place in the request of the key whose turn it is.
    pub(super) turn: u8,
    /// The keys whose rows the transaction has written.
    pub(super) rows: Keys,
    /// The keys whose handlers have run, except those whose life has ended after the commit.
    pub(super) effects: Keys,
    /// Whether the client was told that nothing is committed.
    pub(super) told_failed: bool,
}

/// A committed row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Record {
    pub(super) run: Id,
    /// Whether it contains the run's answer.
    pub(super) answered: bool,
    pub(super) expired: bool,
}

/// The committed state of a key, and the answer that clients know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Entry {
    pub(super) record: Option<Record>,
    /// The effects of this life.
    pub(super) effects: u8,
    /// The answer that a client was given in this life.
    pub(super) answer: Option<Id>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) lock: Option<Id>,
    /// The record in Redis, in a design that has one.
    pub(super) redis: Option<Id>,
    pub(super) entries: [Entry; 2],
    /// The entries before the last commit, while a failover may drop it.
    pub(super) before: [Entry; 2],
    pub(super) runs: [Run; 5],
    /// Whether a sweep has chosen the record of the first key.
    pub(super) sweeping: bool,
    /// How often each fault may still happen.
    pub(super) faults: [u8; Fault::Failover as usize + 1],
    /// The keys that the last step answered. The search takes them out of the state.
    pub(super) answered: Keys,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    TwoEffects,
    AnswerWithoutEffect,
    TwoAnswers,
    /// A run commits, and its client was told that it failed.
    EffectOfAFailure,
    /// No path without a fault leads to an answer.
    NeverAnswered,
}

impl Run {
    pub(super) fn is_open(&self) -> bool {
        matches!(self.transaction, Transaction::Open | Transaction::Sent)
    }

    /// Whether the connection of an open transaction has ended.
    pub(super) fn is_cut(&self) -> bool {
        self.is_open() && matches!(self.place, Place::Unknown | Place::Ended)
    }
}

impl World {
    pub(super) fn start(limits: &Limits) -> Self {
        let mut world = Self::default();
        let faults = limits.faults.iter();
        faults.for_each(|fault| world.faults[*fault as usize] += 1);
        world
    }

    pub(super) fn run(&mut self, id: Id) -> &mut Run {
        &mut self.runs[usize::from(id)]
    }

    /// Returns a number that nothing names.
    pub(super) fn unused(&self) -> Option<Id> {
        let entries = self.entries.iter().chain(&self.before);
        let mut named = vec![self.lock, self.redis];
        named.extend(entries.flat_map(|entry| [entry.answer, entry.record.map(|row| row.run)]));
        let is_default = |id: &Id| self.runs[usize::from(*id)] == Run::default();
        (0..5).find(|id| is_default(id) && !named.contains(&Some(*id)))
    }

    /// The record that a statement finds.
    pub(super) fn record(&self, key: Key) -> Option<Record> {
        self.entries[key].record.filter(|record| !record.expired)
    }

    /// Whether an open transaction, except that of one run, has written the row of a key.
    pub(super) fn is_locked(&self, key: Key, except: Option<Id>) -> bool {
        let mut runs = (0..).zip(&self.runs);
        runs.any(|(id, run)| except != Some(id) && run.is_open() && run.rows & 1 << key != 0)
    }

    pub(super) fn releases(&mut self, id: Id) {
        self.lock = self.lock.filter(|owner| *owner != id);
    }

    /// Ends a run in its process. The database notices later.
    pub(super) fn finishes(&mut self, id: Id) {
        self.releases(id);
        self.run(id).place = Place::Ended;
    }

    /// Commits the open transaction of a run.
    pub(super) fn commits(&mut self, id: Id) -> Result<(), Wrong> {
        self.keeps_before();
        let run = *self.run(id);
        for key in 0..2 {
            if run.rows & 1 << key != 0 {
                // A handler that sends COMMIT itself does so before the answer is written.
                self.writes(key, id, run.transaction != Transaction::Open);
            }
            self.entries[key].effects += run.effects >> key & 1;
            if self.entries[key].effects > 1 {
                return Err(Wrong::TwoEffects);
            }
        }
        (self.run(id).transaction, self.run(id).rows) = (Transaction::Committed, 0);
        match run.told_failed {
            true => Err(Wrong::EffectOfAFailure),
            false => Ok(()),
        }
    }

    /// Writes and commits the row of a key.
    pub(super) fn writes(&mut self, key: Key, run: Id, answered: bool) {
        let old = self.entries[key].record.filter(|row| row.expired);
        if old.is_some_and(|row| row.run != run) {
            self.ends_life(key);
        }
        self.entries[key].record = Some(Record {
            run,
            answered,
            expired: old.is_some_and(|row| row.run == run),
        });
    }

    /// A run that has committed may still give its answer, which is of the old life.
    pub(super) fn ends_life(&mut self, key: Key) {
        self.entries[key] = Entry::default();
        let committed = |run: &&mut Run| run.transaction == Transaction::Committed;
        let runs = self.runs.iter_mut().filter(committed);
        runs.for_each(|run| run.effects &= !(1 << key));
    }

    /// Keeps the entries for a failover that drops the commit which follows.
    pub(super) fn keeps_before(&mut self) {
        if self.faults[Fault::Failover as usize] > 0 {
            self.before = self.entries;
        }
    }

    /// Drops the last commit, with the answers about it, and all transactions.
    pub(super) fn fails_over(&mut self) {
        (0..2).for_each(|key| self.ends_life(key));
        self.entries = mem::take(&mut self.before);
        self.keeps_before();
        self.sweeping = false;
        for run in self.runs.iter_mut().filter(|run| run.is_open()) {
            run.transaction = Transaction::None;
            if run.place != Place::Ended {
                run.place = Place::Unknown;
            }
        }
    }

    /// Gives a client the answer of a run.
    pub(super) fn answers(&mut self, key: Key, answer: Id) -> Result<(), Wrong> {
        self.answered |= 1 << key;
        let entry = &mut self.entries[key];
        let first = *entry.answer.get_or_insert(answer);
        match (entry.effects, first == answer) {
            (0, _) => Err(Wrong::AnswerWithoutEffect),
            (_, true) => Ok(()),
            (_, false) => Err(Wrong::TwoAnswers),
        }
    }

    /// Gives the client of a run the run's own answers.
    pub(super) fn answers_own(&mut self, id: Id) -> Result<(), Wrong> {
        let effects = self.run(id).effects;
        let mut keys = (0..2).filter(|key| effects & 1 << key != 0);
        keys.try_for_each(|key| self.answers(key, id))
    }

    /// Forgets what decides no later step.
    pub(super) fn settles(&mut self) {
        for run in self.runs.iter_mut().filter(|run| run.place == Place::Ended) {
            (run.request, run.turn) = (0, 0);
            if !run.is_open() {
                *run = Run::default();
            }
        }
    }
}
