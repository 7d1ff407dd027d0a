//! The steps of the model.

use super::fault::ShareFault;
use super::world::{
    ClientPhase, Id, Message, Question, ShareClient, ShareLimits, ShareWorld, ShareWrong,
};
use crate::model::explore::Explored;
use crate::protocol::Phase;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShareStep {
    Deliver(Message),
    Lose(Message),
    Double(Message),
    Begin(Id),
    /// The release by the script of shares.
    Release(Id),
    /// The release of an exclusive owner that has seen no shares of the key, or is of an older version.
    ReleasePlainly(Id),
    /// An owner goes on as a reader.
    Downgrade(Id),
    /// A reader does not wait any longer for the answer to its swap.
    UndoSwap(Id),
    Renew(Id),
    AskAgain(Id),
    GiveUp(Id),
    /// As a client of an older version, which knows of no shares.
    GiveUpPlainly(Id),
    Crash(Id),
    /// A client from outside deletes the key.
    Delete,
    Tick,
}

impl Explored for ShareWorld {
    type Limits = ShareLimits;
    type Step = ShareStep;
    type Wrong = ShareWrong;

    fn start(limits: &ShareLimits) -> Self {
        Self::new(limits)
    }

    fn steps(&self, limits: &ShareLimits) -> Vec<ShareStep> {
        self.steps(limits)
    }

    fn after(&self, step: ShareStep, limits: &ShareLimits) -> Result<Self, ShareWrong> {
        self.next(step, limits)
    }

    fn check(&self, limits: &ShareLimits) -> Result<(), ShareWrong> {
        self.check(limits)
    }

    fn longest_wait(&self, limits: &ShareLimits) -> Result<u64, ShareWrong> {
        self.longest_wait(limits).map(u64::from)
    }
}

impl ShareWorld {
    pub(super) fn steps(&self, limits: &ShareLimits) -> Vec<ShareStep> {
        let mut steps = Vec::with_capacity(16);
        let mut last = None;
        for message in self.net.iter().copied() {
            if last.replace(message) == Some(message) {
                continue;
            }
            steps.push(ShareStep::Deliver(message));
            if self.losses > 0 {
                steps.push(ShareStep::Lose(message));
            }
            if self.doubles > 0 && message.is_for_the_server() {
                steps.push(ShareStep::Double(message));
            }
        }
        for id in limits.ids() {
            self.steps_of(id, limits, &mut steps);
        }
        if self.deletions > 0
            && self
                .document
                .ends()
                .is_some_and(|ends| self.millis() <= ends)
        {
            steps.push(ShareStep::Delete);
        }
        if self.now < limits.ticks {
            steps.push(ShareStep::Tick);
        }
        steps
    }

    fn steps_of(&self, id: Id, limits: &ShareLimits, steps: &mut Vec<ShareStep>) {
        let client = self.clients[usize::from(id)];
        match client.phase {
            ClientPhase::Idle if limits.owner_of(id).is_none() => steps.push(ShareStep::Begin(id)),
            ClientPhase::Holding if self.lets_in_readers(id, limits) => {}
            ClientPhase::Holding => {
                steps.push(ShareStep::Release(id));
                if limits.is_exclusive(id) {
                    steps.push(ShareStep::ReleasePlainly(id));
                }
                if self.next_reader(id, limits).is_some() {
                    steps.push(ShareStep::Downgrade(id));
                }
                let renews = limits.renews && client.question == Question::None;
                if renews && self.now < client.until {
                    steps.push(ShareStep::Renew(id));
                }
            }
            ClientPhase::Waiting => {
                if self.may_ask(id) {
                    steps.push(ShareStep::AskAgain(id));
                }
                if limits.gives_up {
                    steps.push(ShareStep::GiveUp(id));
                    if limits.is_exclusive(id) {
                        steps.push(ShareStep::GiveUpPlainly(id));
                    }
                }
            }
            ClientPhase::Swapping if limits.gives_up && self.awaits_swap(id, limits) => {
                steps.push(ShareStep::UndoSwap(id));
            }
            _ => {}
        }
        let runs = !client.is_over() && client.phase != ClientPhase::Idle;
        if self.crashes > 0 && runs {
            steps.push(ShareStep::Crash(id));
        }
    }

    /// Returns whether it is time for a waiter to ask.
    pub(super) fn may_ask(&self, id: Id) -> bool {
        let client = self.clients[usize::from(id)];
        client.phase == ClientPhase::Waiting
            && client.question == Question::None
            && client.until > 0
            && self.now >= client.until
    }

    pub(super) fn after(
        &self,
        step: ShareStep,
        limits: &ShareLimits,
    ) -> Result<ShareWorld, ShareWrong> {
        let world = self.next(step, limits)?;
        world.check(limits)?;
        Ok(world)
    }

