//! Reasons to renew a lease at another time: a nested body, the other keys of a lock, a hint of the store.
//!
//! A hint says that the key was changed, and not by a renewal of this lease. Only the answer to a renewal says what
//! became of the lease, so a hint makes a renewal due and decides nothing. A lease that was never renewed ignores hints:
//! the store watches a key from its first renewal on, so the hint is about an earlier lease of the key. Otherwise the
//! release of one lease would renew the next one, whose release would be a hint again, for ever.

use std::time::Duration;

use super::{Lease, Renewing};
use crate::base::clock::Moment;
use crate::lease::deadline::deadline;
use crate::lease::options::LeaseOptions;

/// Two renewals of one lease by hints are so far apart at least, because another client may change the key all the time.
pub(super) const BETWEEN_HINTS: Duration = Duration::from_millis(250);

impl Lease {
    /// Makes the lease one of several of a lock, whose options count from now on.
    ///
    /// While the others were collected it was renewed in any case. Without renewal it is lengthened once more if less
    /// than two thirds of the ttl are left.
    pub(crate) fn join(&mut self, options: LeaseOptions, now: Moment) {
        self.options = options;
        self.max_hold_at = now + options.max_hold();
        if let Renewing::At(_) = self.renewing
            && !options.renew
        {
            let enough = self.deadline >= deadline(now, options.ttl() / 3 * 2);
            self.renewing = match enough {
                true => Renewing::Off,
                false => Renewing::At(now),
            };
        }
    }

    /// Adds a nested body, with its own options, to this lease.
    ///
    /// The ttl only grows, because the store would cut the lease down to a shorter ttl. If the
    /// lease is too short for the body, a renewal is due at once.
    pub(crate) fn serve(&mut self, nested: LeaseOptions, now: Moment) {
        let longer = nested.ttl_millis > self.options.ttl_millis;
        let unattended = !self.options.renew;
        let short = self.deadline < deadline(now, nested.ttl());
        self.options.ttl_millis = self.options.ttl_millis.max(nested.ttl_millis);
        self.options.renew |= nested.renew;
        match self.renewing {
            // The answer to this renewal requests the rest.
            Renewing::Sent { .. } => {}
            _ if longer || (unattended && short) => self.renewing = Renewing::At(now),
            Renewing::Off if nested.renew => {
                self.renewing = Renewing::At(now + self.renewal_interval());
            }
            Renewing::Off | Renewing::At(_) => {}
        }
    }

    /// Makes a renewal due at `at` or before, because the key may have been changed.
    pub(crate) fn renew_by(&mut self, at: Moment) {
        match &mut self.renewing {
            Renewing::At(next) => *next = at.min(*next),
            // The renewal may have been answered before the change.
            Renewing::Sent { hinted, .. } => *hinted = true,
            Renewing::Off => {}
        }
    }

    /// Stops renewing, because the last body that needed it has left.
    pub(crate) fn stop_renewing(&mut self) {
        self.options.renew = false;
        if let Renewing::At(_) = self.renewing {
            self.renewing = Renewing::Off;
        }
    }

    /// Notes that a renewal is sent, from which on the store watches the key.
    pub(super) fn is_watched(&mut self) {
        if self.hints_from == Moment::FAR {
            self.hints_from = Moment(0);
        }
    }

    /// Makes a renewal due soon, because the store says that the key was changed.
    pub(crate) fn hint(&mut self, now: Moment) {
        // Never for a lease that was not renewed.
        let soon = now.max(self.hints_from);
        if matches!(self.renewing, Renewing::At(at) if soon < at) {
            self.hints_from = soon + BETWEEN_HINTS;
        }
        self.renew_by(soon);
    }

    /// Makes a renewal due at `at` or before, because the store does not watch the key any more.
    pub(crate) fn watch_again(&mut self, at: Moment) {
        if self.hints_from < Moment::FAR {
            self.renew_by(at);
        }
    }
}
