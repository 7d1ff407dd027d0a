//! Taking a lock from a majority.

use std::sync::Arc;

use super::Quorum;
use super::count::{self, Ballot, Decision, decide};
use super::fan_out::FanOut;
use super::leases::{Spread, contains};
use super::numbers;
use super::split;
use crate::clock::Moment;
use crate::store::vote::{Propose, Vote, VoteOperation, VoteOutcome, Withdrawal};
use crate::store::{Acquire, BoxFuture, Failure, Lane, Operation, Outcome, Refusal, Release};

/// How often a higher number is proposed within one attempt.
const NUMBERS: u32 = 4;

impl Quorum {
    pub(super) async fn acquire(self: &Arc<Self>, acquire: Acquire, lane: Lane) -> Outcome {
        let clock = &self.keeper.clock;
        self.gather().await;
        if self.up().count() < self.quorum() {
            return Outcome::Failed(self.too_few(None));
        }
        if let Some(until) = self.courtesy.until(&acquire.key, clock.now()) {
            self.keeper
                .timer(until.min(clock.now() + acquire.ttl / 8))
                .await;
        }
        let mut attempt = Attempt {
            register: numbers::register_of(&acquire.key),
            spread: self.leases.begin(acquire.token),
            give_up: clock.now() + acquire.ttl / 8,
            repetitions: 0,
            refusals: Vec::new(),
            acquire,
            lane,
        };
        self.attempt(&mut attempt).await
    }

    /// Until a majority has agreed, or says why not.
    async fn attempt(self: &Arc<Self>, attempt: &mut Attempt) -> Outcome {
        let mut numbers = 0;
        let mut highest = 0;
        loop {
            let sent = self.keeper.clock.now();
            self.numbers.saw(attempt.register, highest);
            let number = self.numbers.propose(attempt.register, sent);
            let round = self.round(attempt, number, sent).await;
            highest = count::highest(&round.ballots);
            match round.decision {
                Decision::Granted => {
                    let Some(fence) = numbers::first_fence(number) else {
                        break;
                    };
                    return Outcome::Granted(fence);
                }
                Decision::TooLow if numbers < NUMBERS => {
                    numbers += 1;
                    continue;
                }
                Decision::Split | Decision::Yielded => {
                    self.undo(attempt, Withdrawal::Pause).await;
                    let now = self.keeper.clock.now();
                    let pause =
                        split::pause(attempt.acquire.token, attempt.repetitions, now.since(sent));
                    attempt.repetitions += 1;
                    if let Some(pause) = pause
                        && now + pause < attempt.give_up
                    {
                        self.keeper.timer(now + pause).await;
                        continue;
                    }
                    self.give_up(attempt).await;
                    // Nobody has it for sure, so that nobody may say when it is free: look.
                    let refusal = Refusal {
                        pushed: false,
                        ..count::refusal(&round.ballots)
                    };
                    return Outcome::Busy(refusal);
                }
                Decision::Busy => {
                    self.give_up(attempt).await;
                    return Outcome::Busy(count::refusal(&round.ballots));
                }
                Decision::TooLow | Decision::Unavailable | Decision::Wait => {}
            }
            self.give_up(attempt).await;
            if attempt.refusals.len() > self.nodes.len() - self.quorum()
                && let Some(failure) = attempt.refusals.pop()
            {
                return Outcome::Failed(failure);
            }
            return Outcome::Failed(self.too_few(count::opens_in(&round.ballots)));
        }
        self.give_up(attempt).await;
        Outcome::Failed(Failure::refused(
            "the clocks of the nodes are too far in the future for a fencing token",
        ))
    }

