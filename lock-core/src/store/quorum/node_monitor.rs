//! Looking after one node, on the keeper's thread: does it answer, who is it, may it vote, what is its
//! clock, and what has it missed?
//!
//! A server that restarted without its data would give away the locks that it held, and have the same
//! fencing numbers again. So a node keeps a mark beside its registers. Where there is none, whoever
//! comes first sets it, with the time; the node does not vote before `max_ttl` has passed since then,
//! and every lock that it may have forgotten with it. That is decided in the node, by its clock alone,
//! and at every single vote: a process that has just started, or has not noticed the restart, decides
//! nothing.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::{Quorum, proposal_number};
use crate::base::clock::Moment;
use crate::base::error::Error;
use crate::base::sync::lock;
use crate::lease::backoff::pause_after_failure;
use crate::store::vote::{Join, Joined, VoteOperation, VoteOutcome, Welcome};
use crate::store::{Failure, Lane, Operation, Outcome};

/// How often to look at a node that answers: its clock drifts, and its server may be another one.
const INTERVAL: Duration = Duration::from_secs(10);
/// How soon to look again while others may begin with the same nodes.
const SOON: Duration = Duration::from_millis(50);
/// How many leases to give back at once to a node that is back.
const AT_ONCE: usize = 32;

pub(super) async fn watch(quorum: Arc<Quorum>, place: usize) {
    let node = Arc::clone(&quorum.nodes[place]);
    let mut failures = 0;
    let mut kept_out = false;
    loop {
        let again = match quorum.meet(place).await {
            Ok(Met::Votes) => {
                failures = 0;
                kept_out = false;
                node.note_vote();
                quorum.catch_up(place).await
            }
            Ok(Met::KeptOut(wait)) => {
                failures = 0;
                node.note_kept_out();
                if !std::mem::replace(&mut kept_out, true) {
                    tracing::warn!(
                        node = node.shown(),
                        for_seconds = wait.as_secs(),
                        "a node of the lock's quorum came without data, which it may have lost, and does not vote \
                         for a while; a manager that is the first to meet new servers says so by `assume_fresh`"
                    );
                }
                quorum.catch_up(place).await
            }
            Ok(Met::LookedAt) => SOON,
            Err(failure) => {
                failures += 1;
                node.is_out(&failure);
                pause_after_failure(failures)
            }
        };
        let _ = timeout(again, node.bell.notified()).await;
    }
}

enum Met {
    Votes,
    KeptOut(Duration),
    /// Whether it is new is still to be found out.
    LookedAt,
}

impl Quorum {
    async fn meet(&self, place: usize) -> Result<Met, Failure> {
        let node = &self.nodes[place];
        let sent = self.timers.now();
        let welcome = {
            let mut met = lock(&self.met);
            let before = met.names[place].is_some();
            met.opening.welcome(before, sent)
        };
        let join = VoteOperation::Join(Join {
            welcome,
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
    ) -> Result<Met, Failure> {
        let mut met = lock(&self.met);
        if welcome == Welcome::Look {
            let empty = joined.opens_in.is_none();
            if met.opening.saw(place, empty, self.timers.now()) {
                self.nodes.iter().for_each(|node| node.bell.notify_one());
            }
        }
        let Some(opens_in) = joined.opens_in else {
            return Ok(Met::LookedAt);
        };
        let is_other = |(other, names): (usize, &Option<Vec<String>>)| {
            let shared = |names: &Vec<String>| names.iter().any(|name| joined.names.contains(name));
            other != place && names.as_ref().is_some_and(shared)
        };
        if let Some(other) = met.names.iter().enumerate().position(is_other) {
            let twins = Error::invalid(format!(
                "two nodes of the quorum, {} and {}, are one server; list every server once",
                self.nodes[other].shown(),
                self.nodes[place].shown(),
            ));
            met.twins = Some(twins.clone());
            met.names[place] = None;
            return Err(Failure {
                error: twins,
                ambiguous: false,
            });
        }
        met.names[place] = Some(joined.names);
        met.clocks[place] = Some(proposal_number::offset(sent, joined.time));
        self.numbers
            .set_clock(met.clocks.iter().flatten().copied().collect());
        drop(met);
        self.nodes[place].answered();
        Ok(if opens_in.is_zero() {
            Met::Votes
        } else {
            Met::KeptOut(opens_in)
        })
    }

    /// Tells a node what it has missed. Answers when to look at it again.
    async fn catch_up(&self, place: usize) -> Duration {
        let node = &self.nodes[place];
        let due = node.left_overs.take(self.timers.now());
        let mut failed = false;
        for some in due.chunks(AT_ONCE) {
            let releases = some.iter().map(|left| {
                let withdraw = left.withdraw();
                node.ask(Operation::Vote(withdraw), Lane::KEEPER)
            });
            // Begun together, so that they share their way.
            let releases: Vec<_> = releases.map(tokio::spawn).collect();
            for (left, release) in some.iter().zip(releases) {
                let answer = timeout(self.settings.operation_timeout, release).await;
                let now = self.timers.now();
                match answer {
                    Ok(Ok(Outcome::Vote(VoteOutcome::Withdrawn { repeated, .. }))) => {
                        node.left_overs
                            .told(place, left.clone().in_doubt_if(repeated), now);
                    }
                    Ok(Ok(Outcome::Failed(failure))) if failure.is_final() => {
                        node.left_overs.refused(left.clone(), now);
                    }
                    _ => {
                        failed = true;
                        node.left_overs.put_back(left.clone());
                    }
                }
            }
            if failed {
                node.is_silent();
            }
        }
        let now = self.timers.now();
        let next = node.left_overs.due().map_or(INTERVAL, |due| due.since(now));
        next.clamp(Duration::from_millis(1), INTERVAL)
    }
}
