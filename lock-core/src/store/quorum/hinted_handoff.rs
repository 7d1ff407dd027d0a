//! Hints: ended leases that a node has not been told of, because it was out.
//!
//! The process keeps a hint for each of them, and sends it when the node answers again. Dynamo calls this
//! hinted handoff.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::departing::Departure;
use super::undo::Undoing;
use super::vote_ledger::VoteLedger;
use crate::base::clock::Moment;
use crate::base::sync::lock;
use crate::store::Release;
use crate::store::vote::{UpTo, VoteOperation, Withdrawal};

/// Until a node that has refused a hint gets it again.
const REFUSED: Duration = Duration::from_secs(1);
/// The queue of a lock stays for so long behind the end of the lock, with the entries in it.
const QUEUE_OUTLIVES: Duration = Duration::from_secs(60);
/// A lease for which no hint is kept ends by its ttl.
const MOST: usize = 100_000;

pub(super) struct Hints {
    all: Mutex<Vec<Hint>>,
    /// See [`StoreLimits`](crate::store::StoreLimits).
    late_duplicate: Duration,
}

#[derive(Clone)]
pub(super) struct Hint {
    release: Release,
    how: Withdrawal,
    up_to: Option<UpTo>,
    /// The ledger in which the end is noted.
    ledger: Arc<VoteLedger>,
    /// When the hint is due. A command that was sent earlier cannot arrive after that.
    at: Moment,
    /// When the lease has ended by its ttl, and the queue with its entry, if it has one.
    until: Moment,
    /// Whether an acquire of the lease may still arrive.
    doubtful: bool,
    /// Until the first delivery.
    _departure: Option<Arc<Departure>>,
}

impl Hint {
    pub(super) fn withdraw(&self) -> VoteOperation {
        VoteOperation::Withdraw(self.release.clone(), self.how, self.up_to)
    }

    /// Notes that a command of the lease may still arrive.
    pub(super) fn in_doubt_if(self, doubtful: bool) -> Self {
        Self {
            doubtful: self.doubtful || doubtful,
            ..self
        }
    }
}

impl Hints {
    pub(super) fn new(late_duplicate: Duration) -> Self {
        Self {
            all: Mutex::default(),
            late_duplicate,
        }
    }

    /// Adds a hint. A question of the lease was sent and not answered, and may still arrive. `queued`: the lease may have an
    /// entry in the queue of the node.
    pub(super) fn add(
        &self,
        undoing: &Undoing,
        how: Withdrawal,
        queued: bool,
        departure: Option<Departure>,
        now: Moment,
    ) {
        let stays = if queued {
            QUEUE_OUTLIVES
        } else {
            Duration::ZERO
        };
        let until = now + undoing.release.ttl + stays + self.late_duplicate;
        let mut all = lock(&self.all);
        if all.len() >= MOST {
            all.retain(|left| left.until > now);
        }
        if all.len() < MOST {
            all.push(Hint {
                release: undoing.release.clone(),
                how,
                up_to: undoing.up_to(),
                ledger: Arc::clone(&undoing.ledger),
                doubtful: true,
                _departure: departure.map(Arc::new),
                at: now,
                until,
            });
        }
    }

    /// Takes the hints that are due. The caller puts back a hint whose delivery failed.
    pub(super) fn take(&self, now: Moment) -> Vec<Hint> {
        let mut due = Vec::new();
        lock(&self.all).retain(|left| {
            if left.at <= now && left.until > now {
                due.push(left.clone());
            }
            left.at > now
        });
        due
    }

    pub(super) fn put_back(&self, left: Hint) {
        lock(&self.all).push(left);
    }

    /// Puts back a hint that the node refused because of a right, a setting or its state, which may be corrected.
    pub(super) fn refused(&self, left: Hint, now: Moment) {
        self.put_back(Hint {
            at: now + REFUSED,
            ..left
        });
    }

    /// Notes the delivery. If a command of the lease may still arrive, the hint is delivered once more later.
    pub(super) fn delivered(&self, place: usize, left: Hint, now: Moment) {
        if !left.doubtful {
            left.ledger.resolved(place);
        } else {
            self.put_back(Hint {
                at: now + self.late_duplicate,
                doubtful: false,
                _departure: None,
                ..left
            });
        }
    }

    /// Returns whether a lease, or its entry in the queue, may still stand on the node.
    pub(super) fn any(&self, now: Moment) -> bool {
        lock(&self.all).iter().any(|left| left.until > now)
    }

    /// When the next hint is due.
    pub(super) fn due(&self) -> Option<Moment> {
        lock(&self.all).iter().map(|left| left.at).min()
    }
}

#[cfg(test)]
mod tests {
    use super::super::departing::Departing;
    use super::*;
    use crate::base::token::{Address, TokenSource};
    use crate::store::{Extension, Lane};

    const LATE: Duration = Duration::from_secs(6);
    const NOW: Moment = Moment(1_000_000_000);

    fn departure(of: &Undoing) -> Departure {
        Arc::<Departing>::default().begins(&of.release.key, &of.ledger, [0])
    }

    fn undoing(ledger: &Arc<VoteLedger>) -> Undoing {
        let lease = Extension {
            key: "k".into(),
            token: TokenSource::new(Address::random()).fresh(),
            ttl: Duration::from_secs(10),
        };
        Undoing::new(&lease.acquire(), ledger, Lane::KEEPER)
    }

    #[test]
    fn what_may_arrive_late_is_undone_twice() {
        let hints = Hints::new(LATE);
        let ledger = Arc::new(VoteLedger::default());
        assert!(ledger.claim(0));
        let undoing = undoing(&ledger);
        let departure = departure(&undoing);
        hints.add(&undoing, Withdrawal::Over, false, Some(departure), NOW);
        let due = hints.take(NOW);
        assert_eq!((due.len(), hints.due()), (1, None));
        for left in due {
            hints.delivered(0, left, NOW);
        }
        assert!(hints.take(NOW).is_empty());
        assert!(!ledger.may_ask(0));
        assert_eq!(hints.due(), Some(NOW + LATE));
        for left in hints.take(NOW + LATE) {
            hints.delivered(0, left, NOW + LATE);
        }
        assert_eq!(hints.due(), None);
        assert!(ledger.may_ask(0), "nothing more can arrive");
    }

    #[test]
    fn what_has_run_out_is_forgotten() {
        let hints = Hints::new(LATE);
        let undoing = undoing(&Arc::default());
        let departure = departure(&undoing);
        hints.add(&undoing, Withdrawal::Over, false, Some(departure), NOW);
        assert!(hints.take(NOW + Duration::from_secs(16)).is_empty());
        assert_eq!(hints.due(), None);
    }
    #[test]
    fn an_entry_in_the_queue_outlives_the_lease() {
        let hints = Hints::new(LATE);
        let undoing = undoing(&Arc::default());
        hints.add(&undoing, Withdrawal::Leave, true, None, NOW);
        assert_eq!(hints.take(NOW + Duration::from_secs(75)).len(), 1);
    }
}
