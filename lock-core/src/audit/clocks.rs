//! How far two clocks are apart, as far as a question and its answer can tell. Pure.

use std::time::Duration;

/// This machine's wall clock before and after a question, and the server's clock in the answer; in
/// microseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) before: u64,
    pub(crate) server: u64,
    pub(crate) after: u64,
}

impl Reading {
    /// How far the server is ahead, at least and at most.
    fn ahead(self) -> (i128, i128) {
        let server = i128::from(self.server);
        (
            server - i128::from(self.after),
            server - i128::from(self.before),
        )
    }

    /// By how much the server's clock differs from this machine's, at least.
    pub(super) fn difference(self) -> Duration {
        let (least, most) = self.ahead();
        micros(least.max(-most))
    }
}

/// Nothing, if it is negative: the readings agree.
fn micros(span: i128) -> Duration {
    Duration::from_micros(u64::try_from(span.max(0)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(before: u64, server: u64, after: u64) -> Reading {
        Reading {
            before,
            server,
            after,
        }
    }

    #[test]
    fn a_clock_differs_by_what_the_way_of_the_question_cannot_explain() {
        let difference = |before, server, after| reading(before, server, after).difference();
        assert_eq!(difference(100, 150, 200), Duration::ZERO);
        assert_eq!(difference(100, 200, 200), Duration::ZERO);
        assert_eq!(difference(100, 230, 200), Duration::from_micros(30));
        assert_eq!(difference(100, 60, 200), Duration::from_micros(40));
    }
}
