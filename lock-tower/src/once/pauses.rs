//! The pauses of a run that waits for the claim of another one.

use std::time::Duration;

use lock_core::Wait;

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(1);

/// The pauses between two claims. No database tells a waiter of the end of another transaction.
pub(super) struct Pauses {
    next: Duration,
    /// `None`: without an end.
    left: Option<Duration>,
}

impl Pauses {
    pub(super) fn of(wait: Wait) -> Self {
        let left = match wait {
            Wait::Forever => None,
            Wait::For(time) => Some(time),
            _ => Some(Duration::ZERO),
        };
        Self { next: FIRST, left }
    }
}

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let pause = self.left.map_or(self.next, |left| left.min(self.next));
        if pause.is_zero() {
            return None;
        }
        self.left = self.left.map(|left| left - pause);
        self.next = LONGEST.min(2 * self.next);
        Some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(wait: Wait, count: usize) -> Vec<u128> {
        let pauses = Pauses::of(wait).take(count);
        pauses.map(|pause| pause.as_millis()).collect()
    }

    #[test]
    fn the_pauses_double_up_to_a_second_and_end_with_the_wait() {
        let wait = Wait::For(Duration::from_secs(4));
        assert_eq!(millis(wait, 20), [50, 100, 200, 400, 800, 1000, 1000, 450]);
        assert_eq!(millis(Wait::Forever, 8)[5..], [1000, 1000, 1000]);
        assert!(millis(Wait::None, 1).is_empty());
    }
}
