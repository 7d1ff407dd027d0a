//! Reads calls from the lines of a journal.

use std::collections::BTreeMap;

use super::journal::{Entry, Who};

/// The outcome of a request for a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// No answer, because the process was killed or the round ended.
    None,
    /// The lock was granted, if only for a moment.
    Granted,
    Busy,
    Lost,
    Cancelled,
    /// The kind and the text of the error.
    Refused(String),
}

/// The time for which an owner claims to have had the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) from: u64,
    pub(super) until: u64,
    pub(super) fence: u64,
}

/// One use of a lock, in times of the shared clock.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) who: Who,
    pub(super) number: u64,
    pub(super) key: usize,
    /// The ttl in nanoseconds, as all times.
    pub(super) ttl: u64,
    /// The wait; `None` waits for ever.
    pub(super) wait: Option<u64>,
    pub(super) cooldown: u64,
    pub(super) asked: u64,
    pub(super) answered: Option<u64>,
    pub(super) answer: Answer,
    pub(super) claim: Option<Claim>,
    /// The time at which the owner saw that the lock was lost.
    pub(super) lost: Option<u64>,
    /// The time at which the owner began to release the lock.
    pub(super) out: Option<u64>,
    /// The time at which the release was confirmed.
    pub(super) released: Option<u64>,
    /// The text of a release that failed.
    pub(super) release_failed: Option<String>,
    /// The time of the last line about the call.
    pub(super) last: u64,
}

const MILLI: u64 = 1_000_000;

/// Returns all calls, in the order of their requests.
pub(super) fn of(entries: &[Entry]) -> Vec<Call> {
    let mut calls: BTreeMap<(Who, u64), Call> = BTreeMap::new();
    for entry in entries {
        let id = (entry.who, entry.call);
        if entry.words[0] == "asked" {
            calls.insert(id, asked(entry));
        } else if let Some(call) = calls.get_mut(&id) {
            call.take(entry);
        }
    }
    let mut calls: Vec<_> = calls.into_values().collect();
    calls.sort_by_key(|call| call.asked);
    calls
}

fn asked(entry: &Entry) -> Call {
    let forever = entry.words[3] == "for_ever";
    Call {
        who: entry.who,
        number: entry.call,
        key: usize::try_from(entry.number(1)).expect("an index"),
        ttl: entry.number(2) * MILLI,
        wait: (!forever).then(|| entry.number(3) * MILLI),
        cooldown: entry.number(4) * MILLI,
        asked: entry.time,
        answered: None,
        answer: Answer::None,
        claim: None,
        lost: None,
        out: None,
        released: None,
        release_failed: None,
        last: entry.time,
    }
}

impl Call {
    fn take(&mut self, entry: &Entry) {
        let time = entry.time;
        self.last = self.last.max(time);
        let answer = match entry.words[0].as_str() {
            "inside" => {
                self.claim = Some(Claim {
                    from: time,
                    until: time,
                    fence: entry.number(1),
                });
                Answer::Granted
            }
            "still" => {
                let claim = self.claim.as_mut().expect("inside");
                claim.until = claim.until.max(time);
                return;
            }
            "lost" => {
                self.lost = Some(time);
                Answer::Lost
            }
            "out" => {
                self.out = Some(time);
                return;
            }
            "released" => {
                self.released = Some(time);
                return;
            }
            "release_failed" => {
                self.release_failed = Some(entry.words[1..].join(" "));
                return;
            }
            "dropped" => return,
            "busy" => Answer::Busy,
            "cancelled" => Answer::Cancelled,
            "refused" => Answer::Refused(entry.words[1..].join(" ")),
            word => panic!("an unknown word in the journal: {word}"),
        };
        if self.answer == Answer::None {
            self.answer = answer;
            self.answered = Some(time);
        }
    }

    /// Returns the time until which this call may keep the key taken.
    ///
    /// Only the call's own lines count.
    pub(super) fn may_be_taken_until(&self) -> u64 {
        match (self.released, &self.answer) {
            (Some(released), _) => released + self.cooldown + 500 * MILLI,
            (None, Answer::Busy) => self.last + 500 * MILLI,
            _ => self.runs_out_by(),
        }
    }

    /// Returns the time by which the key is free although it was not released.
    pub(super) fn runs_out_by(&self) -> u64 {
        // A grant that its waiter did not take lasts two seconds; a lock that was not released
        // lasts its ttl.
        let runs_out = self.ttl.max(2_000 * MILLI) + 500 * MILLI;
        self.last + self.cooldown + runs_out
    }
}
