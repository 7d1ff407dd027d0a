//! The queue of a key on the model's server: `stand_in_line.lua`, and what `common.lua` does with it.

use super::fault::Fault;
use super::server::{Around, Ask, Entry, Push, Server, Value, Waiting};

impl<T: Copy + Eq> Server<T> {
    /// `stand_in_line.lua`.
    pub(super) fn enter_queue(&mut self, key: usize, ask: Ask<T>, around: &Around<'_, T>) -> bool {
        if around.refuses_writes {
            return around.has(Fault::ARefusedPlaceIsBelieved);
        }
        let waiting = &mut self.keys[key].queue;
        if waiting.iter().all(|waiting| waiting.token != ask.token) {
            let mut score = self.micros;
            if let Some(last) = waiting.last()
                && !around.has(Fault::PlacesByTheClock)
            {
                score = score.max(last.score + 1);
            }
            let place = waiting.partition_point(|waiting| waiting.score <= score);
            let newcomer = Waiting {
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
        let fence = if around.has(Fault::GivenBelowTheMark) {
            self.micros
        } else {
            self.micros.max(least)
        };
        while let Some(head) = self.keys[key].queue.first().copied() {
            if self.look(key).is_some() && !around.has(Fault::ATakenKeyIsGiven) {
                return;
            }
            self.keys[key].queue.remove(0);
            if !(around.listens)(head.token) && !around.has(Fault::GivenToWhoHasGone) {
                continue;
            }
            let ends = self.millis() + head.grant;
            let value = Value::Held(head.token);
            self.keys[key].entry = Some(Entry { value, ends });
            let said = if around.has(Fault::EndSaidLater) {
                ends + 100
            } else {
                ends
            };
            around.pushes.push(Push::Given(head.token, fence, said));
            if least > self.micros {
                self.write_ahead(fence, around);
            }
            // A waiter that asked a moment ago is taken to be there; the age of one that came when the clock
            // stood later is not known.
            let age = self.micros.checked_sub(head.score);
            let asked_long_ago = age.is_none_or(|age| age > 1_000_000);
            if asked_long_ago && !around.has(Fault::NobodyIsToldOfAGrant) {
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
