//! Compares clocks, as far as a request and its answer allow. Everything here is pure.

use std::sync::Arc;
use std::time::Duration;

use super::{Finding, FindingKind};

/// A server's clock between two readings of this machine's wall clock.
///
/// All values are microseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) before: u64,
    pub(crate) server: u64,
    pub(crate) after: u64,
}

/// The difference between two servers' clocks that is reported.
///
/// After a failover, or in a quorum, such a difference ends a lock too early or too late by more
/// than the margin of a lease of 10 s.
const APART: Duration = Duration::from_millis(100);

impl Reading {
    /// Returns how far the server's clock is ahead, at least and at most.
    fn ahead(self) -> (i128, i128) {
        let server = i128::from(self.server);
        (
            server - i128::from(self.after),
            server - i128::from(self.before),
        )
    }

    /// Returns the least difference between the server's clock and this machine's.
    pub(crate) fn difference(self) -> Duration {
        let (least, most) = self.ahead();
        micros(least.max(-most))
    }

    /// Returns the least difference between the clocks of two servers.
    fn apart(self, other: Self) -> Duration {
        let ((least, most), (other_least, other_most)) = (self.ahead(), other.ahead());
        micros((least - other_most).max(other_least - most))
    }
}

/// Converts to a duration; a negative value is zero, because the readings agree.
fn micros(span: i128) -> Duration {
    Duration::from_micros(u64::try_from(span.max(0)).unwrap_or(u64::MAX))
}

/// Makes a finding for each server whose clock differs from an earlier server's.
pub(crate) fn disagreements(readings: &[(Arc<str>, Reading)]) -> Vec<Finding> {
    let worst = readings
        .iter()
        .enumerate()
        .filter_map(|(index, (server, reading))| {
            let earlier = readings[..index].iter();
            let apart = earlier.map(|(other, of)| (reading.apart(*of), other));
            let (apart, other) = apart.max_by_key(|(apart, _)| *apart)?;
            (apart >= APART).then(|| {
                let text = format!(
                    "its clock differs by {apart:?} from that of {other}; after a failover, or in a quorum, \
                     locks end that much too early or too late; run chrony or ntpd on every server"
                );
                Finding::new(FindingKind::ClocksDisagree, Some(Arc::clone(server)), text)
            })
        });
    worst.collect()
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
    fn a_clock_differs_by_the_part_that_the_round_trip_cannot_explain() {
        let difference = |before, server, after| reading(before, server, after).difference();
        assert_eq!(difference(100, 150, 200), Duration::ZERO);
        assert_eq!(difference(100, 200, 200), Duration::ZERO);
        assert_eq!(difference(100, 230, 200), Duration::from_micros(30));
        assert_eq!(difference(100, 60, 200), Duration::from_micros(40));
    }

    #[test]
    fn only_the_server_whose_clock_differs_is_named() {
        let at = |ahead: u64| reading(10_000_000, 10_000_000 + ahead, 10_000_500);
        let readings: Vec<(Arc<str>, Reading)> = vec![
            ("a:1".into(), at(0)),
            ("b:1".into(), at(99_000)),
            ("c:1".into(), at(3_000_000)),
        ];
        let findings = disagreements(&readings);
        let [finding] = findings.as_slice() else {
            panic!("one finding is expected: {findings:?}");
        };
        assert_eq!(finding.server(), Some("c:1"));
        assert_eq!(finding.code(), "clocks_disagree");
        assert!(finding.to_string().contains("a:1"), "{finding}");
    }

    #[test]
    fn a_single_server_disagrees_with_no_other() {
        let alone = [("a:1".into(), reading(0, 5_000_000, 1))];
        assert_eq!(disagreements(&alone), []);
    }
}
