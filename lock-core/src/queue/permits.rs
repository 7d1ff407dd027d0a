//! The permits that this process holds. If it holds as many as a key has, the next caller is refused without a question.

use std::sync::Arc;
use std::time::Duration;

use super::{ByKey, Queue, give_back};
use crate::active::ActiveLease;
use crate::base::share::ShareLimit;
use crate::base::sync::lock;

/// A permit with a higher limit is not counted, because a look at so many leases costs more than a question to the store.
const MOST_COUNTED: u32 = 256;

/// The permits of this process that the store has granted and that have not ended here, by key.
#[derive(Default)]
pub(super) struct HeldPermits(ByKey<Vec<Arc<ActiveLease>>>);

impl HeldPermits {
    pub(super) fn add(&mut self, lease: &Arc<ActiveLease>) {
        if lease.token.share().is_some_and(is_counted) {
            let of_key = self.0.entry(Arc::clone(&lease.key)).or_default();
            of_key.push(Arc::clone(lease));
        }
    }

    /// Forgets a lease that has ended.
    pub(super) fn remove(&mut self, lease: &ActiveLease) {
        if !lease.token.share().is_some_and(is_counted) {
            return;
        }
        let Some(of_key) = self.0.get_mut(&*lease.key) else {
            return;
        };
        of_key.retain(|held| !std::ptr::eq(&raw const **held, lease));
        if of_key.is_empty() {
            self.0.remove(&*lease.key);
            give_back(&mut self.0);
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A reader has the highest limit.
fn is_counted(limit: ShareLimit) -> bool {
    limit.count() <= MOST_COUNTED
}

impl Queue {
    /// Returns in what time the first of the permits ends that this process holds of the key. `None`: it holds fewer than
    /// the limit, as far as is known here.
    ///
    /// Only a lease that is valid at this moment counts. The store then has it too, and refuses the caller.
    pub(crate) fn holds_all_permits(&self, key: &str, limit: ShareLimit) -> Option<Duration> {
        let now = self.now();
        let slots = lock(&self.slots);
        let of_key = slots.permits.0.get(key)?;
        let needed = usize::try_from(limit.count()).ok()?;
        if of_key.len() < needed {
            return None;
        }
        let left = of_key.iter().map(|lease| lease.remaining_at(now));
        let valid = left.filter(|left| !left.is_zero());
        let (count, first) = valid.fold((0, Duration::MAX), |(count, first), left| {
            (count + 1, first.min(left))
        });
        (count >= needed).then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LockManager;

    #[tokio::test]
    async fn a_permit_is_forgotten_when_it_ends() {
        let locks = LockManager::in_memory();
        let queue = &locks.engine().queue;
        let one = ShareLimit::permits(1).expect("in bounds");
        let guard = locks.lock("k").permits(1).acquire().await.expect("free");
        assert!(queue.holds_all_permits("k", one).is_some());
        assert!(queue.holds_all_permits("another", one).is_none());
        assert!(queue.holds_all_permits("k", ShareLimit::READERS).is_none());
        guard.release().await.expect("held");
        assert!(queue.holds_all_permits("k", one).is_none());
        assert!(queue.is_empty());
    }

    #[tokio::test]
    async fn permits_of_high_limits_and_readers_are_not_counted() {
        let locks = LockManager::in_memory();
        let queue = &locks.engine().queue;
        let one = ShareLimit::permits(1).expect("in bounds");
        let guards = [
            locks.lock("k").permits(MOST_COUNTED + 1).acquire().await,
            locks.lock("another").read().acquire().await,
        ];
        assert!(guards.iter().all(Result::is_ok));
        for key in ["k", "another"] {
            assert!(queue.holds_all_permits(key, one).is_none());
        }
    }
}
