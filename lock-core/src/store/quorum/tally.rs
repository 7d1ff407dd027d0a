//! Counting votes: pure. Always over all n nodes, including those that are out.
//!
//! An attempt is an outage when less than a majority answers. If a majority answers and other clients have some
//! of these nodes, the attempt is repeated as a split vote, although another client may have a majority with
//! the nodes that are out. An owner that is found on the same nodes round after round seems to have the lock,
//! and the result is *busy*.

use std::time::Duration;

use crate::lease::Refusal;
use crate::store::vote::{SEVERAL_READERS, Vote};
use crate::store::{Ended, Extended, Remembered};

/// More than half of the nodes.
pub(super) fn quorum(nodes: usize) -> usize {
    nodes / 2 + 1
}

/// The state of one node's vote.
#[derive(Clone, Debug, Default)]
pub(super) enum Ballot {
    /// The node may still answer.
    #[default]
    Open,
    /// The node gives no answer that counts.
    Dead,
    Answered(Vote),
}

/// The result of the votes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Not decided yet.
    Wait,
    /// The lease is granted with its number.
    Granted,
    /// The lease is granted, but a higher number must be proposed.
    TooLow,
    /// Another owner has the key.
    Busy,
    /// Several clients have some nodes each, and none of them can reach a majority.
    Split,
    /// A split vote among the nodes that answer, which are a majority. Together with silent nodes another
    /// client may have a majority.
    Contested,
    /// The key was left to clients that have waited.
    Yielded,
    Unavailable,
}

pub(super) fn decide(ballots: &[Ballot]) -> Decision {
    let quorum = quorum(ballots.len());
    let count = Count::of(ballots);
    // One node has a record, so the work is done. The vote waits for a majority, because
    // another node may have a newer record.
    if record(ballots).is_some() {
        let answered = ballots.len() - count.open - count.out;
        return match answered >= quorum || count.open == 0 {
            true => Decision::Busy,
            false => Decision::Wait,
        };
    }
    if count.accepted >= quorum {
        return Decision::Granted;
    }
    if count.yes >= quorum && count.accepted + count.open < quorum {
        return Decision::TooLow;
    }
    // With so many votes no other client can have a majority.
    let against = ballots.len() - quorum;
    if count.taken > against {
        let most = foremost(ballots).map_or(0, |(nodes, _)| nodes);
        return if most >= quorum {
            Decision::Busy
        } else if count.open > 0 {
            Decision::Wait
        } else if most + count.out < quorum {
            Decision::Split
        } else {
            // Another client may have the nodes that do not answer.
            Decision::Busy
        };
    }
    let answer = count.yes + count.taken + count.yields;
    let enough = answer >= quorum;
    let undecided = count.yes + count.open >= quorum
        || count.taken + count.open > against
        || (!enough && answer + count.open >= quorum);
    if count.open > 0 && undecided {
        Decision::Wait
    } else if count.yields > 0 {
        Decision::Yielded
    } else if count.taken > 0 && enough {
        // Without the other clients this would be granted, so it is no outage.
        Decision::Contested
    } else {
        Decision::Unavailable
    }
}

#[derive(Default)]
struct Count {
    open: usize,
    /// Dead, or kept out.
    out: usize,
    yes: usize,
    accepted: usize,
    taken: usize,
    yields: usize,
}

impl Count {
    fn of(ballots: &[Ballot]) -> Self {
        let mut count = Self::default();
        for ballot in ballots {
            match ballot {
                Ballot::Open => count.open += 1,
                Ballot::Dead | Ballot::Answered(Vote::Empty(_)) => count.out += 1,
                Ballot::Answered(Vote::Yes { accepted, .. }) => {
                    count.yes += 1;
                    count.accepted += usize::from(*accepted);
                }
                Ballot::Answered(Vote::Taken { .. }) => count.taken += 1,
                Ballot::Answered(Vote::Yields) => count.yields += 1,
            }
        }
        count
    }
}

/// The refusal with the record at hand that has the highest fencing token.
fn record(ballots: &[Ballot]) -> Option<&Refusal> {
    let taken = ballots.iter().filter_map(|ballot| match ballot {
        Ballot::Answered(Vote::Taken { refusal, .. }) => Some(refusal),
        _ => None,
    });
    let records = taken.filter(|refusal| refusal.record.is_some());
    records.max_by_key(|refusal| refusal.record.as_ref().map(|record| record.fence))
}

/// Returns the other client that has the key, and whether that client is a reader.
fn owner(ballot: &Ballot) -> Option<(&str, bool)> {
    match ballot {
        Ballot::Answered(Vote::Taken { owner, refusal, .. }) => Some((owner, refusal.shared)),
        _ => None,
    }
}

/// The other client that stands on the most nodes, and their number. A node with several readers may have any of them.
fn foremost(ballots: &[Ballot]) -> Option<(usize, &str)> {
    let owners = || ballots.iter().filter_map(owner);
    let nodes_of = |wanted: &str, is_reader: bool| {
        let may_be = |owner: &str| owner == wanted || (is_reader && owner == SEVERAL_READERS);
        owners().filter(|(owner, _)| may_be(owner)).count()
    };
    let each = owners().map(|(owner, is_reader)| (nodes_of(owner, is_reader), owner));
    each.max()
}

/// The other client that stands on the most nodes.
pub(super) fn foremost_owner(ballots: &[Ballot]) -> Option<&str> {
    foremost(ballots).map(|(_, owner)| owner)
}

