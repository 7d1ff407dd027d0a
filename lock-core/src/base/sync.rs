//! Synchronisation helpers.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// Locks the mutex even if it is poisoned.
///
/// A guard that drops while a panic unwinds must still release its lock, so poison is no reason to
/// give up.
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
    /// Stores or replaces the waker under `id`, and assigns an id if there is none.
    pub(crate) fn register(&mut self, id: &mut Option<u32>, waker: &Waker) {
        if let Some(known) = *id
            && let Some((_, stored)) = self.wakers.iter_mut().find(|(other, _)| *other == known)
        {
            stored.clone_from(waker);
            return;
        }
        self.next = self.next.wrapping_add(1);
        *id = Some(self.next);
        self.wakers.push((self.next, waker.clone()));
    }

    pub(crate) fn remove(&mut self, id: Option<u32>) {
        if let Some(known) = id {
            self.wakers.retain(|(other, _)| *other != known);
            if self.wakers.is_empty() {
                // A process can hold very many sets, and most are empty for most of their life.
                self.wakers = Vec::new();
            }
        }
    }

    /// Takes all wakers, so that the caller can wake them outside its lock.
    #[must_use]
    pub(crate) fn take(&mut self) -> Vec<(u32, Waker)> {
        std::mem::take(&mut self.wakers)
    }
}

/// Wakes each waker. Callers hold no lock meanwhile.
pub(crate) fn wake_all(wakers: Vec<(u32, Waker)>) {
    for (_, waker) in wakers {
        waker.wake();
    }
}
