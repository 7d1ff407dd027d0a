//! Counts of the servers on which a lock stands.

/// Counts the servers that agreed to a lock, out of all servers.
///
/// [`LockHandle::acks`](crate::LockHandle::acks) returns it.
///
/// Over n independent servers (`redlock://`) a lock is held while at least q = ⌊n/2⌋ + 1 servers
/// hold it. If g servers hold it:
///
/// * the lock survives the loss of any g − q of those g servers ([`spare`](Self::spare));
/// * other locks can be taken as long as at most n − q servers are down.
///
/// A lock loses a server that forgets the key (because the server restarted without its data) or
/// that does not answer renewals. The numbers change while the lock is held: a late vote adds a
/// server, and a renewal removes a server that no longer holds the key. On a single server the
/// numbers are always 1 of 1.
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

    /// Returns the number of servers that are known to hold the lock.
    #[must_use]
    pub fn granted(self) -> u32 {
        self.granted
    }

    /// Returns the number of all servers.
    #[must_use]
    pub fn of(self) -> u32 {
        self.of
    }

    /// Returns the number of servers that a lock needs, which is more than half.
    #[must_use]
    pub fn quorum(self) -> u32 {
        self.of / 2 + 1
    }

    /// Returns g − q, the number of servers that may still forget the lock.
    #[must_use]
    pub fn spare(self) -> u32 {
        self.granted.saturating_sub(self.quorum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spare_is_the_number_of_agreeing_servers_beyond_a_majority() {
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
