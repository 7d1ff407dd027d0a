//! The order of an operator to free a key, or one share of it, from the holder that was seen.

use super::shares::Place;
use super::{Around, Closed, Document, Ended, Force, Millis, News, Phase, Push, Reply};
use crate::base::token::Token;

impl Document {
    /// Takes the key from this holder, and from no other. If its process listens, the key stays taken for the grace, so
    /// that the process can stop.
    pub(crate) fn force(&mut self, force: &Force, around: &mut Around<'_>) -> Reply {
        let now = around.now_ms();
        if !self.is_held_by(force, now) {
            return Reply::Done(self.taken_by_others());
        }
        if !around.has_room {
            return Reply::NoRoom;
        }
        // A stopped process cannot report its fencing tokens. So the next one is above all that the holder may still use.
        let used = around.now.0.max(force.fence.unwrap_or(0));
        around.use_up(used);
        let grace = around.tell_holder(force.holder).then_some(force.grace);
        match &mut self.phase {
            Phase::Shared(shares) => {
                shares
                    .inside
                    .retain(|place| place.is_freed || place.token != force.holder);
                shares.inside.extend(grace.map(|grace| Place {
                    token: force.holder.with_share(None),
                    ends: now + grace,
                    is_freed: true,
                }));
                if let Some(latest) = shares.latest().filter(|latest| *latest >= now) {
                    shares.ends = latest;
                    self.tell_next(grace.unwrap_or(0), around);
                    return freed(grace);
                }
            }
            phase if grace.is_some() => {
                *phase = Phase::Closed(Closed {
                    of: force.holder.with_share(None),
                    until: now + force.grace,
                    record: None,
                });
                self.tell_next(force.grace, around);
                return Reply::Told;
            }
            _ => {}
        }
        self.phase = Phase::Free;
        match force.serves {
            true => _ = self.serve_waiters(around),
            false => self.tell_next(0, around),
        }
        Reply::Done(Ended::Yes)
    }

    fn is_held_by(&mut self, force: &Force, now: Millis) -> bool {
        match &mut self.phase {
            Phase::Shared(shares) => {
                let place = shares.place_of(force.holder);
                place.is_some_and(|place| now <= place.ends)
            }
            _ => self.hold_of(force.holder).is_some(),
        }
    }
}

fn freed(grace: Option<Millis>) -> Reply {
    match grace {
        Some(_) => Reply::Told,
        None => Reply::Done(Ended::Yes),
    }
}

impl Around<'_> {
    /// Tells the process of a holder that its key was freed. Returns whether it listens.
    ///
    /// A runtime whose connection was replaced listens only after its next request, so its manager is told then.
    fn tell_holder(&mut self, token: Token) -> bool {
        let runtime = token.address();
        let both = [runtime, runtime.manager()];
        let Some(to) = both.into_iter().find(|address| (self.listens)(*address)) else {
            return false;
        };
        let news = News::Forced;
        self.pushes.push(Push { to, token, news });
        true
    }
}
