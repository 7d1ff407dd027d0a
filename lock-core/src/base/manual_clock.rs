//! A clock that stands still until a test moves it.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tokio::sync::Notify;

use super::clock::{Clock, Moment};
use super::sync::lock;

/// A clock that a test moves.
///
/// [`ManagerBuilder::clock`](crate::ManagerBuilder::clock) installs it.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
/// use std::time::Duration;
/// use lock_core::{LockManager, Renew, test_util::ManualClock};
///
/// let clock = ManualClock::new();
/// let locks = LockManager::builder("memory:").clock(clock.clone()).connect().await?;
/// let guard = locks.lock("k").ttl(Duration::from_secs(10)).renew(Renew::Off).acquire().await?;
/// clock.advance(Duration::from_secs(10));
/// assert!(!guard.is_valid());
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct ManualClock(Arc<Clocked>);

struct Clocked {
    nanos: AtomicU64,
    /// The Unix time at which the clock was created.
    created_micros: u64,
    bells: Mutex<Vec<Weak<Notify>>>,
}

impl ManualClock {
    /// Creates a clock that stands still at the time of the machine.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Clocked {
            nanos: AtomicU64::new(0),
            created_micros: Clock::System.unix_micros(),
            bells: Mutex::default(),
        }))
    }

    /// Moves the clock forward and runs everything that becomes due.
    pub fn advance(&self, span: Duration) {
        let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        self.0.nanos.fetch_add(nanos, Ordering::SeqCst);
        lock(&self.0.bells).retain(|bell| {
            let bell = bell.upgrade();
            bell.iter().for_each(|bell| bell.notify_one());
            bell.is_some()
        });
    }

    /// Returns whether one of the clocks is a clone of the other.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn now(&self) -> Moment {
        // The clock starts at one hour, so that earlier moments exist.
        Moment(self.0.nanos.load(Ordering::SeqCst)) + Duration::from_secs(3600)
    }

    pub(crate) fn unix_micros(&self) -> u64 {
        self.0.created_micros + self.0.nanos.load(Ordering::SeqCst) / 1000
    }

    pub(crate) fn ring_on_change(&self, bell: &Arc<Notify>) {
        lock(&self.0.bells).push(Arc::downgrade(bell));
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ManualClock").field(&self.now()).finish()
    }
}
