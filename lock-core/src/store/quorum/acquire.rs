//! Acquiring a lock from a majority of the nodes.

use std::sync::Arc;

use super::Quorum;
use super::proposal_number;
use super::split_vote::{self, Rival};
use super::tally::{self, Ballot, Decision};
use super::undo::Undoing;
use super::vote_ledger::VoteLedger;
use crate::base::clock::Moment;
use crate::lease::Refusal;
use crate::store::vote::Withdrawal;
use crate::store::{AcquireCommand, Failure, Lane, Outcome};

/// How often one attempt proposes a higher number.
const NUMBERS: u32 = 4;

impl Quorum {
    pub(super) async fn acquire(self: &Arc<Self>, acquire: AcquireCommand, lane: Lane) -> Outcome {
        let clock = &self.timers;
        self.gather().await;
        if self.up().count() < self.quorum() {
            return Outcome::Failed(self.too_few(None));
        }
        if let Some(until) = self.yielded.until(&acquire.key, clock.now()) {
            let longest = clock.now() + acquire.ttl / 8;
            clock.at(until.min(longest)).await;
        }
        let mut attempt = Candidacy {
            register: proposal_number::register_of(&acquire.key),
            ledger: self.leases.begin(acquire.token),
            // The caller waits no longer than that, and would take a split vote for an outage.
            give_up: clock.now() + self.patience(acquire.ttl),
            repetitions: 0,
            rival: Rival::default(),
            repeated: false,
            has_waited: false,
            refusals: Vec::new(),
            acquire,
            lane,
        };
        let outcome = match self.attempt(&mut attempt).await {
            // The engine withdraws it from there when it asks no more.
            Outcome::Failed(failure) => Outcome::Failed(Failure {
                queued: attempt.acquire.queues() && !attempt.ledger.leaves_nothing(),
                ..failure
            }),
            outcome => outcome,
        };
        let is_refused = matches!(outcome, Outcome::Busy(_) | Outcome::Failed(_));
        match attempt.repeated || is_refused && attempt.ledger.may_come_late() {
            true => outcome.of_the_last_send(),
            false => outcome,
        }
    }

    /// Repeats rounds until a majority has granted or refused.
    async fn attempt(self: &Arc<Self>, attempt: &mut Candidacy) -> Outcome {
        let mut numbers = 0;
        let mut highest = 0;
        loop {
            let sent = self.timers.now();
            self.numbers.saw(attempt.register, highest);
            let number = self.numbers.propose(attempt.register, sent);
            let round = self.round(attempt, number, sent).await;
            highest = tally::highest(&round.ballots);
            match round.decision {
                Decision::Granted => {
                    let Some(fence) = proposal_number::first_fence(number) else {
                        break;
                    };
                    attempt.ledger.note_number(number);
                    return Outcome::Granted(fence);
                }
                Decision::TooLow if numbers < NUMBERS => {
                    numbers += 1;
                    continue;
                }
                Decision::TooLow => {
                    // Other clients, of this key or of one that shares its register, are a little ahead each
                    // time.
                    self.undo(attempt, Withdrawal::Pause).await;
                    if self.pauses(attempt, sent).await {
                        numbers = 0;
                        continue;
                    }
                }
                Decision::Split | Decision::Yielded | Decision::Contested => {
                    self.undo(attempt, Withdrawal::Pause).await;
                    let stays = round.decision == Decision::Contested
                        && attempt.rival.stays(tally::foremost_owner(&round.ballots));
                    if !stays && self.pauses(attempt, sent).await {
                        continue;
                    }
                    if self.meets_own_votes(attempt, &round.ballots).await {
                        continue;
                    }
                    self.give_up(attempt).await;
                    // No client is known to have the lock, so no release of it will be pushed. The waiter
                    // polls.
                    let refusal = Refusal {
                        pushed: false,
                        ..tally::refusal(&round.ballots)
                    };
                    return Outcome::Busy(refusal);
                }
                Decision::Busy => {
                    if self.meets_own_votes(attempt, &round.ballots).await {
                        continue;
                    }
                    self.give_up(attempt).await;
                    return Outcome::Busy(tally::refusal(&round.ballots));
                }
                Decision::Unavailable | Decision::Wait => {}
            }
            self.give_up(attempt).await;
            if attempt.refusals.len() > self.nodes.len() - self.quorum()
                && let Some(failure) = attempt.refusals.pop()
            {
                return Outcome::Failed(failure);
            }
            return Outcome::Failed(self.too_few(tally::opens_in(&round.ballots)));
        }
        self.give_up(attempt).await;
        Outcome::Failed(Failure::refused(
            "the clocks of the nodes are too far in the future for a fencing token",
        ))
    }

    /// Waits until the refusing nodes have removed the votes of ended leases of this process. `true`: there were such votes,
    /// so the caller asks the nodes again. An attempt that queues does not wait here, because a node notifies it when the
    /// vote is withdrawn.
    async fn meets_own_votes(
        self: &Arc<Self>,
        attempt: &mut Candidacy,
        ballots: &[Ballot],
    ) -> bool {
        let is_answer = tally::refusal(ballots).record.is_some();
        if attempt.has_waited || attempt.acquire.queues() || is_answer {
            return false;
        }
        let in_the_way = self.leases.departing.behind(&attempt.acquire.key, ballots);
        if in_the_way.is_empty() {
            return false;
        }
        attempt.has_waited = true;
        self.undo(attempt, Withdrawal::Pause).await;
        self.timers
            .before(attempt.give_up, in_the_way.gone())
            .await
            .is_some()
    }

    /// Pauses before the next round. `false`: another round is not worth it.
    async fn pauses(&self, attempt: &mut Candidacy, sent: Moment) -> bool {
        let now = self.timers.now();
        let pause = split_vote::pause(attempt.acquire.token, attempt.repetitions, now.since(sent));
        attempt.repetitions += 1;
        let until = pause.map(|pause| now + pause);
        let Some(until) = until.filter(|until| *until < attempt.give_up) else {
            return false;
        };
        self.timers.at(until).await;
        true
    }
}

/// One attempt to acquire a lock, in as many rounds as it takes.
pub(super) struct Candidacy {
    pub(super) acquire: AcquireCommand,
    pub(super) lane: Lane,
    pub(super) register: u16,
    pub(super) ledger: Arc<VoteLedger>,
    /// When to stop repeating it. The ttl counts from the first question.
    give_up: Moment,
    repetitions: u32,
    rival: Rival,
    /// Whether one question was sent to a node more than once. The first copy may arrive when the lease is
    /// over.
    pub(super) repeated: bool,
    /// Whether the attempt has waited until nodes had removed votes of ended leases of this process.
    has_waited: bool,
    /// The failures of nodes that will never accept this acquire.
    pub(super) refusals: Vec<Failure>,
}

impl Candidacy {
    pub(super) fn undoing(&self) -> Undoing {
        Undoing::new(&self.acquire, &self.ledger, self.lane)
    }
}