    /// Asks all nodes that can be asked, until their answers decide.
    async fn round(self: &Arc<Self>, attempt: &mut Attempt, number: u64, sent: Moment) -> Round {
        attempt.refusals.clear();
        let mut ballots = vec![Ballot::Dead; self.nodes.len()];
        let mut asked = Vec::with_capacity(self.nodes.len());
        for (place, node) in self.up() {
            ballots[place] = Ballot::Open;
            let propose = VoteOperation::Propose(Propose {
                acquire: attempt.acquire.clone(),
                register: attempt.register,
                number,
                max_ttl: self.settings.max_ttl,
            });
            let propose = node.ask(Operation::Vote(propose), attempt.lane);
            if attempt.spread.claim(place) {
                asked.push((place, propose));
            } else {
                let spread = Arc::clone(&attempt.spread);
                asked.push((place, Box::pin(once_resolved(spread, place, propose))));
            }
        }
        let patience = self.patience(attempt.acquire.ttl);
        let mut votes = FanOut::new(asked).until(&self.keeper, sent + patience);
        let mut decision = decide(&ballots);
        while decision == Decision::Wait {
            let Some((place, outcome)) = votes.next().await else {
                for silent in votes.silent() {
                    self.nodes[silent].is_silent();
                    ballots[silent] = Ballot::Dead;
                }
                decision = decide(&ballots);
                break;
            };
            ballots[place] = self.counted(attempt, place, outcome);
            decision = decide(&ballots);
        }
        while let Some((place, outcome)) = votes.at_hand() {
            ballots[place] = self.counted(attempt, place, outcome);
        }
        if votes.open() > 0 {
            self.leave_behind(LateVotes::new(self, attempt.undoing(), votes, sent).come());
        }
        Round { ballots, decision }
    }

    fn counted(&self, attempt: &mut Attempt, place: usize, outcome: Outcome) -> Ballot {
        let spread = &attempt.spread;
        match outcome {
            Outcome::Vote(VoteOutcome::Voted(vote)) => {
                spread.resolved(place);
                match &vote {
                    Vote::Yes { .. } => {
                        let wanted = spread.stands(place);
                        debug_assert!(wanted, "its own attempt counts it");
                    }
                    Vote::Taken { highest, .. } => {
                        spread.is_without(place);
                        self.numbers.saw(attempt.register, *highest);
                    }
                    Vote::Yields | Vote::Empty(_) => spread.is_without(place),
                }
                Ballot::Answered(vote)
            }
            Outcome::Vote(VoteOutcome::NotAsked) => Ballot::Dead,
            Outcome::Failed(failure) if !failure.ambiguous => {
                spread.resolved(place);
                spread.is_without(place);
                if failure.is_final() {
                    attempt.refusals.push(failure);
                }
                Ballot::Dead
            }
            _ => {
                let wanted = spread.doubt(place);
                debug_assert!(wanted, "its own attempt counts it");
                Ballot::Dead
            }
        }
    }

    /// The attempt has come to nothing, and leaves nothing behind.
    async fn give_up(self: &Arc<Self>, attempt: &mut Attempt) {
        let spread = Arc::clone(&attempt.spread);
        // From here on whatever comes late is undone by whoever hears of it.
        self.leases.pause(attempt.acquire.token);
        self.undo(attempt, Withdrawal::Over).await;
        let doubtful = spread.touched() & spread.doubtful();
        for place in (0..self.nodes.len()).filter(|place| contains(doubtful, *place)) {
            self.tell_later(place, &attempt.undoing());
        }
    }

    /// Gives back what the nodes have, and waits for it: it must not stand in anybody's way, this
    /// process's next attempt included.
    async fn undo(self: &Arc<Self>, attempt: &mut Attempt, how: Withdrawal) {
        let undoing = attempt.undoing();
        let granted = attempt.spread.granted();
        let asked = (0..self.nodes.len())
            .filter(|place| contains(granted, *place))
            .map(|place| {
                attempt.spread.unresolved(place);
                let withdraw = VoteOperation::Withdraw(undoing.release.clone(), how);
                (
                    place,
                    self.nodes[place].ask(Operation::Vote(withdraw), attempt.lane),
                )
            });
        let overdue = self.keeper.clock.now() + self.patience(attempt.acquire.ttl);
        let mut answers = FanOut::new(asked).until(&self.keeper, overdue);
        while let Some((place, outcome)) = answers.next().await {
            match outcome {
                Outcome::Vote(VoteOutcome::Withdrawn { .. }) => {
                    attempt.spread.is_without(place);
                    attempt.spread.resolved(place);
                }
                _ => self.tell_later(place, &undoing),
            }
        }
        for place in answers.silent() {
            self.nodes[place].is_silent();
            self.tell_later(place, &undoing);
        }
    }

