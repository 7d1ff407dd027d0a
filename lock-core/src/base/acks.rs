//! On how many servers a lock stands.

/// How many servers agreed to a lock, of how many: see [`LockHandle::acks`](crate::LockHandle::acks).
///
/// Over n independent servers (`redlock://`) a lock is held while at least
/// q = ⌊n/2⌋ + 1 of them hold it. So with g that agree
///
/// * the lock survives the loss of any g − q of those g ([`spare`](Self::spare));
/// * locks can be taken while no more than n − q servers are out, whichever they are.
///
/// A server is lost to a lock when it forgets the key (it restarted without its data) or does not
/// answer renewals. The numbers change while the lock is held: a vote that came late is added, one
/// that a renewal finds missing is taken away. On one server it is always 1 of 1.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
/// let urls = ["memory:", "memory:", "memory:", "memory:", "memory:"];
/// let locks = lock_core::LockManager::quorum(urls).connect().await?;
/// let guard = locks.lock("order:42").acquire().await?;
/// let acks = guard.acks();
/// assert_eq!((acks.of(), acks.quorum()), (5, 3));
/// assert_eq!(acks.spare(), acks.granted() - 3);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Acks {
    granted: u32,
    of: u32,
}

impl Acks {
    pub(crate) const ONE_OF_ONE: Self = Self { granted: 1, of: 1 };

    pub(crate) fn new(granted: u32, of: u32) -> Self {
        Self { granted, of }
    }

    /// How many servers hold the lock, as far as is known.
    #[must_use]
    pub fn granted(self) -> u32 {
        self.granted
    }

    /// How many servers there are.
    #[must_use]
    pub fn of(self) -> u32 {
        self.of
    }

    /// How many of them it takes: more than half.
    #[must_use]
    pub fn quorum(self) -> u32 {
        self.of / 2 + 1
    }

    /// How many of those that hold the lock may still forget it: g − q.
    #[must_use]
    pub fn spare(self) -> u32 {
        self.granted.saturating_sub(self.quorum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_those_that_agree_all_but_a_majority_of_all_may_be_lost() {
        let spare = |granted, of| Acks::new(granted, of).spare();
        assert_eq!(
            [spare(5, 5), spare(4, 5), spare(3, 5), spare(2, 5)],
            [2, 1, 0, 0]
        );
        assert_eq!(
            [spare(4, 4), spare(3, 3), spare(2, 2), spare(1, 1)],
            [1, 1, 0, 0]
        );
    }
}
