//! The steps of a run in its process.

use super::design::{Arbiter, Change, Key, Keys, Limits};
use super::world::{Id, Place, Run, Transaction, World, Wrong};

impl Run {
    fn request(&self, limits: &Limits) -> &'static [Key] {
        limits.requests[usize::from(self.request)]
    }

    /// Turns to the next key of the request, or to the end of the transaction.
    fn turns(&mut self, limits: &Limits) {
        self.turn += 1;
        self.place = Place::Claim;
        if usize::from(self.turn) == self.request(limits).len() {
            (self.turn, self.place) = (0, Place::Commit);
        }
    }

    /// Begins the transaction, or goes on in it.
    fn works(&mut self) {
        self.transaction = Transaction::Open;
        self.place = Place::Handler;
    }
}

impl World {
    /// Takes the next step of a run. A run that waits for the database changes nothing.
    pub(super) fn goes_on(&mut self, id: Id, limits: &Limits) -> Result<(), Wrong> {
        let run = *self.run(id);
        let key = run.request(limits)[usize::from(run.turn)];
        match run.place {
            Place::Lock => return self.locks(id, limits),
            Place::Peek if self.record(key).is_some() => return self.finishes_with_record(id, key),
            Place::Peek => self.run(id).place = Place::Claim,
            Place::Claim => return self.claims(id, key, limits),
            Place::Handler => {
                self.run(id).effects |= 1 << key;
                self.run(id).place = Place::Record;
            }
            Place::Record => return self.records(id, key, limits),
            Place::Commit => {
                self.run(id).transaction = Transaction::Sent;
                self.run(id).place = Place::Committing;
                if limits.has(Change::ReleaseBeforeCommit) {
                    self.releases(id);
                }
                if limits.has(Change::AnswerBeforeCommit) {
                    return self.answers_own(id);
                }
            }
            Place::Committing if run.transaction == Transaction::Committed => {
                match limits.arbiter {
                    Arbiter::RedisAtRelease if self.lock == Some(id) => self.redis = Some(id),
                    Arbiter::SecondTransaction if self.record(key).is_none() => {
                        self.keeps_before();
                        self.writes(key, id, true);
                    }
                    _ => {}
                }
                self.finishes(id);
                return self.answers_own(id);
            }
            Place::Unknown => return self.resolves(id, key, limits),
            Place::Committing | Place::Ended => {}
        }
        Ok(())
    }

    fn locks(&mut self, id: Id, limits: &Limits) -> Result<(), Wrong> {
        self.run(id).place = match limits.has(Change::NoPeek) {
            true => Place::Claim,
            false => Place::Peek,
        };
        if let Some(answer) = self.redis {
            self.finishes(id);
            return self.answers(0, answer);
        }
        match self.lock {
            _ if limits.has(Change::NoCommonLock) => {}
            Some(_) => self.finishes(id),
            None => self.lock = Some(id),
        }
        Ok(())
    }

    /// Begins the transaction, with a claim in the designs that have one.
    fn claims(&mut self, id: Id, key: Key, limits: &Limits) -> Result<(), Wrong> {
        let is_locked = self.is_locked(key, Some(id));
        let found = self.record(key);
        let waits_for_sweep = key == 0 && self.sweeping && !limits.has(Change::SweepsByName);
        let is_free = found.is_none() || limits.has(Change::TakesOverLiveRecord);
        match limits.arbiter {
            Arbiter::Claim if waits_for_sweep => return Ok(()),
            Arbiter::Claim if is_free && !is_locked => self.run(id).rows |= 1 << key,
            Arbiter::Claim if limits.has(Change::ClaimIgnoresRows) => {}
            Arbiter::Claim if is_locked || self.run(id).request(limits).len() == 1 => {
                return self.finishes_with_record(id, key);
            }
            Arbiter::Claim => {
                // The caller gets the recorded answer, and its transaction goes on to the other key.
                self.run(id).works();
                self.run(id).turns(limits);
                return self.answers_record(key);
            }
            Arbiter::Started if is_locked => return Ok(()),
            Arbiter::Started if found.is_none_or(|row| !row.answered) => {
                self.keeps_before();
                self.writes(key, id, false);
            }
            Arbiter::Started => return self.finishes_with_record(id, key),
            _ => {}
        }
        self.run(id).works();
        Ok(())
    }

    /// Writes the answer, and turns to what follows.
    fn records(&mut self, id: Id, key: Key, limits: &Limits) -> Result<(), Wrong> {
        let run = *self.run(id);
        let committed = self.entries[key].record;
        let finds_row = run.rows & 1 << key != 0 || committed.is_some_and(|row| row.run == id);
        let is_recorded = self.record(key).is_some();
        let writes = match limits.arbiter {
            Arbiter::Claim if finds_row => true,
            Arbiter::Claim if limits.has(Change::CompleteIgnoresRows) => false,
            Arbiter::Claim => {
                self.finishes(id);
                return Ok(());
            }
            Arbiter::RedisBeforeCommit => {
                self.redis = Some(id);
                false
            }
            Arbiter::SecondTransaction | Arbiter::RedisAtRelease => false,
            Arbiter::NoUniqueIndex => !is_recorded,
            _ if self.is_locked(key, Some(id)) => return Ok(()),
            Arbiter::InsertAtEnd if is_recorded => return self.finishes_with_record(id, key),
            Arbiter::InsertOrNothing => !is_recorded,
            Arbiter::InsertAtEnd | Arbiter::Started => true,
        };
        if run.transaction != Transaction::Autocommit {
            self.run(id).rows |= Keys::from(writes) << key;
            self.run(id).turns(limits);
            return Ok(());
        }
        if writes {
            self.keeps_before();
            self.writes(key, id, true);
        }
        self.run(id).transaction = Transaction::Committed;
        self.run(id).place = Place::Committing;
        Ok(())
    }

    /// Finds out by a claim what became of a COMMIT.
    fn resolves(&mut self, id: Id, key: Key, limits: &Limits) -> Result<(), Wrong> {
        let is_busy = !limits.has(Change::UnknownIsRead) && self.is_locked(key, None);
        if limits.has(Change::UnknownRunsAgain) {
            let run = self.run(id);
            (run.rows, run.effects) = (0, 0);
            run.works();
        } else if limits.has(Change::UnknownIsSuccess) {
            self.finishes(id);
            return self.answers_own(id);
        } else if is_busy || self.run(id).request(limits).len() > 1 {
            // The client sends the request again, and its next claim decides.
            self.finishes(id);
        } else {
            self.run(id).told_failed = self.record(key).is_none();
            return self.finishes_with_record(id, key);
        }
        Ok(())
    }

    fn answers_record(&mut self, key: Key) -> Result<(), Wrong> {
        match self.record(key) {
            Some(row) if row.answered => self.answers(key, row.run),
            _ => Ok(()),
        }
    }

    /// Ends the run with the recorded answer, or with an error where there is none.
    fn finishes_with_record(&mut self, id: Id, key: Key) -> Result<(), Wrong> {
        self.finishes(id);
        self.answers_record(key)
    }
}
