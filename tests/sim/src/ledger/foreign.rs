//! Owners of other libraries, who set the same keys.

use super::{Claim, Ledger};
use crate::plan::Plan;
use crate::world::{EPOCH, MICRO, MILLI};

/// The time between two gaps by the server's clock, in microseconds.
const BETWEEN_GAPS: u64 = 1_037_000;
/// A gap begins at most so long after its owner has left, and a foreign client meets it.
const BEGINS: u64 = 100 * MILLI;

/// The span in which a client of another library had a key, by the servers.
#[derive(Clone, Debug)]
pub struct Foreign {
    pub key: usize,
    pub from: u64,
    pub until: u64,
}

impl Ledger {
    /// Checks that no owner of the kit has a key beside a foreign one.
    pub fn check_foreign(&mut self, plan: &Plan) {
        if plan.loses_data() || plan.has(|fault| fault.loses_data()) {
            return;
        }
        for foreign in self.foreign.clone() {
            let beside = self.claims.iter().find(|claim| {
                claim.key == foreign.key
                    && claim.from <= foreign.until
                    && foreign.from <= claim.until
            });
            if let Some(claim) = beside {
                let text = format!("{foreign:?}, {claim:?}: {}", self.show(claim.call));
                self.violates("an owner beside one of another library", text);
            }
        }
    }

    /// Notes that a foreign client has waited from `asked` to `now` for a key that is left free for it at times.
    pub fn starves(&mut self, key: usize, asked: u64, now: u64) {
        let others = self.foreign.iter();
        let is_others = others.filter(|it| it.key == key).any(|it| it.until > asked);
        if !is_others && self.has_gap_due(key, asked, now) {
            let text = format!("k{key} from {asked} to {now}");
            self.violates("a client of another library gets no gap", text);
        }
    }

    /// Returns whether an owner had the key at a time at which a gap is due, and left it since. No gap is left at a time at which
    /// the key is on its way from one owner to the next.
    fn has_gap_due(&self, key: usize, asked: u64, now: u64) -> bool {
        let of_key = self.claims.iter().filter(|claim| claim.key == key);
        let mut spans = of_key.filter_map(|claim| self.span_at_the_server(claim));
        spans.any(|(from, until)| {
            let next = (EPOCH as u64 + from / MICRO).next_multiple_of(BETWEEN_GAPS);
            let next = (next - EPOCH as u64) * MICRO;
            asked < next && next <= until && until + BEGINS < now
        })
    }

    /// Returns when an owner got its key by the server, and the last time by the server's clock that it knew to be over when it
    /// left. It takes the clock to be behind by the time that its grant was on its way.
    fn span_at_the_server(&self, claim: &Claim) -> Option<(u64, u64)> {
        let granted = claim.token.checked_sub(EPOCH as u64)? * MICRO;
        let heard = claim.from.checked_sub(granted)?;
        Some((granted, self.calls[claim.call].left?.checked_sub(heard)?))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{owns, rules};
    use super::super::{Ledger, Owning};
    use super::*;
    use crate::world::SECOND;

    /// The rules that are broken where a foreign client waits from second 1 to second 5, and an owner that hears of its grant after
    /// 5 ms leaves the key at this time. A gap is due 1.768 s after the epoch.
    fn broken(granted: u64, left: u64) -> Vec<&'static str> {
        let mut ledger = Ledger::default();
        let token = EPOCH as u64 + granted / MICRO;
        owns(&mut ledger, Owning::Alone, token, 1, 2);
        ledger.claims[0].from = granted + 5 * MILLI;
        ledger.calls[0].left = Some(left);
        ledger.starves(0, SECOND, 5 * SECOND);
        rules(&ledger)
    }

    #[test]
    fn a_gap_is_due_only_where_an_owner_has_the_key_at_its_time() {
        let due = 1_768 * MILLI;
        let rule = "a client of another library gets no gap";
        assert_eq!(broken(due - MILLI, due + 5 * MILLI), [rule]);
        assert!(broken(due - MILLI, due + 4 * MILLI).is_empty());
        assert!(broken(due + MILLI, due + 40 * MILLI).is_empty());
    }
}
