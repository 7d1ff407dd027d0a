//! Exports what callers saw of a key to a checker of linearizability (Wing and Gong, 1993; Lowe, 2017) that is not a part of
//! this project.
//!
//! The ledger compares spans of time. The checker asks another question: is there an order of all grants and ends, each at one
//! moment of its call, in which a lock that knows no time would have given the same answers?

use todc_utils::{Action, History, Specification, WGLChecker};

use crate::ledger::{Call, Claim, Ledger, Owning};

/// One key, as a lock without time has it.
struct Key;

/// A change of the owners inside a key. A call is named by its number.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Enter(usize, Owning),
    Leave(usize),
}

impl Specification for Key {
    /// The calls whose owners are inside, in the order of their numbers.
    type State = Vec<(usize, Owning)>;
    type Operation = Step;

    fn init() -> Self::State {
        Vec::new()
    }

    fn apply(step: &Step, inside: &Self::State) -> (bool, Self::State) {
        let mut after = inside.clone();
        let is_possible = match *step {
            Step::Enter(call, owning) => {
                after.push((call, owning));
                after.sort_unstable();
                fits(owning, inside)
            }
            Step::Leave(call) => {
                after.retain(|owner| owner.0 != call);
                after.len() < inside.len()
            }
        };
        (is_possible, after)
    }
}

fn fits(owning: Owning, inside: &[(usize, Owning)]) -> bool {
    match owning {
        Owning::Alone => inside.is_empty(),
        Owning::Share(limit) => {
            let is_shared = inside.iter().all(|owner| owner.1 != Owning::Alone);
            is_shared && inside.len() < limit as usize
        }
    }
}

/// Returns the keys whose history is not that of a lock.
pub fn broken_keys(ledger: &Ledger) -> Vec<usize> {
    let mut claims = ledger.claims.clone();
    claims.sort_by_key(|claim| claim.key);
    let keys = claims.chunk_by(|one, other| one.key == other.key);
    let broken = keys.filter(|claims| !WGLChecker::<Key>::is_linearizable(history(ledger, claims)));
    broken.map(|claims| claims[0].key).collect()
}

/// The history of one key.
fn history(ledger: &Ledger, claims: &[Claim]) -> History<Step> {
    let mut events = Vec::new();
    for claim in claims {
        let call = &ledger.calls[claim.call];
        let enter = Step::Enter(claim.call, claim.owning);
        let leave = Step::Leave(claim.call);
        let entered = call.answered.unwrap_or(claim.from);
        // The checker pairs a call with its response by the number of a process that does one thing at a time.
        let (entering, leaving) = (2 * claim.call, 2 * claim.call + 1);
        events.push((call.asked, 0, entering, Action::Call(enter.clone())));
        events.push((entered, 1, entering, Action::Response(enter)));
        events.push((claim.until, 0, leaving, Action::Call(leave.clone())));
        events.push((left(call), 1, leaving, Action::Response(leave)));
    }
    // At one time a call comes before a response, because the two may overlap then.
    events.sort_by_key(|event| (event.0, event.1, event.2));
    History::from_actions(events.into_iter().map(|event| (event.2, event.3)).collect())
}

/// An owner whose release was not confirmed may be inside until the end of the history.
fn left(call: &Call) -> u64 {
    call.released.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{Answer, Asks};

    /// A ledger of calls for one key: how it is owned, and when it was asked for, granted, seen last and released.
    fn ledger(calls: &[(Owning, [u64; 3], Option<u64>)]) -> Ledger {
        let mut ledger = Ledger::default();
        for (number, (owning, [asked, granted, seen], released)) in calls.iter().enumerate() {
            let asks = Asks {
                process: 0,
                task: number,
                keys: vec![0],
                owning: *owning,
                ttl: 0,
                wait: None,
            };
            ledger.calls.push(Call {
                answered: Some(*granted),
                answer: Answer::Granted,
                released: *released,
                ..asks.at(*asked)
            });
            ledger.claims.push(Claim {
                call: number,
                key: 0,
                owning: *owning,
                token: number as u64,
                from: *granted,
                until: *seen,
            });
        }
        ledger
    }

    #[test]
    fn owners_behind_one_another_are_a_history_of_a_lock() {
        let ledger = ledger(&[
            (Owning::Alone, [0, 1, 5], Some(7)),
            // It asked while the first one was inside.
            (Owning::Alone, [2, 8, 9], None),
            (Owning::Alone, [3, 12, 13], Some(14)),
        ]);
        assert!(broken_keys(&ledger).is_empty());
    }

    #[test]
    fn an_owner_that_enters_before_another_one_was_seen_last_is_none() {
        let ledger = ledger(&[
            (Owning::Alone, [0, 1, 5], Some(7)),
            (Owning::Alone, [2, 4, 9], Some(10)),
        ]);
        assert_eq!(broken_keys(&ledger), [0]);
    }

    #[test]
    fn shares_stand_beside_one_another_up_to_their_limit() {
        let permit = |seen| (Owning::Share(2), [0, 1, seen], Some(seen + 1));
        assert!(broken_keys(&ledger(&[permit(5), permit(6)])).is_empty());
        assert_eq!(
            broken_keys(&ledger(&[permit(5), permit(6), permit(7)])),
            [0]
        );
        let writer = (Owning::Alone, [2, 3, 4], Some(5));
        assert_eq!(broken_keys(&ledger(&[permit(5), writer])), [0]);
    }
}
