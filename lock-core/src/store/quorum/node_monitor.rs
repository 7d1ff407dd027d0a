//! Monitors one node on the keeper's thread: whether it answers, its name, whether it votes, its clock, and the
//! hints that it has to get.
//!
//! A server that restarted without its data would give away the locks that it held, and accept the same fencing
//! numbers again. So a node keeps a mark beside its registers. The first client that finds no mark sets it,
//! with the time. The node does not vote before `max_ttl` has passed since then, and with it every lock that it
//! may have forgotten. The node decides that at every single vote, by its own clock alone. A process that has
//! just started, or has not noticed the restart, decides nothing.

use std::sync::Arc;
use std::time::Duration;

use super::{Quorum, proposal_number};
use crate::base::clock::Moment;
use crate::base::error::Error;
use crate::base::machine::{self, timeout};
use crate::base::sync::lock;
use crate::lease::backoff::pause_after_failure;
use crate::store::vote::{Join, Joined, VoteOperation, VoteOutcome, Welcome};
use crate::store::{Failure, Lane, Operation, Outcome};

/// How often a node that answers is looked at: its clock drifts, and its server may be replaced.
const INTERVAL: Duration = Duration::from_secs(10);
/// How soon a node is looked at again while other processes may register the same nodes.
const SOON: Duration = Duration::from_millis(50);
/// How many hints are delivered at once to a node that is back.
const AT_ONCE: usize = 32;

pub(super) async fn monitor(quorum: Arc<Quorum>, place: usize) {
    let node = Arc::clone(&quorum.nodes[place]);
    let mut failures = 0;
    loop {
        let again = match quorum.meet(place).await {
            Ok(Meeting::Votes) => {
                failures = 0;
                node.note_kept_out(false);
                quorum.catch_up(place).await
            }
            Ok(Meeting::KeptOut(wait)) => {
                failures = 0;
                if !node.note_kept_out(true) {
                    tracing::warn!(
                        node = node.shown,
                        for_seconds = wait.as_secs(),
                        "a node of the lock's quorum came without data, which it may have lost, and does not vote \
                         for a while; a manager that is the first to meet new servers says so by `assume_fresh`"
                    );
                }
                quorum.catch_up(place).await
            }
            Ok(Meeting::LookedAt) => SOON,
            Err(failure) => {
                failures += 1;
                node.is_out(&failure);
                pause_after_failure(failures)
            }
        };
        let _ = timeout(again, node.bell.notified()).await;
    }
}

enum Meeting {
    Votes,
    KeptOut(Duration),
    /// Whether the node is new has not been decided.
    LookedAt,
}

impl Quorum {
    async fn meet(&self, place: usize) -> Result<Meeting, Failure> {
        let node = &self.nodes[place];
        let sent = self.timers.now();
        let (welcome, seen) = {
            let mut known = lock(&self.known);
            let before = known.names[place].is_some();
            let welcome = known.bootstrap.welcome(before, sent);
            (welcome, known.bootstrap.seen(place))
        };
        let join = VoteOperation::Join(Join {
            welcome,
            seen,
            max_ttl: self.settings.max_ttl,
            name: self.names.fresh(),
        });
        let answer = node.store.execute(Operation::Vote(join), Lane::KEEPER);
        match timeout(self.settings.operation_timeout, answer).await {
            Ok(Outcome::Vote(VoteOutcome::Joined(joined))) => {
                self.met(place, sent, welcome, joined)
            }
            Ok(Outcome::Failed(failure)) => Err(failure),
            Ok(_) => Err(Failure::not_understood()),
            Err(_) => Err(Failure::unanswered("it gave no answer in time")),
        }
    }

    fn met(
        &self,
        place: usize,
        sent: Moment,
        welcome: Welcome,
        joined: Joined,
    ) -> Result<Meeting, Failure> {
        let mut known = lock(&self.known);
        if welcome == Welcome::Look {
            let empty = joined.opens_in.is_none();
            let now = self.timers.now();
            if known.bootstrap.saw(place, empty, &joined.names, now) {
                self.nodes.iter().for_each(|node| node.bell.notify_one());
            }
        }
        let Some(opens_in) = joined.opens_in else {
            return Ok(Meeting::LookedAt);
        };
        let is_other = |(other, names): (usize, &Option<Vec<String>>)| {
            let shared = |names: &Vec<String>| names.iter().any(|name| joined.names.contains(name));
            other != place && names.as_ref().is_some_and(shared)
        };
        if let Some(other) = known.names.iter().enumerate().position(is_other) {
            let same_server = Error::invalid(format!(
                "two nodes of the quorum, {} and {}, are one server; list every server once",
                self.nodes[other].shown, self.nodes[place].shown,
            ));
            known.same_server = Some(same_server.clone());
            known.names[place] = None;
            return Err(Failure::from(same_server));
        }
        known.names[place] = Some(joined.names);
        known.clocks[place] = Some(proposal_number::offset(sent, joined.time));
        self.numbers
            .set_clock(known.clocks.iter().flatten().copied().collect());
        drop(known);
        self.nodes[place].answered();
        Ok(if opens_in.is_zero() {
            Meeting::Votes
        } else {
            Meeting::KeptOut(opens_in)
        })
    }

    /// Delivers the hints of a node. Answers when to look at it again.
    async fn catch_up(&self, place: usize) -> Duration {
        let node = &self.nodes[place];
        // The hints are in no list until they are delivered.
        let _delivering = Arc::clone(&self.unfinished);
        let due = node.hints.take(self.timers.now());
        let mut failed = false;
        for some in due.chunks(AT_ONCE) {
            let releases = some.iter().map(|left| {
                let withdraw = left.withdraw();
                node.ask(Operation::Vote(withdraw), Lane::KEEPER)
            });
            // Spawned together, so that they are sent together.
            let releases: Vec<_> = releases.map(machine::spawn).collect();
            for (left, release) in some.iter().zip(releases) {
                let answer = timeout(self.settings.operation_timeout, release).await;
                let now = self.timers.now();
                match answer {
                    Ok(Ok(Outcome::Vote(VoteOutcome::Withdrawn { repeated, .. }))) => {
                        node.hints
                            .delivered(place, left.clone().in_doubt_if(repeated), now);
                    }
                    // A node that lacks replicas or disk space answers at once. Without a pause, this process would ask it without end.
                    Ok(Ok(Outcome::Failed(failure)))
                        if failure.is_final() || !failure.ambiguous =>
                    {
                        node.hints.refused(left.clone(), now);
                    }
                    _ => {
                        failed = true;
                        node.hints.put_back(left.clone());
                    }
                }
            }
            if failed {
                node.is_silent();
            }
        }
        let now = self.timers.now();
        let next = node.hints.due().map_or(INTERVAL, |due| due.since(now));
        next.clamp(Duration::from_millis(1), INTERVAL)
    }
}
