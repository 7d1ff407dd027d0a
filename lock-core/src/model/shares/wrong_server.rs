//! The seeded faults of the server. Each changes what goes into a step of the protocol, or what comes out of it.

use super::fault::ShareFault;
use super::server::{id_of, millis};
use super::world::{ClientPhase, GRANT, ShareLimits, ShareWorld};
use crate::base::share::ShareLimit;
use crate::base::token::Token;
use crate::protocol::{Acquire, Document, Ended, Hold, Operation, Phase, Push, Reply, Waiter};

/// Runs an operation with a fault.
pub(super) fn run(
    world: &mut ShareWorld,
    operation: &Operation,
    limits: &ShareLimits,
    fault: ShareFault,
) -> (Reply, Vec<Push>) {
    let mut before = world.document.clone();
    let mut read = operation.clone();
    match (fault, &mut read) {
        (ShareFault::LeavingAdmitsNone, Operation::End(end)) if !before.is_inside(end.token) => {
            world.document.leave_queue(end.token);
            let (how, gave) = (Ended::Other, false);
            return (Reply::Ended { how, gave }, Vec::new());
        }
        _ => world.reads_wrongly(&mut read, fault),
    }
    let (reply, pushes) = world.step(&read, limits);
    world.writes_wrongly(before, operation, limits, fault);
    (reply, pushes)
}

impl ShareWorld {
    /// Changes the operation, or the key before it.
    fn reads_wrongly(&mut self, operation: &mut Operation, fault: ShareFault) {
        let now = self.millis();
        let document = &mut self.document;
        match (fault, operation) {
            (ShareFault::MarkNotRaised, Operation::End(end)) => end.fence = None,
            (ShareFault::FirstReleaseFrees, Operation::End(end))
                if document.is_inside(end.token) =>
            {
                let (token, ends) = (end.token, document.ends().unwrap_or(now));
                document.phase = Phase::Held(Hold { token, ends });
            }
            (ShareFault::EndedSharesCount, _) => {
                if let Phase::Shared(shares) = &mut document.phase {
                    for place in &mut shares.inside {
                        place.ends = place.ends.max(now);
                    }
                }
            }
            (ShareFault::ReadersBesidePermits, Operation::Acquire(ask)) => {
                ask.token = as_permit(ask.token);
                rename(document, as_permit);
            }
            (ShareFault::LimitOfTheReleaser, Operation::End(end))
                if end.token.share().is_some() && document.is_inside(end.token) =>
            {
                for waiter in &mut document.queue {
                    waiter.token = waiter.token.with_share(end.token.share());
                }
            }
            (_, Operation::Acquire(ask)) if hides_the_queue(document, ask, now, fault) => {
                document.queue.clear();
            }
            _ => {}
        }
    }

