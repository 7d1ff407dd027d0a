//! Computes when a lease ends for its owner. Everything here is pure.

use std::time::Duration;

use crate::base::clock::{Moment, ServerTime};

/// Returns the safety margin of a deadline: 1 % of the duration and 2 ms.
///
/// It covers the drift between this machine's clock and the server's, and rounding.
fn margin(span: Duration) -> Duration {
    span / 100 + Duration::from_millis(2)
}

/// Returns the time after which a span of the server is over, also where this machine's clock is faster.
pub(crate) fn surely_over(span: Duration) -> Duration {
    span + margin(span)
}

/// The duration for which a store grants a key to a waiter at a hand-over.
pub(crate) const GRANT: Duration = Duration::from_secs(2);

/// Returns the moment at which a lease ends for its owner.
///
/// It counts from the moment *before the first byte* of the send whose reply is used. So no network
/// delay can make the lease outlive the server's.
pub(crate) fn deadline(sent: Moment, ttl: Duration) -> Moment {
    sent + ttl.saturating_sub(margin(ttl))
}

/// Relates the local clock to the server's clock.
///
/// The server's clock showed `server` after the local moment `local`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Anchor {
    pub(crate) local: Moment,
    pub(crate) server: ServerTime,
}

impl Anchor {
    /// Returns the local end of a lease that the server handed over until `ends`.
    ///
    /// The server's clock does not show `ends` before the local moment returned here, because it
    /// showed `server` no earlier than `local`. The margin covers the whole time since then, the
    /// waiting included.
    ///
    /// Returns `None` if the server's clock was stepped. A grant cannot last longer than `longest`
    /// from the moment `heard` at which its push arrived, nor end before its anchor.
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

    #[test]
    fn a_span_is_over_one_percent_and_two_milliseconds_later_on_all_servers() {
        assert_eq!(surely_over(GRANT), Duration::from_millis(2_022));
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
            "the margin is one percent of a hundred seconds, and 2 ms"
        );
    }

    #[test]
    fn a_clock_that_was_stepped_gives_no_deadline() {
        let heard = after(10 * SECOND);
        // The clock was set forward by a minute, so the grant would last too long.
        let ends = ServerTime(5_000_000 + 72_000_000);
        assert_eq!(anchor().deadline(ends, heard, 2 * SECOND), None);
        // The clock was set back behind the anchor.
        assert_eq!(
            anchor().deadline(ServerTime(4_000_000), heard, 2 * SECOND),
            None
        );
    }
}
