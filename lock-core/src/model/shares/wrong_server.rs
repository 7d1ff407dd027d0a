//! The seeded faults of the server. Each changes what goes into a step of the protocol, or what comes out of it.

use super::fault::ShareFault;
use super::server::{id_of, millis};
use super::world::{ClientPhase, GRANT, ShareLimits, ShareWorld};
use crate::base::share::ShareLimit;
use crate::base::token::Token;
use crate::protocol::{Document, End, Ended, Hold, Operation, Phase, Push, Reply, Waiter};

/// Runs an operation with a fault.
pub(super) fn run(
    world: &mut ShareWorld,
    operation: &Operation,
    limits: &ShareLimits,
    fault: ShareFault,
) -> (Reply, Vec<Push>) {
    let before = world.document.clone();
    let mut read = operation.clone();
    if let Operation::End(end) = &read
        && fault == ShareFault::LeavingAdmitsNone
        && !world.document.is_inside(end.token)
    {
        world.document.leave_queue(end.token);
        let (how, gave) = (Ended::Other, false);
        return (Reply::Ended { how, gave }, Vec::new());
    }
    let set_aside = world.reads_wrongly(&mut read, fault);
    let (reply, pushes) = world.step(&read, limits);
    world.is_renamed(limits, fault);
    if let Operation::Acquire(ask) = operation {
        let waiting = set_aside.into_iter().filter(|it| it.token != ask.token);
        world.document.queue.splice(0..0, waiting);
    }
    world.writes_wrongly(before, operation, limits, fault);
    (reply, pushes)
}

impl ShareWorld {
    /// Changes the operation, or the key before it. Returns waiters that the operation does not see.
    fn reads_wrongly(&mut self, operation: &mut Operation, fault: ShareFault) -> Vec<Waiter> {
        let now = self.millis();
        let document = &mut self.document;
        match (fault, operation) {
            (ShareFault::MarkNotRaised, Operation::End(end)) => end.fence = None,
            (ShareFault::FirstReleaseFrees, Operation::End(End { token, .. })) => {
                if let Phase::Shared(shares) = &mut document.phase
                    && shares.place_of(*token).is_some()
                {
                    let (token, ends) = (*token, shares.ends);
                    document.phase = Phase::Held(Hold { token, ends });
                }
            }
            (ShareFault::EndedSharesCount, _) => {
                if let Phase::Shared(shares) = &mut document.phase {
                    for place in &mut shares.inside {
                        place.ends = place.ends.max(now);
                    }
                }
            }
            (ShareFault::ReadersBesidePermits, Operation::Acquire(ask)) => {
                let many = ShareLimit::permits(99).ok();
                let as_permit = |token: &mut Token| {
                    if token.share() == Some(ShareLimit::READERS) {
                        *token = token.with_share(many);
                    }
                };
                as_permit(&mut ask.token);
                each_token(document, as_permit);
            }
            (ShareFault::LimitOfTheReleaser, Operation::End(end)) => {
                let own = end.token.share();
                if document.is_inside(end.token) && own.is_some() {
                    for waiter in &mut document.queue {
                        waiter.token = waiter.token.with_share(own);
                    }
                }
            }
            (ShareFault::NewcomersFirst, Operation::Acquire(ask)) => {
                document.settle_shares(now);
                if ask.token.share().is_some() && document.fits(ask.token) {
                    return std::mem::take(&mut document.queue);
                }
            }
            (ShareFault::RepeatedQuestionAdmitsNone, Operation::Acquire(ask))
                if document.is_inside(ask.token) =>
            {
                return std::mem::take(&mut document.queue);
            }
            _ => {}
        }
        Vec::new()
    }

