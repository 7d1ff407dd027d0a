//! Two small pieces of synchronisation that the rest is built from.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// Locks, whatever happened to an earlier owner: a guard that drops while a panic unwinds must
/// still release its lock, so poison is no reason to give up.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The wakers of several tasks that wait for one event.
#[derive(Debug, Default)]
pub(crate) struct WakerSet {
    wakers: Vec<(u32, Waker)>,
    next: u32,
}

impl WakerSet {
    /// Stores or replaces the waker of the seat in `id`, taking a seat where there is none.
    pub(crate) fn register(&mut self, id: &mut Option<u32>, waker: &Waker) {
        if let Some(seat) = *id
            && let Some((_, stored)) = self.wakers.iter_mut().find(|(other, _)| *other == seat)
        {
            stored.clone_from(waker);
            return;
        }
        self.next = self.next.wrapping_add(1);
        *id = Some(self.next);
        self.wakers.push((self.next, waker.clone()));
    }

    pub(crate) fn remove(&mut self, id: Option<u32>) {
        if let Some(seat) = id {
            self.wakers.retain(|(other, _)| *other != seat);
            if self.wakers.is_empty() {
                // There are very many of these, and most are empty for all their life.
                self.wakers = Vec::new();
            }
        }
    }

    /// Takes all wakers out, for the caller to wake outside its lock.
    #[must_use]
    pub(crate) fn take(&mut self) -> Vec<(u32, Waker)> {
        std::mem::take(&mut self.wakers)
    }
}

/// Wakes each; never call it with a lock held.
pub(crate) fn wake_all(wakers: Vec<(u32, Waker)>) {
    for (_, waker) in wakers {
        waker.wake();
    }
}