    /// Returns the world after a step, which is not checked yet.
    fn next(&self, step: ShareStep, limits: &ShareLimits) -> Result<ShareWorld, ShareWrong> {
        let mut world = self.clone();
        world.take_step(step, limits)?;
        world.net.sort_unstable();
        Ok(world)
    }

    fn take_step(&mut self, step: ShareStep, limits: &ShareLimits) -> Result<(), ShareWrong> {
        match step {
            ShareStep::Deliver(message) => {
                self.remove(message);
                match message.is_for_the_server() {
                    true => self.serve(message, limits)?,
                    false => self.hear(message, limits)?,
                }
            }
            ShareStep::Lose(message) => {
                self.remove(message);
                self.losses -= 1;
            }
            ShareStep::Double(message) => {
                self.net.push(message);
                self.doubles -= 1;
            }
            ShareStep::Begin(id) => {
                *self.client(id) = ShareClient::new(ClientPhase::First);
                self.net.push(Message::First(id, self.now));
            }
            ShareStep::Release(id) => {
                let fence = self.client(id).fence;
                self.releases(id, fence);
                self.net.push(Message::Release(id, fence));
            }
            ShareStep::ReleasePlainly(id) => {
                let fence = self.client(id).fence;
                self.releases(id, fence);
                self.net.push(Message::PlainRelease(id, fence));
            }
            ShareStep::Downgrade(id) => {
                if let Some(reader) = self.next_reader(id, limits) {
                    self.downgrades(id, reader);
                }
            }
            ShareStep::UndoSwap(id) => self.undoes_swap(id, limits),
            ShareStep::Renew(id) => {
                self.client(id).question = Question::Asked;
                self.net.push(Message::Renew(id, self.now));
            }
            ShareStep::AskAgain(id) => {
                *self.client(id) = ShareClient {
                    question: Question::Asked,
                    ..ShareClient::new(ClientPhase::Waiting)
                };
                self.net.push(Message::Ask(id, self.now));
            }
            ShareStep::GiveUp(id) => {
                self.releases(id, 0);
                self.net.push(Message::Release(id, 0));
            }
            ShareStep::GiveUpPlainly(id) => {
                self.releases(id, 0);
                self.net.push(Message::PlainRelease(id, 0));
            }
            ShareStep::Crash(id) => {
                for id in limits
                    .ids()
                    .filter(|other| limits.is_one_process(id, *other))
                {
                    if !matches!(self.phase(id), ClientPhase::Idle | ClientPhase::Done) {
                        *self.client(id) = ShareClient::new(ClientPhase::Dead);
                        self.forget_answers(id);
                    }
                }
                self.crashes -= 1;
            }
            ShareStep::Delete => {
                self.document.phase = Phase::Free;
                self.deletions -= 1;
                // The clock goes on between two grants, which is all that orders their tokens now.
                self.now += 1;
            }
            ShareStep::Tick => self.now += 1,
        }
        Ok(())
    }

    pub(super) fn releases(&mut self, id: Id, fence: u64) {
        *self.client(id) = ShareClient {
            fence,
            ..ShareClient::new(ClientPhase::Releasing)
        };
    }

    fn remove(&mut self, message: Message) {
        let place = self.net.iter().position(|other| *other == message);
        self.net.remove(place.expect("the message is on its way"));
    }

    /// Runs a script.
    fn serve(&mut self, message: Message, limits: &ShareLimits) -> Result<(), ShareWrong> {
        self.expire();
        let id = message.client();
        let answered = |sent, answer| match answer {
            Ok(fence) => Message::Granted(id, sent, fence),
            Err(at) => Message::Refused(id, at),
        };
        let mut admits = true;
        let answer = match message {
            Message::First(_, sent) => {
                admits = false;
                answered(sent, self.first(id, limits)?)
            }
            Message::Ask(_, sent) => {
                admits = !limits.is_exclusive(id);
                answered(sent, self.ask(id, limits)?)
            }
            Message::Release(_, fence) => {
                self.release(id, fence, limits)?;
                Message::Released(id)
            }
            Message::PlainRelease(_, fence) => {
                admits = false;
                self.plain_release(id, fence, limits)?;
                Message::Released(id)
            }
            Message::Renew(_, sent) => {
                admits = false;
                Message::Renewed(id, sent, self.renew(id, limits)?)
            }
            Message::Swap(_, sent) => {
                admits = false;
                Message::Swapped(id, sent, self.swap(id, limits)?)
            }
            _ => unreachable!("a message for a client"),
        };
        // A newcomer that came first leaves a waiter behind, which is the fault.
        let looks = !limits.has(ShareFault::NewcomersFirst);
        if admits && looks && self.leaves_room() {
            return Err(ShareWrong::RoomIsLeft);
        }
        if !self.clients[usize::from(id)].is_over() {
            self.net.push(answer);
        }
        Ok(())
    }
}
