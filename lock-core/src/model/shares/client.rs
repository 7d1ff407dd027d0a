//! The clients: what an answer or a push means to them.

use super::fault::ShareFault;
use super::world::{
    ClientPhase, Id, Message, Question, ShareClient, ShareLimits, ShareWorld, ShareWrong, Time,
};

impl ShareWorld {
    /// Delivers a message to its client.
    pub(super) fn hear(
        &mut self,
        message: Message,
        limits: &ShareLimits,
    ) -> Result<(), ShareWrong> {
        let id = message.client();
        let phase = self.phase(id);
        let asks = matches!(phase, ClientPhase::First | ClientPhase::Waiting);
        match message {
            Message::Granted(_, sent, fence) if asks => {
                let until = sent + limits.ttl(id);
                if self.now < until {
                    self.holds(id, until, fence, limits)?;
                } else {
                    // The answer is too late, so the grant is undone.
                    *self.client(id) = ShareClient::new(ClientPhase::Done);
                    self.sends_release(id, 0, limits);
                }
            }
            Message::Refused(..) if phase == ClientPhase::First => {
                self.waits(id, 0, Question::Asked);
                self.net.push(Message::Ask(id, self.now));
            }
            Message::Refused(_, at) if asks => {
                self.waits(id, at.max(self.now + 1), Question::None);
            }
            // The release of a plain lock gave the key to one share, whose question lets in those behind it.
            Message::Given(..)
                if phase == ClientPhase::Waiting
                    && !limits.is_exclusive(id)
                    && !limits.has(ShareFault::GivenShareNeverAsks) =>
            {
                self.waits(id, 0, Question::Asked);
                self.net.push(Message::Ask(id, self.now));
            }
            Message::Given(_, until, fence) | Message::LetIn(_, until, fence)
                if phase == ClientPhase::Waiting =>
            {
                if self.now < until {
                    self.holds(id, until, fence, limits)?;
                } else {
                    self.waits(id, self.now.max(1), Question::None);
                }
            }
            Message::Next(_, at)
                if phase == ClientPhase::Waiting && self.client(id).question == Question::None =>
            {
                self.waits(id, at.max(self.now + 1), Question::None);
            }
            Message::Released(_) if phase == ClientPhase::Releasing => {
                *self.client(id) = ShareClient::new(ClientPhase::Done);
                self.goes_on_undoing(id, limits);
            }
            Message::Swapped(_, sent, swapped) if self.awaits_swap(id, limits) => {
                self.is_swapped(id, sent, swapped, limits)?;
            }
            Message::Renewed(_, sent, renewed) if phase == ClientPhase::Holding => {
                let now = self.now;
                let until = sent + limits.ttl(id);
                let client = self.client(id);
                if now < client.until {
                    if renewed {
                        client.until = client.until.max(until);
                        client.question = Question::Answered;
                    } else {
                        *client = ShareClient::new(ClientPhase::Done);
                    }
                }
            }
            _ => {}
        }
        if self.clients[usize::from(id)].is_over() {
            self.forget_answers(id);
        }
        Ok(())
    }

    /// Drops the messages that reach no client any more.
    pub(super) fn forget_answers(&mut self, id: Id) {
        self.net
            .retain(|message| message.client() != id || message.is_for_the_server());
    }

    fn waits(&mut self, id: Id, until: Time, question: Question) {
        *self.client(id) = ShareClient {
            until,
            question,
            ..ShareClient::new(ClientPhase::Waiting)
        };
    }

    fn holds(
        &mut self,
        id: Id,
        until: Time,
        fence: u64,
        limits: &ShareLimits,
    ) -> Result<(), ShareWrong> {
        // After a deletion a grant may be overtaken on its way.
        let in_order = self.deletions == limits.deletions;
        if limits.is_exclusive(id) {
            if in_order && fence <= self.exclusive_fence.max(self.share_fence) {
                return Err(ShareWrong::ExclusiveFenceNotHigher);
            }
            self.exclusive_fence = self.exclusive_fence.max(fence);
        } else {
            if in_order && fence <= self.exclusive_fence {
                return Err(ShareWrong::ShareFenceNotHigher);
            }
            self.share_fence = self.share_fence.max(fence);
        }
        *self.client(id) = ShareClient {
            until,
            fence,
            ..ShareClient::new(ClientPhase::Holding)
        };
        Ok(())
    }

    pub(super) fn sends_release(&mut self, id: Id, fence: u64, limits: &ShareLimits) {
        self.net.push(match limits.is_exclusive(id) {
            true => Message::PlainRelease(id, fence),
            false => Message::Release(id, fence),
        });
    }
}
