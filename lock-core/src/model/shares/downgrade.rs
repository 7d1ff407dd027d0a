//! Downgrading: an owner's token is replaced by that of a reader, which then asks, to let in the readers that wait.
//!
//! The owner and the reader are two clients of the model, because they have two tokens. They run and stop together.

use super::fault::ShareFault;
use super::world::{
    ClientPhase, Id, Message, ShareClient, ShareLimits, ShareWorld, ShareWrong, Time,
};

impl ShareLimits {
    /// Returns the reader that takes the place of an owner.
    fn reader_of(&self, owner: Id) -> Option<Id> {
        let (from, to) = self.downgrade?;
        (from == owner).then_some(to)
    }

    /// Returns the owner whose place a reader takes.
    pub(super) fn owner_of(&self, reader: Id) -> Option<Id> {
        let (from, to) = self.downgrade?;
        (to == reader).then_some(from)
    }

    /// Returns whether two clients are the same process.
    pub(super) fn is_one_process(&self, one: Id, other: Id) -> bool {
        let process = |id| self.owner_of(id).unwrap_or(id);
        process(one) == process(other)
    }
}

impl ShareWorld {
    /// Returns the reader that may take the place of an owner now.
    pub(super) fn next_reader(&self, owner: Id, limits: &ShareLimits) -> Option<Id> {
        let client = self.clients[usize::from(owner)];
        let holds = client.phase == ClientPhase::Holding && self.now < client.until;
        let reader = limits.reader_of(owner)?;
        (holds && self.phase(reader) == ClientPhase::Idle).then_some(reader)
    }

    /// Ends the owner, and sends the swap that replaces its token.
    pub(super) fn downgrades(&mut self, owner: Id, reader: Id) {
        let ShareClient { fence, until, .. } = *self.client(owner);
        *self.client(owner) = ShareClient::new(ClientPhase::Done);
        self.forget_answers(owner);
        *self.client(reader) = ShareClient {
            fence,
            until,
            ..ShareClient::new(ClientPhase::Swapping)
        };
        self.net.push(Message::Swap(reader, self.now));
    }

    /// Returns whether the reader waits for the answer to its swap, and is not undoing it.
    pub(super) fn awaits_swap(&self, reader: Id, limits: &ShareLimits) -> bool {
        let owner = limits.owner_of(reader).map(|owner| self.phase(owner));
        self.phase(reader) == ClientPhase::Swapping && owner == Some(ClientPhase::Done)
    }

    /// Takes the answer to the swap.
    pub(super) fn is_swapped(
        &mut self,
        reader: Id,
        sent: Time,
        swapped: bool,
        limits: &ShareLimits,
    ) -> Result<(), ShareWrong> {
        let until = sent + limits.ttl(reader);
        // Another owner may have had the key before the swap. A late copy of the first owner's question may then have taken
        // it again.
        let ends = match limits.has(ShareFault::LateSwapCounts) {
            true => until,
            false => until.min(self.client(reader).until),
        };
        if !swapped {
            *self.client(reader) = ShareClient::new(ClientPhase::Done);
        } else if self.now >= ends {
            self.undoes_swap(reader, limits);
        } else {
            let fence = self.client(reader).fence;
            if self.deletions == limits.deletions && fence < self.exclusive_fence {
                return Err(ShareWrong::ShareFenceNotHigher);
            }
            self.share_fence = self.share_fence.max(fence);
            *self.client(reader) = ShareClient {
                until,
                fence,
                ..ShareClient::new(ClientPhase::Holding)
            };
            if !limits.has(ShareFault::DowngradeNeverAsks) {
                self.net.push(Message::Ask(reader, self.now));
            }
        }
        Ok(())
    }

    /// Returns whether the question after the swap is open. The caller of the downgrade gets its guard after the answer.
    pub(super) fn lets_in_readers(&self, reader: Id, limits: &ShareLimits) -> bool {
        let asks = |message: &Message| matches!(message, Message::Ask(id, _) | Message::Granted(id, ..) if *id == reader);
        limits.owner_of(reader).is_some() && self.net.iter().any(asks)
    }

    /// Releases the owner's token first, so that a late swap finds nothing to replace.
    pub(super) fn undoes_swap(&mut self, reader: Id, limits: &ShareLimits) {
        let fence = self.client(reader).fence;
        if let Some(owner) = limits.owner_of(reader) {
            self.releases(owner, fence);
            self.sends_release(owner, fence, limits);
        }
    }

    /// Releases the reader's token, when the owner's token is released.
    pub(super) fn goes_on_undoing(&mut self, owner: Id, limits: &ShareLimits) {
        if let Some(reader) = limits.reader_of(owner)
            && self.phase(reader) == ClientPhase::Swapping
        {
            let fence = self.client(reader).fence;
            self.releases(reader, fence);
            self.sends_release(reader, fence, limits);
        }
    }
}