/// The highest number that any node has seen.
pub(super) fn highest(ballots: &[Ballot]) -> u64 {
    let numbers = ballots.iter().filter_map(|ballot| match ballot {
        Ballot::Answered(Vote::Yes { highest, .. } | Vote::Taken { highest, .. }) => Some(*highest),
        _ => None,
    });
    numbers.max().unwrap_or(0)
}

/// How many nodes are kept out, and for how long the last of them is.
pub(super) fn opens_in(ballots: &[Ballot]) -> Option<(usize, Duration)> {
    let waits = ballots.iter().filter_map(|ballot| match ballot {
        Ballot::Answered(Vote::Empty(wait)) => Some(*wait),
        _ => None,
    });
    let (count, longest) = waits.fold((0, Duration::ZERO), |(count, longest), wait| {
        (count + 1, longest.max(wait))
    });
    (count > 0).then_some((count, longest))
}

/// Combines the refusals of the nodes: for how long no majority is free if no owner extends, and whether its
/// release will be pushed.
pub(super) fn refusal(ballots: &[Ballot]) -> Refusal {
    if let Some(refusal) = record(ballots) {
        return refusal.clone();
    }
    let quorum = quorum(ballots.len());
    let taken = || {
        ballots.iter().filter_map(|ballot| match ballot {
            Ballot::Answered(Vote::Taken { refusal, .. }) => Some(refusal),
            _ => None,
        })
    };
    let free = ballots
        .iter()
        .filter(|ballot| matches!(ballot, Ballot::Answered(Vote::Yes { .. })));
    let mut ends: Vec<Option<Duration>> = free.map(|_| Some(Duration::ZERO)).collect();
    ends.extend(taken().map(|refusal| refusal.remaining));
    // Keys without an end come last.
    ends.sort_by_key(|end| (end.is_none(), *end));
    let last = ends.get(quorum - 1).or(ends.last()).copied().flatten();
    // A release reaches a majority of the nodes, and the waiter stands in the queues of a majority. The two
    // majorities share a node.
    let pushed = taken().filter(|refusal| refusal.pushed).count() >= quorum;
    Refusal {
        cooling: taken().filter(|refusal| refusal.cooling).count() * 2 > taken().count(),
        remaining: last,
        queued: taken().filter(|refusal| refusal.queued).count() >= quorum,
        pushed,
        shared: taken().filter(|refusal| refusal.shared).count() * 2 > taken().count(),
        ..Refusal::default()
    }
}

/// Counts an answer.
fn count<T: PartialEq>(answers: &[Option<T>], wanted: &T) -> usize {
    let answers = answers.iter().flatten();
    answers.filter(|answer| *answer == wanted).count()
}

/// The result of a release; `None`: not decided yet. `open` nodes may still answer.
pub(super) fn given_back(answers: &[Option<Ended>], open: usize) -> Option<Ended> {
    let quorum = quorum(answers.len());
    let yes = count(answers, &Ended::Yes);
    let absent = count(answers, &Ended::Absent);
    let other = count(answers, &Ended::Other);
    if yes >= quorum {
        return Some(Ended::Yes);
    }
    if absent + other > answers.len() - quorum {
        return Some(if other > 0 {
            Ended::Other
        } else {
            Ended::Absent
        });
    }
    // A node that did not answer may have had the key.
    (open == 0 && yes + absent + other >= quorum).then_some(Ended::Yes)
}

/// The result of a record; `None`: not decided yet, or to be asked again. `open` nodes may still answer.
pub(super) fn remembered(answers: &[Option<Remembered>], open: usize) -> Option<Remembered> {
    let quorum = quorum(answers.len());
    let has = |wanted: Remembered| answers.contains(&Some(wanted));
    let (yes, silent) = (
        stored(answers),
        answers.iter().filter(|answer| answer.is_none()).count(),
    );
    if yes >= quorum {
        return Some(Remembered::Yes);
    }
    if open > 0 || yes + silent >= quorum {
        return None;
    }
    let (absent, other) = (
        count(answers, &Remembered::Absent),
        count(answers, &Remembered::Other),
    );
    // A majority was without the lock, so the owner had lost it, although one node may have the record.
    let lost = absent + other >= quorum;
    Some(if yes > 0 && !lost {
        Remembered::Unacknowledged
    } else if has(Remembered::NoRoom) {
        Remembered::NoRoom
    } else if other > 0 {
        Remembered::Other
    } else {
        Remembered::Absent
    })
}

/// Returns whether a majority has the record, or will have it if so many nodes store it that may still answer.
pub(super) fn may_be_stored(answers: &[Option<Remembered>], open: usize) -> bool {
    stored(answers) + open >= quorum(answers.len())
}

fn stored(answers: &[Option<Remembered>]) -> usize {
    count(answers, &Remembered::Yes) + count(answers, &Remembered::Unacknowledged)
}

/// The result of a renewal; `None`: not decided yet. `open` nodes may still answer.
pub(super) fn extended(answers: &[Option<Extended>], open: usize) -> Option<Extended> {
    let quorum = quorum(answers.len());
    if count(answers, &Extended::Yes) >= quorum {
        Some(Extended::Yes)
    } else if count(answers, &Extended::NotOurs) > answers.len() - quorum {
        Some(Extended::NotOurs)
    } else if open == 0 {
        Some(Extended::Unknown)
    } else {
        None
    }
}

#[cfg(test)]
#[path = "tally_tests.rs"]
mod tests;
