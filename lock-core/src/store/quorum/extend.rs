//! Renewing leases at a majority of the nodes, and noting where they still stand.

use std::sync::Arc;

use super::Quorum;
use super::fan_out::FanOut;
use super::rejoin;
use super::tally;
use super::undo::Undoing;
use super::vote_ledger::{NodeSet, VoteLedger, contains};
use crate::store::{Extended, Extension, Lane, Operation, Outcome};

impl Quorum {
    pub(super) async fn extend(
        self: &Arc<Self>,
        extensions: Vec<Extension>,
        lane: Lane,
    ) -> Outcome {
        let shortest = extensions.iter().map(|extension| extension.ttl).min();
        let mut renewal = RenewalRound::new(self, extensions);
        let asked = self.up().map(|(place, node)| {
            let extensions = renewal.leases.iter().map(|one| one.extension.clone());
            let extend = Operation::Extend(extensions.collect());
            (place, node.ask(extend, lane))
        });
        let patience = self.patience(shortest.unwrap_or_default());
        let overdue = self.timers.now() + patience;
        let mut answers = FanOut::new(asked).until(&self.timers, overdue);
        while !renewal.is_decided(answers.open()) {
            match answers.next().await {
                Some((place, outcome)) => renewal.came(place, outcome),
                None => break,
            }
        }
        if !renewal.is_decided(answers.open()) {
            answers.note_silence(self);
        }
        while let Some((place, outcome)) = answers.at_hand() {
            renewal.came(place, outcome);
        }
        let extended = renewal.extended();
        self.drop_lost(&renewal, &extended, lane);
        renewal.rejoin(lane);
        if answers.open() > 0 {
            self.leave_behind(renewal.rest(answers, lane));
        } else {
            renewal.note_unheard();
        }
        Outcome::Extended(extended)
    }

    /// Releases a lease that a majority has lost on the other nodes, because no owner will release it. A lease that ended
    /// meanwhile is released by what ended it, which would miss the votes that this takes away, and call the lock lost.
    fn drop_lost(self: &Arc<Self>, renewal: &RenewalRound, extended: &[Extended], lane: Lane) {
        for (one, extended) in renewal.leases.iter().zip(extended) {
            if *extended != Extended::NotOurs || one.ledger.has_ended() {
                continue;
            }
            self.leases.end(one.extension.token);
            let undoing = Undoing::new(&one.extension.acquire(), &one.ledger, lane);
            let touched = one.ledger.touched();
            for place in (0..self.nodes.len()).filter(|place| contains(touched, *place)) {
                self.take_back(place, &undoing);
            }
        }
    }
}

/// Several leases, and the answer of each node for each of them.
struct RenewalRound {
    quorum: Arc<Quorum>,
    leases: Vec<One>,
}

struct One {
    extension: Extension,
    ledger: Arc<VoteLedger>,
    /// The nodes on which a vote of the lease was being withdrawn when they were asked. Such a node may
    /// lengthen the lease first and delete it right after, so its answer does not count.
    undone: NodeSet,
    /// The nodes on which the lease stood when they were asked.
    stood: NodeSet,
    answers: Vec<Option<Extended>>,
}

impl RenewalRound {
    fn new(quorum: &Arc<Quorum>, extensions: Vec<Extension>) -> Self {
        let leases = extensions.into_iter().map(|extension| {
            let ledger = quorum.leases.of(extension.token).unwrap_or_default();
            One {
                undone: ledger.being_undone(),
                stood: ledger.stands_quietly(),
                answers: vec![None; quorum.nodes.len()],
                ledger,
                extension,
            }
        });
        Self {
            quorum: Arc::clone(quorum),
            leases: leases.collect(),
        }
    }

    fn came(&mut self, place: usize, outcome: Outcome) {
        let Outcome::Extended(answers) = outcome else {
            return;
        };
        for (one, answer) in self.leases.iter_mut().zip(answers) {
            let undone = contains(one.undone | one.ledger.being_undone(), place);
            let answer = match answer {
                Extended::Yes if undone => Extended::Unknown,
                answer => answer,
            };
            one.answers[place] = Some(answer);
            match answer {
                Extended::Yes => {
                    // A lease that is released meanwhile has been released on this node too, or will be.
                    let _wanted = one.ledger.stands(place);
                }
                Extended::NotOurs => one.ledger.is_not_found(place, one.stood),
                Extended::Unknown => {}
            }
        }
    }

    fn is_decided(&self, open: usize) -> bool {
        let decided = |one: &One| tally::extended(&one.answers, open).is_some();
        self.leases.iter().all(decided)
    }

    fn extended(&self) -> Vec<Extended> {
        let answer = |one: &One| tally::extended(&one.answers, 0).unwrap_or(Extended::Unknown);
        self.leases.iter().map(answer).collect()
    }