    /// Changes the key after the operation.
    fn writes_wrongly(
        &mut self,
        mut before: Document,
        operation: &Operation,
        limits: &ShareLimits,
        fault: ShareFault,
    ) {
        let now = self.millis();
        let (alone, document) = (alone(&before), &mut self.document);
        match (fault, operation, &mut document.phase) {
            (ShareFault::EndOfTheKeyIsCut, _, Phase::Shared(shares)) => {
                let renewed = match operation {
                    Operation::Extend { token, .. } => Some(*token),
                    _ => None,
                };
                for place in &shares.inside {
                    if renewed == Some(place.token) || !before.is_inside(place.token) {
                        shares.ends = place.ends;
                    }
                }
            }
            (ShareFault::RenewalForgetsTheKey, Operation::Extend { .. }, Phase::Shared(shares)) => {
                shares.ends = before.ends().unwrap_or(now)
            }
            (ShareFault::FirstShareForgotten, _, Phase::Shared(shares)) => {
                shares
                    .inside
                    .retain(|place| alone.is_none_or(|first| place.token != first.token));
            }
            // The set of earlier shares is still there.
            (ShareFault::SetOutlivesItsKey, _, Phase::Shared(shares)) if alone.is_some() => {
                let clients = limits.ids().zip(&self.clients);
                let owners = clients.filter(|(_, it)| it.phase == ClientPhase::Holding);
                for token in owners.map(|(id, _)| limits.token(id)) {
                    if shares.place_of(token).is_none() {
                        let mut place = shares.inside[0];
                        (place.token, place.ends) = (token, shares.ends);
                        shares.inside.push(place);
                    }
                }
            }
            (ShareFault::EndedSharesCount, _, Phase::Shared(shares)) => {
                for place in &mut shares.inside {
                    if let Phase::Shared(old) = &mut before.phase
                        && let Some(old) = old.place_of(place.token)
                        && place.ends == now
                    {
                        place.ends = old.ends;
                    }
                }
            }
            (ShareFault::ReadersBesidePermits | ShareFault::LimitOfTheReleaser, ..) => {
                rename(document, |token| limits.token(id_of(token)));
            }
            (_, Operation::Acquire(ask), _) if hides_the_queue(&mut before, ask, now, fault) => {
                document.queue = before.queue;
                document.leave_queue(ask.token);
            }
            (ShareFault::UndoneByDeletion, _, phase) => {
                let is_dead =
                    |token| self.clients[usize::from(id_of(token))].phase == ClientPhase::Dead;
                let mut left = before.queue.iter().map(|waiter| waiter.token);
                if left.any(|token| {
                    !waits(&document.queue, token) && is_dead(token) && before.fits(token)
                }) {
                    *phase = Phase::Free;
                }
            }
            (
                ShareFault::TokenOfBeforeIsKept,
                Operation::Swap { from, to, .. },
                Phase::Held(hold),
            ) if hold.token == *to && alone.is_some_and(|first| first.token == *from) => {
                hold.token = *from;
            }
            (ShareFault::EnteringCutsItsOwnShare, ..) => {
                if let Some(Hold { token, ends }) = alone
                    && waits(&before.queue, token)
                    && !waits(&document.queue, token)
                    && document.is_inside(token)
                {
                    let asks = matches!(operation, Operation::Acquire(ask) if ask.token == token);
                    let span = if asks {
                        limits.ttl(id_of(token))
                    } else {
                        GRANT
                    };
                    // A set with this share alone, which may end sooner than the key.
                    let nobody = Token::NOBODY;
                    document.phase = Phase::Held(Hold {
                        token: nobody,
                        ends,
                    });
                    document.enter(token, now + millis(span));
                    document.remove(nobody);
                    if let Phase::Shared(shares) = &mut document.phase {
                        shares.ends = shares.ends.max(ends);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Returns whether the fault makes a question pass over the queue.
fn hides_the_queue(document: &mut Document, ask: &Acquire, now: u64, fault: ShareFault) -> bool {
    match fault {
        ShareFault::NewcomersFirst => {
            document.settle_shares(now);
            ask.token.share().is_some() && document.fits(ask.token)
        }
        ShareFault::RepeatedQuestionAdmitsNone => document.is_inside(ask.token),
        _ => false,
    }
}

fn waits(queue: &[Waiter], token: Token) -> bool {
    queue.iter().any(|waiter| waiter.token == token)
}

/// Returns the lock, or the share, that has the key alone.
fn alone(document: &Document) -> Option<Hold> {
    match document.phase {
        Phase::Held(hold) => Some(hold),
        _ => None,
    }
}

fn as_permit(token: Token) -> Token {
    match token.share() {
        Some(ShareLimit::READERS) => token.with_share(ShareLimit::permits(99).ok()),
        _ => token,
    }
}

fn rename(document: &mut Document, token: impl Fn(Token) -> Token) {
    for waiter in &mut document.queue {
        waiter.token = token(waiter.token);
    }
    match &mut document.phase {
        Phase::Held(hold) => hold.token = token(hold.token),
        Phase::Shared(shares) => {
            for place in &mut shares.inside {
                place.token = token(place.token);
            }
        }
        Phase::Free | Phase::Closed(_) => {}
    }
}
