//! The queue of a key on the model's server: `stand_in_line.lua`, and its callers in `common.lua`.

use super::fault::ModelFault;
use super::server::{Around, Ask, ModelServer, Push, QueueEntry, StoredValue, Value};

impl<T: Copy + Eq> ModelServer<T> {
    /// `stand_in_line.lua`.
    pub(super) fn enter_queue(&mut self, key: usize, ask: Ask<T>, around: &Around<'_, T>) -> bool {
        if around.refuses_writes {
            return around.has(ModelFault::RefusedTicketBelieved);
        }
        let waiting = &mut self.keys[key].queue;
        if waiting.iter().all(|waiting| waiting.token != ask.token) {
            let mut score = self.micros;
            if let Some(last) = waiting.last()
                && !around.has(ModelFault::TicketsByClock)
            {
                score = score.max(last.score + 1);
            }
            let place = waiting.partition_point(|waiting| waiting.score <= score);
            let newcomer = QueueEntry {
                score,
                token: ask.token,
                grant: ask.ttl.min(2_000),
            };
            waiting.insert(place, newcomer);
        }
        true
    }

    pub(super) fn leave_queue(&mut self, key: usize, token: T) {
        self.keys[key].queue.retain(|other| other.token != token);
    }

    pub(super) fn hand_over(&mut self, key: usize, least: u64, around: &mut Around<'_, T>) {
        let fence = if around.has(ModelFault::GrantBelowHighWaterMark) {
            self.micros
        } else {
            self.micros.max(least)
        };
        while let Some(head) = self.keys[key].queue.first().copied() {
            if self.current(key).is_some() && !around.has(ModelFault::TakenKeyHandedOver) {
                return;
            }
            self.keys[key].queue.remove(0);
            if !(around.listens)(head.token) && !around.has(ModelFault::HandedToDeadProcess) {
                continue;
            }
            let ends = self.millis() + head.grant;
            let value = Value::Held(head.token);
            self.keys[key].entry = Some(StoredValue { value, ends });
            let said = if around.has(ModelFault::EndReportedTooLate) {
                ends + 100
            } else {
                ends
            };
            around
                .pushes
                .push(Push::HandedOver(head.token, fence, said));
            if least > self.micros {
                self.write_ahead(fence, around);
            }
            // A waiter that asked a moment ago is assumed to be alive. The age of a waiter that
            // arrived before the clock went back is unknown.
            let age = self.micros.checked_sub(head.score);
            let asked_long_ago = age.is_none_or(|age| age > 1_000_000);
            if asked_long_ago && !around.has(ModelFault::GrantNotAnnounced) {
                self.notify_next(key, head.grant, around);
            }
            return;
        }
    }

    pub(super) fn notify_next(&mut self, key: usize, millis: u64, around: &mut Around<'_, T>) {
        let queue = &mut self.keys[key].queue;
        let mut told = 0;
        while told < 2
            && let Some(next) = queue.get(told)
        {
            if (around.listens)(next.token) {
                let after = millis + told as u64 * 2_000;
                around.pushes.push(Push::Next(next.token, after));
                told += 1;
            } else {
                queue.remove(told);
            }
        }
    }
}
