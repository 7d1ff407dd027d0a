//! What is due when: leases to look after, and tasks to wake.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::task::Waker;

use crate::active::Hold;
use crate::base::clock::Moment;

/// Ordered by time; a hold is told apart by its address, which its entry keeps alive.
#[derive(Default)]
pub(super) struct Schedule {
    holds: BTreeMap<(Moment, usize), Arc<Hold>>,
    timers: BTreeMap<(Moment, u64), Waker>,
    last_timer: u64,
}

fn address(hold: &Arc<Hold>) -> usize {
    Arc::as_ptr(hold).addr()
}

impl Schedule {
    /// Plans the look at a hold: its one entry, wherever it was before.
    pub(super) fn set_hold(&mut self, hold: &Arc<Hold>, at: Moment) {
        self.remove_hold(hold);
        if at < Moment::FAR {
            hold.set_scheduled(at);
            self.holds.insert((at, address(hold)), Arc::clone(hold));
        }
    }

    /// The caller keeps the hold alive: the last reference to a manager must not go with an entry,
    /// under the schedule's lock.
    pub(super) fn remove_hold(&mut self, hold: &Arc<Hold>) {
        self.holds.remove(&(hold.scheduled(), address(hold)));
        hold.set_scheduled(Moment::FAR);
    }

    /// Adds the timer, or gives it another waker.
    pub(super) fn add_timer(&mut self, at: Moment, id: &mut Option<u64>, waker: &Waker) {
        let id = *id.get_or_insert_with(|| {
            self.last_timer += 1;
            self.last_timer
        });
        self.timers
            .entry((at, id))
            .and_modify(|stored| stored.clone_from(waker))
            .or_insert_with(|| waker.clone());
    }

    pub(super) fn remove_timer(&mut self, at: Moment, id: u64) {
        self.timers.remove(&(at, id));
    }

    pub(super) fn next(&self) -> Moment {
        let hold = self
            .holds
            .first_key_value()
            .map_or(Moment::FAR, |((at, _), _)| *at);
        let timer = self
            .timers
            .first_key_value()
            .map_or(Moment::FAR, |((at, _), _)| *at);
        hold.min(timer)
    }

    /// Takes out up to `limit` holds that are due.
    pub(super) fn take_holds(&mut self, now: Moment, limit: usize) -> Vec<Arc<Hold>> {
        let mut due = Vec::new();
        while due.len() < limit
            && let Some(entry) = self.holds.first_entry()
            && entry.key().0 <= now
        {
            let hold = entry.remove();
            hold.set_scheduled(Moment::FAR);
            due.push(hold);
        }
        due
    }

    pub(super) fn take_timers(&mut self, now: Moment) -> Vec<Waker> {
        let mut due = Vec::new();
        while let Some(entry) = self.timers.first_entry()
            && entry.key().0 <= now
        {
            due.push(entry.remove());
        }
        due
    }
}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schedule")
            .field("holds", &self.holds.len())
            .field("timers", &self.timers.len())
            .finish()
    }
}