    /// Gives the tokens their own limits again.
    fn is_renamed(&mut self, limits: &ShareLimits, fault: ShareFault) {
        if let ShareFault::ReadersBesidePermits | ShareFault::LimitOfTheReleaser = fault {
            each_token(&mut self.document, |token| {
                *token = limits.token(id_of(*token));
            });
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
        let first = match before.phase {
            Phase::Held(hold) => Some(hold),
            _ => None,
        };
        let gone: Vec<Token> = before
            .queue
            .iter()
            .map(|waiter| waiter.token)
            .filter(|token| self.document.queue.iter().all(|it| it.token != *token))
            .collect();
        match fault {
            ShareFault::EndOfTheKeyIsCut => {
                let renewed = match operation {
                    Operation::Extend { token, .. } => Some(*token),
                    _ => None,
                };
                if let Phase::Shared(shares) = &mut self.document.phase {
                    for place in &shares.inside {
                        if renewed == Some(place.token) || !before.is_inside(place.token) {
                            shares.ends = place.ends;
                        }
                    }
                }
            }
            ShareFault::RenewalForgetsTheKey => {
                if let Operation::Extend { .. } = operation
                    && let (Phase::Shared(old), Phase::Shared(new)) =
                        (&before.phase, &mut self.document.phase)
                {
                    new.ends = old.ends;
                }
            }
            ShareFault::FirstShareForgotten => {
                if let (Some(first), Phase::Shared(shares)) = (first, &mut self.document.phase) {
                    shares.inside.retain(|place| place.token != first.token);
                }
            }
            // A set of earlier shares is still there.
            ShareFault::SetOutlivesItsKey => {
                if let (Some(_), Phase::Shared(shares)) = (first, &mut self.document.phase) {
                    for id in limits.ids() {
                        let token = limits.token(id);
                        let believes = self.clients[usize::from(id)].phase == ClientPhase::Holding;
                        if believes && shares.place_of(token).is_none() {
                            let mut place = shares.inside[0];
                            (place.token, place.ends) = (token, shares.ends);
                            shares.inside.push(place);
                        }
                    }
                }
            }
            ShareFault::UndoneByDeletion => {
                let undone = |token: &Token| !self.listens(id_of(*token)) && before.fits(*token);
                if gone.iter().any(undone) {
                    self.document.phase = Phase::Free;
                }
            }
            ShareFault::EndedSharesCount => {
                if let (Phase::Shared(old), Phase::Shared(new)) =
                    (&mut before.phase, &mut self.document.phase)
                {
                    for place in &mut new.inside {
                        let ended = old.place_of(place.token).filter(|it| it.ends < now);
                        place.ends = ended
                            .filter(|_| place.ends == now)
                            .map_or(place.ends, |it| it.ends);
                    }
                }
            }
            ShareFault::TokenOfBeforeIsKept => {
                if let (Operation::Swap { from, to, .. }, Some(first)) = (operation, first)
                    && first.token == *from
                    && let Some(hold) = self.document.hold_of(*to)
                {
                    hold.token = *from;
                }
            }
            ShareFault::EnteringCutsItsOwnShare => {
                if let Some(Hold { token, ends }) = first
                    && gone.contains(&token)
                    && self.document.is_inside(token)
                {
                    let asks = matches!(operation, Operation::Acquire(ask) if ask.token == token);
                    let span = if asks {
                        limits.ttl(id_of(token))
                    } else {
                        GRANT
                    };
                    let nobody = Token::NOBODY;
                    self.document.phase = Phase::Held(Hold {
                        token: nobody,
                        ends,
                    });
                    self.document.enter(token, now + millis(span));
                    if let Phase::Shared(shares) = &mut self.document.phase {
                        shares.inside.retain(|place| place.token == token);
                    }
                }
            }
            _ => {}
        }
    }
}

fn each_token(document: &mut Document, change: impl Fn(&mut Token)) {
    for waiter in &mut document.queue {
        change(&mut waiter.token);
    }
    match &mut document.phase {
        Phase::Held(hold) => change(&mut hold.token),
        Phase::Shared(shares) => {
            for place in &mut shares.inside {
                change(&mut place.token);
            }
        }
        Phase::Free | Phase::Closed(_) => {}
    }
}