    /// Proposes leases to nodes that are without them, where a majority has them.
    fn rejoin(&self, lane: Lane) {
        let held = self
            .leases
            .iter()
            .filter(|one| tally::extended(&one.answers, 0) == Some(Extended::Yes));
        let missing = held.flat_map(|one| {
            let places = one.answers.iter().enumerate();
            let without = places.filter(|(_, answer)| **answer == Some(Extended::NotOurs));
            without.map(move |(place, _)| (place, one))
        });
        for (place, one) in missing.take(rejoin::AT_ONCE) {
            self.quorum.rejoin(place, &one.extension, &one.ledger, lane);
        }
    }

    /// Marks nodes that have not renewed a lease. They do not count until the next renewal.
    fn note_unheard(&self) {
        for one in &self.leases {
            for (place, answer) in one.answers.iter().enumerate() {
                if *answer != Some(Extended::Yes) {
                    one.ledger.is_unheard(place);
                }
            }
        }
    }

    /// Takes the answers that come after the majority's.
    async fn rest(mut self, mut answers: FanOut, lane: Lane) {
        loop {
            match answers.next().await {
                Some((place, outcome)) => self.came(place, outcome),
                None if answers.open() > 0 => {
                    answers.note_silence(&self.quorum);
                    // A later renewal does no harm, because it only lengthens a lease that stands.
                    return self.note_unheard();
                }
                None => {
                    self.note_unheard();
                    return self.rejoin(lane);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::leases::Leases;
    use super::super::test_nodes::one_node;
    use super::super::vote_ledger::Late;
    use super::*;
    use crate::base::clock::Clock;
    use crate::base::token::{Address, Token, TokenSource};
    use crate::timer::Timers;

    fn a_lease() -> Extension {
        Extension {
            key: "k".into(),
            token: TokenSource::new(Address::random()).fresh(),
            ttl: Duration::from_secs(10),
        }
    }

    /// The two have connections of their own, so a process that stood still may read the answer to the vote first.
    #[test]
    fn a_renewal_that_was_sent_before_a_vote_arrived_does_not_forget_the_vote() {
        let store = one_node(&Timers::new(Clock::default()));
        let lease = a_lease();
        let ledger = store.quorum.leases.begin(lease.token);
        let not_ours = |renewal: &mut RenewalRound| {
            renewal.came(0, Outcome::Extended(vec![Extended::NotOurs]));
        };
        assert!(ledger.claim(0));
        let mut before = RenewalRound::new(&store.quorum, vec![lease.clone()]);
        assert_eq!(ledger.agrees_late(0, false), Late::Counts);
        ledger.resolved(0);
        not_ours(&mut before);
        assert!(contains(ledger.touched(), 0), "the release goes there too");
        not_ours(&mut RenewalRound::new(&store.quorum, vec![lease]));
        assert!(!contains(ledger.touched(), 0));
    }

    #[test]
    fn a_renewal_takes_no_vote_away_from_a_release_that_began_meanwhile() {
        type End = fn(&Leases, Token) -> Option<Arc<VoteLedger>>;
        let store = one_node(&Timers::new(Clock::default()));
        let leases = &store.quorum.leases;
        let is_taken_away = |end: Option<End>| {
            let lease = a_lease();
            let ledger = leases.begin(lease.token);
            assert!(ledger.claim(0) && ledger.stands(0));
            ledger.resolved(0);
            let renewal = RenewalRound::new(&store.quorum, vec![lease.clone()]);
            assert!(end.is_none_or(|end| end(leases, lease.token).is_some()));
            store
                .quorum
                .drop_lost(&renewal, &[Extended::NotOurs], Lane::KEEPER);
            !contains(ledger.touched(), 0)
        };
        assert!(is_taken_away(None), "nobody else would withdraw it");
        assert!(!is_taken_away(Some(Leases::end)), "the release counts it");
        let by_record: End = Leases::end_with_record;
        assert!(!is_taken_away(Some(by_record)), "the record needs it");
    }

    #[test]
    fn a_vote_that_is_withdrawn_while_its_node_is_asked_renews_nothing() {
        let store = one_node(&Timers::new(Clock::default()));
        let lease = a_lease();
        let ledger = store.quorum.leases.begin(lease.token);
        let renewed = |mut renewal: RenewalRound| {
            renewal.came(0, Outcome::Extended(vec![Extended::Yes]));
            renewal.extended() == [Extended::Yes]
        };
        let asked = || RenewalRound::new(&store.quorum, vec![lease.clone()]);
        assert!(ledger.claim(0) && ledger.stands(0));
        ledger.resolved(0);
        assert!(renewed(asked()));

        let before = asked();
        ledger.is_taken_back(0);
        let between = asked();
        assert!(!renewed(before), "the answer came behind the withdrawal");
        ledger.resolved(0);
        assert!(!renewed(between), "the withdrawal was on its way");
    }
}
