//! What an operator sees and does in an embedded store.

use std::sync::Arc;
use std::time::Duration;

use super::state::{MemoryState, Owner};
use crate::base::clock::Moment;
use crate::base::holder_token::HolderToken;
use crate::base::token::Token;
use crate::lease::cohort::MOST;
use crate::store::{
    ClosedFor, Event, Events, Force, Forced, Inspect, Inspected, News, OperatorOperation,
    OperatorOutcome, Outcome, Scan, Scanned, StoredHolder, Told,
};

/// Events to report once the lock of the store is released.
type Messages = Vec<(Events, Event)>;

impl MemoryState {
    pub(super) fn operate(
        &mut self,
        operation: OperatorOperation,
        now: Moment,
        unix_micros: u64,
    ) -> (Outcome, Messages) {
        let mut messages = Vec::new();
        let outcome = match operation {
            OperatorOperation::Inspect(inspect) => {
                OperatorOutcome::Inspected(Box::new(self.inspect(&inspect, now)))
            }
            OperatorOperation::Force(force) => {
                OperatorOutcome::Forced(self.force(&force, now, unix_micros, &mut messages))
            }
            OperatorOperation::Scan(scan) => OperatorOutcome::Scanned(self.scan(&scan, now)),
            OperatorOperation::ReadCard(name) => {
                let manager = self.listeners.get(&name.address);
                let identity = manager.and_then(|events| events.identity.as_deref().cloned());
                OperatorOutcome::Card(identity)
            }
            // A manager that listens has its identity with it.
            OperatorOperation::WriteCard(..) => OperatorOutcome::Told(Told::Maybe),
            OperatorOperation::Ask(question) => {
                let manager = question.holder.address();
                let manager = manager.and_then(|address| self.listeners.get(&address));
                let Some(events) = manager.cloned() else {
                    let outcome = OperatorOutcome::Told(Told::NoReceiver);
                    return (Outcome::Operator(outcome), messages);
                };
                messages.push((events, Event::Asked(question)));
                OperatorOutcome::Told(Told::Maybe)
            }
            OperatorOperation::Answer(answer) => {
                let event = Event::Answered {
                    number: answer.number,
                    held: answer.held,
                };
                let manager = self.listeners.get(&answer.to).cloned();
                messages.extend(manager.map(|events| (events, event)));
                OperatorOutcome::Told(Told::Maybe)
            }
        };
        (Outcome::Operator(outcome), messages)
    }

    fn inspect(&self, inspect: &Inspect, now: Moment) -> Inspected {
        let key = &inspect.key;
        let holders = self.holders(key, now);
        let closed = match self.live(key, now) {
            Some((owner @ (Owner::Cooling(_) | Owner::Done(..)), end)) => Some(ClosedFor {
                remaining: Some(end.since(now)),
                has_record: matches!(owner, Owner::Done(..)),
            }),
            _ => None,
        };
        let waiting = self.queues.get(key);
        // The store notes no time of arrival.
        let waiters = waiting.into_iter().flatten().take(100);
        Inspected {
            holder_count: holders.len(),
            holders,
            closed,
            waiters: waiters
                .map(|token| (token.address(), Duration::ZERO))
                .collect(),
            waiter_count: waiting.map_or(0, |waiting| waiting.len()),
            mark: match inspect.register {
                Some(register) => self.registers.highest(register),
                None => self.mark,
            },
        }
    }

    /// The holders of a key. All that an operator sees and frees is read here.
    fn holders(&self, key: &str, now: Moment) -> Vec<StoredHolder> {
        let holders = match self.live(key, now) {
            Some((Owner::Lease(token), end)) => vec![(HolderToken::from(token), end)],
            Some((Owner::Stranger, end)) => {
                vec![(HolderToken::new(Owner::Stranger.text().as_bytes()), end)]
            }
            Some((Owner::Shared, _)) => {
                let shares = self.keys.get(key).into_iter().flat_map(|it| &it.shares);
                let live = shares.filter(|(token, end)| *end > now && token.share().is_some());
                live.map(|(token, end)| ((*token).into(), *end)).collect()
            }
            _ => Vec::new(),
        };
        let holders = holders.into_iter().map(|(token, end)| StoredHolder {
            token,
            remaining: Some(end.since(now)),
        });
        holders.collect()
    }

    /// Frees one share. If its process listens, its place stays taken for the grace, by a token that no share has.
    fn force_share(
        &mut self,
        force: &Force,
        share: Token,
        listens: Option<Events>,
        now: Moment,
        unix_micros: u64,
        messages: &mut Messages,
    ) -> Forced {
        let key = &force.key;
        self.remove_share(key, share);
        let Some(events) = listens else {
            messages.extend(self.admit(key, now, unix_micros));
            return Forced::Yes;
        };
        self.enter(key, share.with_share(None), now + force.grace, now);
        messages.push((events, forced(force)));
        messages.extend(self.tell_head(key, News::Next(force.grace)));
        Forced::Cooling
    }

    fn force(
        &mut self,
        force: &Force,
        now: Moment,
        unix_micros: u64,
        messages: &mut Messages,
    ) -> Forced {
        let key = &force.key;
        self.forget_if_over(key, now);
        let holders = self.holders(key, now);
        if !holders.iter().any(|holder| holder.token == force.holder) {
            return Forced::Changed;
        }
        let owner = self.live(key, now).map(|(owner, _)| owner);
        match (force.register, owner) {
            (Some((register, number)), Some(Owner::Lease(token))) => {
                self.registers.raise(register, number, token);
            }
            (Some(_), _) => {}
            (None, _) => {
                let used = force.fence.map_or(0, u64::from);
                self.mark = self.mark.max(unix_micros).max(used) + u64::from(MOST);
            }
        }
        let manager = force.holder.address();
        let manager = manager.and_then(|address| self.listeners.get(&address));
        match (owner, manager.cloned()) {
            (Some(Owner::Shared), events) => {
                let share = force.holder.token();
                return share.map_or(Forced::Changed, |share| {
                    self.force_share(force, share, events, now, unix_micros, messages)
                });
            }
            (Some(Owner::Lease(token)), Some(events)) => {
                messages.push((events, forced(force)));
                self.set(key, Owner::Cooling(token), now + force.grace);
                messages.extend(self.tell_head(key, News::Next(force.grace)));
                return Forced::Cooling;
            }
            _ => {}
        }
        self.remove(key);
        let wake = match force.register {
            Some(_) => self.tell_head(key, News::Ask),
            None => self.wake(key, now),
        };
        messages.extend(wake);
        Forced::Yes
    }

    fn scan(&self, scan: &Scan, now: Moment) -> Scanned {
        let live = self.keys.iter().filter(|(_, stored)| stored.expires > now);
        let keys = live
            .map(|(key, _)| key)
            .filter(|key| scan.pattern.matches(key));
        let mut keys: Vec<_> = keys.cloned().collect();
        keys.sort_unstable();
        Scanned { keys, next: None }
    }
}

/// The message to the holder.
fn forced(force: &Force) -> Event {
    Event::Forced {
        key: Arc::clone(&force.key),
        holder: force.holder.clone(),
    }
}
