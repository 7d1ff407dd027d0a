//! Whether nodes without data are new, or have forgotten: pure, `now` is an argument.
//!
//! A server that comes back empty has forgotten the locks that it held, and must not vote for them a
//! second time; a new one has nothing to forget. They look alike. So by default both wait. Whoever
//! *assumes fresh* says: when all of them are without data at once, they are new. Never when only
//! some are, and never later than at the start: then they have forgotten.

use std::time::Duration;

use crate::base::clock::Moment;
use crate::store::vote::Welcome;

/// Two processes of one first deployment may find each other's beginnings: how long to look again
/// before nodes of both kinds are taken for what they are.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Opening {
    began: Moment,
    /// What was seen of each node: whether it had no data.
    empty: Vec<Option<bool>>,
    /// Since when they are known to be new.
    fresh: Option<Moment>,
    /// Whether there is nothing more to find out.
    over: bool,
}

impl Opening {
    pub(super) fn new(nodes: usize, assume_fresh: bool, now: Moment) -> Self {
        Self {
            began: now,
            empty: vec![None; nodes],
            fresh: None,
            over: !assume_fresh,
        }
    }

    /// How to ask a node; `met`: it has joined before.
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

    /// A node was looked at. `true`: it is clear what they are.
    pub(super) fn saw(&mut self, node: usize, empty: bool, now: Moment) -> bool {
        if self.over {
            return true;
        }
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
            // Somebody else may be about to begin them.
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
        let mut opening = Opening::new(3, false, START);
        assert_eq!(opening.welcome(false, START), Welcome::Wait);
    }

    #[test]
    fn all_without_data_are_new_if_so_assumed() {
        let mut opening = Opening::new(3, true, START);
        assert_eq!(opening.welcome(false, START), Welcome::Look);
        assert!(!opening.saw(0, true, START) && !opening.saw(1, true, START));
        assert_eq!(
            opening.welcome(false, START),
            Welcome::Look,
            "the third may know better"
        );
        assert!(opening.saw(2, true, START));
        assert_eq!(opening.welcome(false, START), Welcome::Fresh);
        assert_eq!(
            opening.welcome(true, START),
            Welcome::Wait,
            "it has joined: it has forgotten"
        );
        assert_eq!(
            opening.welcome(false, after(5_000)),
            Welcome::Wait,
            "that was at the start"
        );
    }

    #[test]
    fn one_among_others_has_forgotten() {
        let mut opening = Opening::new(3, true, START);
        for round in 0..3 {
            assert!(!opening.saw(0, false, after(round)));
            assert!(!opening.saw(1, false, after(round)));
            assert!(!opening.saw(2, true, after(round)), "it is looked at again");
            assert_eq!(opening.welcome(false, after(round)), Welcome::Look);
        }
        assert_eq!(opening.welcome(false, after(5_000)), Welcome::Wait);
        assert!(opening.saw(2, true, after(5_000)));
    }

    #[test]
    fn a_node_that_does_not_answer_is_not_assumed_to_be_new() {
        let mut opening = Opening::new(2, true, START);
        assert!(!opening.saw(0, true, START));
        assert_eq!(opening.welcome(false, after(5_000)), Welcome::Wait);
    }

    #[test]
    fn all_with_data_are_what_they_are() {
        let mut opening = Opening::new(2, true, START);
        assert!(!opening.saw(0, false, START));
        assert!(opening.saw(1, false, START));
        assert_eq!(opening.welcome(false, START), Welcome::Wait);
    }
}
