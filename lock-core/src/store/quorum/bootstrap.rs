//! Decides whether nodes without data are new or have forgotten: pure, `now` is an argument.
//!
//! A server that comes back empty has forgotten the locks that it held, and must not vote for them a second
//! time. A new server has nothing to forget. Both look alike, so by default both wait.
//!
//! A client with `assume_fresh` takes nodes for new ones if all of them are without data when the client
//! starts. If only some of them are, or if it happens later, they have forgotten. So has a node that was started again
//! between the client's look and its registration.

use std::time::Duration;

use crate::base::clock::Moment;
use crate::store::vote::Welcome;

/// Two processes of one first deployment may meet the nodes at the same time. They look again for so long
/// before they decide.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Bootstrap {
    began: Moment,
    /// Whether each node was without data.
    empty: Vec<Option<bool>>,
    /// The names that each node had at the last look.
    seen: Vec<Vec<String>>,
    /// Since when the nodes are known to be new.
    fresh: Option<Moment>,
    /// Whether the decision has been made.
    over: bool,
}

impl Bootstrap {
    pub(super) fn new(nodes: usize, assume_fresh: bool, now: Moment) -> Self {
        Self {
            began: now,
            empty: vec![None; nodes],
            seen: vec![Vec::new(); nodes],
            fresh: None,
            over: !assume_fresh,
        }
    }

    /// Says how to ask a node. `met`: the node has registered before.
    pub(super) fn welcome(&mut self, met: bool, now: Moment) -> Welcome {
        if now.since(self.began) >= PATIENCE {
            self.over = true;
        }
        match self.fresh {
            Some(since) if !met && now.since(since) < PATIENCE => Welcome::Fresh,
            None if !self.over => Welcome::Look,
            _ => Welcome::Wait,
        }
    }

    /// Returns the names that a node had at the last look, while it was not decided whether it is new.
    pub(super) fn seen(&self, node: usize) -> Vec<String> {
        self.seen[node].clone()
    }

    /// Notes the first look at a node. `true`: the decision has been made.
    pub(super) fn saw(&mut self, node: usize, empty: bool, names: &[String], now: Moment) -> bool {
        if self.over {
            return true;
        }
        self.seen[node] = names.to_vec();
        self.empty[node] = Some(empty);
        if self.empty.contains(&None) {
            return false;
        }
        if self.empty.iter().all(|empty| *empty == Some(true)) {
            self.fresh = Some(now);
            self.over = true;
        } else if !self.empty.contains(&Some(true)) {
            self.over = true;
        } else {
            // Another process may be about to register them.
            self.empty.fill(None);
        }
        self.over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Moment = Moment(1_000_000_000);

    fn after(millis: u64) -> Moment {
        START + Duration::from_millis(millis)
    }

    #[test]
    fn by_default_a_node_without_data_waits() {
        let mut bootstrap = Bootstrap::new(3, false, START);
        assert_eq!(bootstrap.welcome(false, START), Welcome::Wait);
    }

    #[test]
    fn all_without_data_are_new_if_so_assumed() {
        let mut bootstrap = Bootstrap::new(3, true, START);
        assert_eq!(bootstrap.welcome(false, START), Welcome::Look);
        assert!(!bootstrap.saw(0, true, &[], START) && !bootstrap.saw(1, true, &[], START));
        assert_eq!(
            bootstrap.welcome(false, START),
            Welcome::Look,
            "the third may know better"
        );
        assert!(bootstrap.saw(2, true, &[], START));
        assert_eq!(bootstrap.welcome(false, START), Welcome::Fresh);
        assert_eq!(
            bootstrap.welcome(true, START),
            Welcome::Wait,
            "it has joined: it has forgotten"
        );
        assert_eq!(
            bootstrap.welcome(false, after(5_000)),
            Welcome::Wait,
            "that was at the start"
        );
    }

    #[test]
    fn one_among_others_has_forgotten() {
        let mut bootstrap = Bootstrap::new(3, true, START);
        for round in 0..3 {
            assert!(!bootstrap.saw(0, false, &[], after(round)));
            assert!(!bootstrap.saw(1, false, &[], after(round)));
            assert!(
                !bootstrap.saw(2, true, &[], after(round)),
                "it is looked at again"
            );
            assert_eq!(bootstrap.welcome(false, after(round)), Welcome::Look);
        }
        assert_eq!(bootstrap.welcome(false, after(5_000)), Welcome::Wait);
        assert!(bootstrap.saw(2, true, &[], after(5_000)));
    }

    #[test]
    fn a_node_that_does_not_answer_is_not_assumed_to_be_new() {
        let mut bootstrap = Bootstrap::new(2, true, START);
        assert!(!bootstrap.saw(0, true, &[], START));
        assert_eq!(bootstrap.welcome(false, after(5_000)), Welcome::Wait);
    }

    #[test]
    fn all_with_data_are_what_they_are() {
        let mut bootstrap = Bootstrap::new(2, true, START);
        assert!(!bootstrap.saw(0, false, &[], START));
        assert!(bootstrap.saw(1, false, &[], START));
        assert_eq!(bootstrap.welcome(false, START), Welcome::Wait);
    }

    #[test]
    fn a_node_registers_under_the_names_of_the_look_that_decided() {
        let mut bootstrap = Bootstrap::new(2, true, START);
        let names = |name: &str| vec![name.to_owned()];
        bootstrap.saw(0, true, &names("a"), START);
        bootstrap.saw(1, true, &names("b"), START);
        assert_eq!(bootstrap.welcome(false, START), Welcome::Fresh);
        // Looks that come later decide nothing.
        bootstrap.saw(1, true, &names("c"), START);
        assert_eq!(
            (bootstrap.seen(0), bootstrap.seen(1)),
            (names("a"), names("b"))
        );
    }
}
