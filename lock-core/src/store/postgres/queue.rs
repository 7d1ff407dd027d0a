//! The swaps that wait for their turn.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use tokio::sync::{Notify, oneshot};

use super::outbox::Outbox;
use crate::base::sync::lock;
use crate::store::Failure;
use crate::store::cells::{Stored, Swap, Swapped};

/// The most swaps in one statement. It waits for the slowest of them.
const MOST: usize = 64;
/// The bytes of documents at which a statement is full. A renewal behind large records waits for no more of them.
const FULL: usize = 256 << 10;

/// The swaps that wait for their turn, and the messages behind those that are done.
#[derive(Default)]
pub(super) struct Queue {
    pending: Mutex<Vec<Pending>>,
    pub(super) bell: Notify,
    pub(super) outbox: Outbox,
}

pub(super) struct Pending {
    /// One of them, or several that are done together or not at all.
    pub(super) swaps: Vec<Swap>,
    pub(super) answer: oneshot::Sender<Result<Swapped, Failure>>,
}

impl Queue {
    pub(super) async fn swap(&self, swaps: Vec<Swap>) -> Result<Swapped, Failure> {
        let (answer, answered) = oneshot::channel();
        lock(&self.pending).push(Pending { swaps, answer });
        self.bell.notify_one();
        answered.await.unwrap_or_else(|_| {
            Err(Failure::unanswered(
                "the connection to PostgreSQL broke before the answer",
            ))
        })
    }

    /// Fails all that wait, and those that come, because no server can be reached.
    pub(super) async fn refuse(&self, failure: &Failure) {
        loop {
            for pending in std::mem::take(&mut *lock(&self.pending)) {
                let _ = pending.answer.send(Err(failure.clone()));
            }
            self.bell.notified().await;
        }
    }

    /// Takes those that go together. One whose caller is gone is never sent.
    pub(super) fn take(&self) -> Vec<Pending> {
        let mut pending = lock(&self.pending);
        let mut keys = HashSet::new();
        let (mut taken, mut left, mut bytes) = (Vec::new(), Vec::new(), 0);
        for one in pending.drain(..) {
            if one.answer.is_closed() {
                continue;
            }
            // A key that waits keeps its order.
            let is_free = one.swaps.iter().all(|swap| !keys.contains(&swap.key));
            keys.extend(one.swaps.iter().map(|swap| Arc::clone(&swap.key)));
            match is_free && taken.len() < MOST && bytes < FULL {
                true => {
                    bytes += one.swaps.iter().map(|swap| swap.bytes.len()).sum::<usize>();
                    taken.push(one);
                }
                false => left.push(one),
            }
        }
        *pending = left;
        taken
    }

    /// Answers the swaps that wait and name an earlier write than the newest of their key. The server would refuse them.
    pub(super) fn outrun(&self, newest: &HashMap<Arc<str>, Stored>) {
        let mut pending = lock(&self.pending);
        for one in std::mem::take(&mut *pending) {
            let mut swaps = one.swaps.iter();
            let newest = swaps.find_map(|swap| {
                let newest = newest.get(&swap.key);
                newest.filter(|newest| newest.written.revision > swap.seen.revision)
            });
            match newest {
                Some(newest) => drop(one.answer.send(Ok(Swapped::Outrun(newest.clone())))),
                None => pending.push(one),
            }
        }
    }

    /// Returns the newest writes of the keys of a statement, if other swaps wait.
    pub(super) fn newest(&self, swaps: &[&Swap], results: &[Swapped]) -> HashMap<Arc<str>, Stored> {
        if lock(&self.pending).is_empty() {
            return HashMap::new();
        }
        let each = swaps.iter().zip(results).filter_map(|(swap, result)| {
            let newest = match result {
                Swapped::Done(written) => Stored {
                    written: *written,
                    bytes: swap.bytes.to_vec(),
                },
                Swapped::Changed(stored, _) => stored.clone()?,
                Swapped::Outrun(_) | Swapped::Deaf(_) | Swapped::Again => return None,
            };
            Some((Arc::clone(&swap.key), newest))
        });
        each.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::ServerTime;
    use crate::store::cells::{OwnerFence, Written};

    fn swap(key: &str, revision: u64) -> Swap {
        Swap {
            key: key.into(),
            seen: written(revision),
            bytes: Vec::new().into(),
            ends: 0,
            lasts: 0,
            now: ServerTime(0),
            until: ServerTime(u64::MAX),
            fence: OwnerFence::None,
            ends_a_hold: false,
            may_be_lost: false,
            pushes: Vec::new(),
        }
    }

    fn written(revision: u64) -> Written {
        let at = ServerTime(5);
        Written { revision, at }
    }

    /// Returns which of these swaps of `k` are outrun by this answer to one of `k` and one of `l`, which has changed nothing.
    fn outrun(waiting: &[&[(&str, u64)]], answer: Swapped) -> Vec<bool> {
        let queue = Queue::default();
        let answers: Vec<_> = waiting
            .iter()
            .map(|swaps| {
                let (answer, answered) = oneshot::channel();
                let swaps = swaps.iter().map(|(key, revision)| swap(key, *revision));
                let swaps = swaps.collect();
                lock(&queue.pending).push(Pending { swaps, answer });
                answered
            })
            .collect();
        let sent = [swap("k", 7), swap("l", 7)];
        let newest = queue.newest(&sent.each_ref(), &[answer, Swapped::Again]);
        queue.outrun(&newest);
        let is_outrun = answers.into_iter().map(|mut answered| {
            let Ok(answer) = answered.try_recv() else {
                return false;
            };
            matches!(answer, Ok(Swapped::Outrun(newest)) if newest.written.revision == 9)
        });
        let is_outrun: Vec<bool> = is_outrun.collect();
        let left = is_outrun.iter().filter(|it| !**it).count();
        assert_eq!(lock(&queue.pending).len(), left);
        is_outrun
    }

    #[test]
    fn a_statement_ends_behind_a_quarter_of_a_mebibyte_and_after_64_swaps() {
        let queue = Queue::default();
        let mut answers = Vec::new();
        let mut waits = |key: usize, bytes: usize| {
            let (answer, answered) = oneshot::channel();
            answers.push(answered);
            let mut swap = swap(&format!("k{key}"), 0);
            swap.bytes = vec![0; bytes].into();
            let swaps = vec![swap];
            lock(&queue.pending).push(Pending { swaps, answer });
        };
        for key in 0..5 {
            waits(key, 100 << 10);
        }
        let taken = [queue.take().len(), queue.take().len(), queue.take().len()];
        assert_eq!(taken, [3, 2, 0]);
        for key in 0..65 {
            waits(key, 10);
        }
        assert_eq!([queue.take().len(), queue.take().len()], [64, 1]);
    }

    #[test]
    fn the_swaps_of_a_key_that_wait_are_outrun_by_a_later_write_of_it_and_by_a_later_reading() {
        let waiting: [&[_]; 6] = [
            &[("k", 0)],
            &[("k", 7)],
            &[("k", 9)],
            &[("l", 7)],
            &[("l", 7), ("k", 7)],
            &[("k", 11)],
        ];
        let expected = [true, true, false, false, true, false];
        assert_eq!(outrun(&waiting, Swapped::Done(written(9))), expected);
        let stored = Stored {
            written: written(9),
            bytes: Vec::new(),
        };
        let read = Swapped::Changed(Some(stored), ServerTime(6));
        assert_eq!(outrun(&waiting, read), expected);
        let absent = Swapped::Changed(None, ServerTime(6));
        assert_eq!(outrun(&waiting, absent), [false; 6]);
    }
}
