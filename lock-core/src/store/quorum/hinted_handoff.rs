//! What a node that was out has still to be told: leases that are over.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::undo::Undoing;
use super::vote_ledger::Spread;
use crate::base::clock::Moment;
use crate::base::sync::lock;
use crate::store::Release;
use crate::store::vote::{UpTo, VoteOperation, Withdrawal};

/// Until a node that has refused it is told again.
const REFUSED: Duration = Duration::from_secs(1);
/// What does not find room ends by its ttl.
const MOST: usize = 100_000;

pub(super) struct LeftOvers {
    all: Mutex<Vec<LeftOver>>,
    /// See [`Limits`](crate::store::Limits).
    late_duplicate: Duration,
}

#[derive(Clone)]
pub(super) struct LeftOver {
    release: Release,
    up_to: Option<UpTo>,
    /// To note that it is done.
    spread: Arc<Spread>,
    /// Not before: nothing that was sent earlier may come later.
    at: Moment,
    /// It has run out by itself.
    until: Moment,
    /// Whether an acquire of it may still arrive.
    doubtful: bool,
}

impl LeftOver {
    pub(super) fn withdraw(&self) -> VoteOperation {
        VoteOperation::Withdraw(self.release.clone(), Withdrawal::Over, self.up_to)
    }

    /// Something of it may still arrive.
    pub(super) fn in_doubt_if(self, doubtful: bool) -> Self {
        Self {
            doubtful: self.doubtful || doubtful,
            ..self
        }
    }
}

impl LeftOvers {
    pub(super) fn new(late_duplicate: Duration) -> Self {
        Self {
            all: Mutex::default(),
            late_duplicate,
        }
    }

    /// A question of it was sent and not answered, and may still arrive.
    pub(super) fn add(&self, undoing: &Undoing, now: Moment) {
        let until = now + undoing.release.ttl + self.late_duplicate;
        let mut all = lock(&self.all);
        if all.len() >= MOST {
            all.retain(|left| left.until > now);
        }
        if all.len() < MOST {
            all.push(LeftOver {
                release: undoing.release.clone(),
                up_to: undoing.up_to,
                spread: Arc::clone(&undoing.spread),
                doubtful: true,
                at: now,
                until,
            });
        }
    }

    /// What is due. Whoever takes it puts back what fails.
    pub(super) fn take(&self, now: Moment) -> Vec<LeftOver> {
        let mut due = Vec::new();
        lock(&self.all).retain(|left| {
            if left.at <= now && left.until > now {
                due.push(left.clone());
            }
            left.at > now
        });
        due
    }

    pub(super) fn put_back(&self, left: LeftOver) {
        lock(&self.all).push(left);
    }

    /// The node refuses it, because a right or a setting is wrong, which may be over the next time.
    pub(super) fn refused(&self, left: LeftOver, now: Moment) {
        self.put_back(LeftOver {
            at: now + REFUSED,
            ..left
        });
    }

    /// The node has been told. What may still arrive is looked after once more.
    pub(super) fn told(&self, place: usize, left: LeftOver, now: Moment) {
        if !left.doubtful {
            left.spread.resolved(place);
        } else {
            self.put_back(LeftOver {
                at: now + self.late_duplicate,
                doubtful: false,
                ..left
            });
        }
    }

    /// When there is something to do next.
    pub(super) fn due(&self) -> Option<Moment> {
        lock(&self.all).iter().map(|left| left.at).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::token::{Address, TokenSource};
    use crate::store::Lane;

    const LATE: Duration = Duration::from_secs(6);
    const NOW: Moment = Moment(1_000_000_000);

    fn undoing(spread: &Arc<Spread>) -> Undoing {
        let token = TokenSource::new(Address::random()).fresh();
        Undoing::new(
            &"k".into(),
            token,
            Duration::from_secs(10),
            spread,
            Lane::KEEPER,
        )
    }

    #[test]
    fn what_may_arrive_late_is_undone_twice() {
        let left_overs = LeftOvers::new(LATE);
        let spread = Arc::new(Spread::default());
        assert!(spread.claim(0));
        left_overs.add(&undoing(&spread), NOW);
        let due = left_overs.take(NOW);
        assert_eq!((due.len(), left_overs.due()), (1, None));
        for left in due {
            left_overs.told(0, left, NOW);
        }
        assert!(left_overs.take(NOW).is_empty());
        assert!(!spread.may_ask(0));
        assert_eq!(left_overs.due(), Some(NOW + LATE));
        for left in left_overs.take(NOW + LATE) {
            left_overs.told(0, left, NOW + LATE);
        }
        assert_eq!(left_overs.due(), None);
        assert!(spread.may_ask(0), "nothing more can arrive");
    }

    #[test]
    fn what_has_run_out_is_forgotten() {
        let left_overs = LeftOvers::new(LATE);
        left_overs.add(&undoing(&Arc::default()), NOW);
        assert!(left_overs.take(NOW + Duration::from_secs(16)).is_empty());
        assert_eq!(left_overs.due(), None);
    }
}