    /// The node is told when it can be; until then it is not asked for the lease again.
    pub(super) fn tell_later(&self, place: usize, undoing: &Undoing) {
        let node = &self.nodes[place];
        undoing.spread.is_without(place);
        undoing.spread.unresolved(place);
        let (release, spread) = (undoing.release.clone(), Arc::clone(&undoing.spread));
        node.left_overs
            .add(release, Some(spread), self.keeper.clock.now());
        node.bell.notify_one();
    }
}

/// One attempt to take a lock, in as many rounds as it takes.
struct Attempt {
    acquire: Acquire,
    lane: Lane,
    register: u16,
    spread: Arc<Spread>,
    /// Until when to repeat it. The lease is counted from the first question on.
    give_up: Moment,
    repetitions: u32,
    /// What nodes say that will never accept this.
    refusals: Vec<Failure>,
}

struct Round {
    ballots: Vec<Ballot>,
    decision: Decision,
}

impl Attempt {
    fn undoing(&self) -> Undoing {
        Undoing {
            release: Release {
                key: Arc::clone(&self.acquire.key),
                token: self.acquire.token,
                ttl: self.acquire.ttl,
                fence: None,
                in_background: true,
            },
            spread: Arc::clone(&self.spread),
            lane: self.lane,
        }
    }
}

/// What it takes to take a vote back.
pub(super) struct Undoing {
    pub(super) release: Release,
    pub(super) spread: Arc<Spread>,
    pub(super) lane: Lane,
}

/// One question of a lease at a time: what arrives late would undo what is newer.
async fn once_resolved(
    spread: Arc<Spread>,
    place: usize,
    propose: BoxFuture<'static, Outcome>,
) -> Outcome {
    if spread.claimed(place).await {
        propose.await
    } else {
        Outcome::Vote(VoteOutcome::NotAsked)
    }
}

/// Votes that come when it is decided: they count for a lease that is held, and are undone where it is
/// over. Dropped, with the runtime that it runs on, it leaves them to the keeper.
struct LateVotes {
    quorum: Arc<Quorum>,
    undoing: Undoing,
    votes: FanOut,
}

impl LateVotes {
    fn new(quorum: &Arc<Quorum>, undoing: Undoing, mut votes: FanOut, sent: Moment) -> Self {
        let overdue = sent + quorum.patience(undoing.release.ttl);
        votes.set_time(&quorum.keeper, overdue);
        Self {
            quorum: Arc::clone(quorum),
            undoing,
            votes,
        }
    }

    async fn come(mut self) {
        loop {
            match self.votes.next().await {
                Some((place, outcome)) => came(&self.quorum, &self.undoing, place, outcome).await,
                None if self.votes.open() > 0 => {
                    // Out from now on, and still listened to.
                    for place in self.votes.silent() {
                        self.quorum.nodes[place].is_silent();
                    }
                    self.votes.forget_time();
                }
                None => return,
            }
        }
    }
}

impl Drop for LateVotes {
    fn drop(&mut self) {
        // The runtime has ended, and its connections: nobody will hear the answers. What may stand is
        // undone by the keeper, at once or when the lease is given back.
        for place in self.votes.left() {
            if !self.undoing.spread.doubt(place) {
                self.quorum.tell_later(place, &self.undoing);
            }
        }
    }
}

async fn came(quorum: &Arc<Quorum>, undoing: &Undoing, place: usize, outcome: Outcome) {
    let spread = &undoing.spread;
    let unwanted = match outcome {
        Outcome::Vote(VoteOutcome::NotAsked) => return,
        Outcome::Vote(VoteOutcome::Voted(Vote::Yes { .. })) => !spread.stands(place),
        // It may have queued behind the command that left the queue.
        Outcome::Vote(_) => spread.has_ended(),
        Outcome::Failed(failure) if !failure.ambiguous => false,
        _ => {
            // Of a lease that is held it stays in doubt: told when that is given back.
            if !spread.doubt(place) {
                quorum.tell_later(place, undoing);
            }
            return;
        }
    };
    if unwanted {
        let withdraw = VoteOperation::Withdraw(undoing.release.clone(), Withdrawal::Over);
        let answer = quorum.nodes[place].ask(Operation::Vote(withdraw), undoing.lane);
        if !matches!(answer.await, Outcome::Vote(VoteOutcome::Withdrawn { .. })) {
            quorum.tell_later(place, undoing);
            return;
        }
    }
    if unwanted || !contains(spread.granted(), place) {
        spread.is_without(place);
    }
    spread.resolved(place);
}
