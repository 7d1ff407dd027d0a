//! When a lease ends for its owner: pure.

use std::time::Duration;

use crate::base::clock::{Moment, ServerTime};

/// How far this machine's clock and the server's may run apart, and what rounding may cost: 1 % of
/// the span and 2 ms.
fn margin(span: Duration) -> Duration {
    span / 100 + Duration::from_millis(2)
}

/// For how long a store gives a key to a waiter that it has not heard of since.
pub(crate) const GRANT: Duration = Duration::from_secs(2);

/// When a lease ends for its owner: counted from the instant *before the first byte* of the send
/// whose reply is used, so that no delay of the network can make it outlive the server's.
pub(crate) fn deadline(sent: Moment, ttl: Duration) -> Moment {
    sent + ttl.saturating_sub(margin(ttl))
}

/// What a waiter knows of the server's clock: it showed `server` after the local instant `local`.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(test, derive(PartialEq, Eq, Hash))]
pub(crate) struct Anchor {
    pub(crate) local: Moment,
    pub(crate) server: ServerTime,
}

impl Anchor {
    /// When a lease ends for its owner that the server gives away, unasked, until `ends`. The server
    /// cannot read `ends` before the local instant answered: its clock showed `server` no earlier
    /// than `local`, and the margin is for the whole span since then, the waiting included.
    ///
    /// `None`: the server's clock has been stepped. A grant cannot last longer than `longest` from
    /// the instant at which it is heard of, nor end before its anchor.
    pub(crate) fn deadline(
        self,
        ends: ServerTime,
        heard: Moment,
        longest: Duration,
    ) -> Option<Moment> {
        let span = Duration::from_micros(ends.0.checked_sub(self.server.0)?);
        let deadline = deadline(self.local, span);
        (deadline <= heard + longest).then_some(deadline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const START: Moment = Moment(1_000_000_000_000);

    fn after(span: Duration) -> Moment {
        START + span
    }

    #[test]
    fn the_deadline_leaves_one_percent_and_two_milliseconds() {
        assert_eq!(
            deadline(START, 10 * SECOND),
            after(Duration::from_millis(9_898))
        );
    }

    fn anchor() -> Anchor {
        Anchor {
            local: START,
            server: ServerTime(5_000_000),
        }
    }

    #[test]
    fn a_grant_ends_by_the_anchor_and_the_margin_is_for_the_whole_span() {
        let ends = ServerTime(5_000_000 + 100_000_000);
        let heard = after(98 * SECOND);
        assert_eq!(
            anchor().deadline(ends, heard, 2 * SECOND),
            Some(after(Duration::from_millis(98_998))),
            "one percent of a hundred seconds, and 2 ms"
        );
    }

    #[test]
    fn a_clock_that_was_stepped_gives_no_deadline() {
        let heard = after(10 * SECOND);
        // Forward by a minute: it would last longer than any grant does.
        let ends = ServerTime(5_000_000 + 72_000_000);
        assert_eq!(anchor().deadline(ends, heard, 2 * SECOND), None);
        // Back behind the anchor.
        assert_eq!(
            anchor().deadline(ServerTime(4_000_000), heard, 2 * SECOND),
            None
        );
    }
}
