//! A waiter that keeps others out is asked whether it still waits, and leaves the queue if it does not answer.

use super::world::{GRANT, Id, Message, ShareWorld};

impl ShareWorld {
    /// Returns whether the first waiter, which alone keeps a client out, has not answered for a grant whether it still
    /// waits. It is asked for that.
    pub(super) fn is_silent(&mut self, head: Id) -> bool {
        let (asked, answered) = match self.asked {
            Some((id, at, answered)) if id == head => (Some(at), answered),
            _ => (None, true),
        };
        if asked.is_some_and(|at| self.now < at + GRANT) {
            return false;
        }
        if answered {
            self.asked = Some((head, self.now, false));
            self.push(Message::Next(head, self.now));
        }
        !answered
    }

    /// Puts a refused client into the queue, or notes the answer of one that was asked whether it still waits.
    pub(super) fn stands_in_line(&mut self, id: Id) {
        if !self.queue.contains(&id) {
            self.queue.push(id);
        }
        if let Some((asked, _, answered)) = &mut self.asked {
            *answered |= *asked == id;
        }
    }
}
