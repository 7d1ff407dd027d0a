//! A ticket works once, the key is not free before that, and the fencing token stays.

use super::dead::addresses;
use super::undisturbed::{self, is_quiet, may_stop_before, promptly};
use super::{Answer, Asks, Call, Claim, Ledger, Ordered, Owning};
use crate::plan::{Plan, Topology, lock_name};
use crate::server::{Bytes, Data};
use crate::world::{Fault, MILLI, Planned, SECOND, State, sim};

/// A call on PostgreSQL fails with this text if no standby has confirmed its commit.
const UNCONFIRMED: &str = "has not confirmed the commit";

/// A lock that its owner has passed on by a ticket.
#[derive(Clone, Debug)]
pub struct PassedOn {
    /// The call that was granted the lock.
    pub by: usize,
    pub key: usize,
    pub token: u64,
    pub text: String,
    pub asked: u64,
    pub made: u64,
    pub pick_up: u64,
    /// A job brings it to a worker.
    pub is_fetched: bool,
    /// The calls that went on with the lock, or tried to.
    pub uses: Vec<usize>,
}

impl Ledger {
    /// Notes a ticket that is made now. Returns its number.
    pub fn passes_on(&mut self, ticket: PassedOn) -> usize {
        self.tickets.push(ticket);
        self.tickets.len() - 1
    }

    /// The tickets of the last jobs, of which some were delivered before.
    pub fn jobs(&self, most: usize) -> Vec<usize> {
        let tickets = self.tickets.iter().enumerate().rev();
        let fetched = tickets.filter(|(_, ticket)| ticket.is_fetched);
        fetched.take(most).map(|(number, _)| number).collect()
    }

    /// Notes that a call inside of a lock asks for a ttl, which the lock and its tickets have from then on if it is longer.
    pub fn is_entered_with(&mut self, call: usize, ttl: u64) {
        let outer = &mut self.calls[call];
        outer.ttl = outer.ttl.max(ttl);
    }

    /// Notes a call that goes on with the lock of a ticket. Returns the call's number.
    pub fn goes_on(&mut self, ticket: usize, process: usize, task: usize) -> usize {
        let it = &self.tickets[ticket];
        let call = self.asks(Asks {
            process,
            task,
            keys: vec![it.key],
            owning: Owning::Alone,
            ttl: self.calls[it.by].ttl,
            wait: Some(0),
        });
        self.tickets[ticket].uses.push(call);
        call
    }

    pub fn check_tickets(&mut self, plan: &Plan) {
        for number in 0..self.tickets.len() {
            let ticket = self.tickets[number].clone();
            let granted = ticket.uses.iter().filter(|call| self.is_granted(**call));
            let granted: Vec<usize> = granted.copied().collect();
            if granted.len() > 1 {
                let calls: Vec<String> = granted.iter().map(|call| self.show(*call)).collect();
                let text = format!("{ticket:?}\n  {}", calls.join("\n  "));
                self.violates("a ticket works twice", text);
            }
            self.check_uses(plan, &ticket);
            let until = self.kept_until(&ticket, granted.first().copied());
            if until > ticket.made {
                self.claims.push(Claim {
                    call: ticket.by,
                    key: ticket.key,
                    owning: Owning::Alone,
                    token: ticket.token,
                    from: ticket.made,
                    until,
                });
            }
        }
    }

    /// Checks that the ticket of a process is known to a replica, as the manager asks for. The process may have stood still since
    /// the answer, and another one may have the key.
    pub fn check_replicas(&mut self, plan: &Plan, state: &State, process: usize, key: usize) {
        if plan.topology != Topology::Replicas || plan.loses_data() || !self.orders.is_empty() {
            return;
        }
        let name = lock_name(key);
        let mut values = state.hosts.iter().map(|host| {
            let entry = host.server.entry(name.as_bytes())?;
            match &entry.data {
                Data::Text(text) => Some(text.clone()),
                _ => None,
            }
        });
        let addresses = addresses(state, process);
        let is_its = |text: &Bytes| addresses.iter().any(|its| text.starts_with(its));
        let master = values.next().flatten();
        if master.as_ref().is_some_and(is_its) && values.all(|replica| replica != master) {
            let text = format!("k{key} at {:.6}", state.now as f64 / 1e9);
            self.violates("no replica has a lock that was passed on", text);
        }
    }

    /// Until when no other owner may have the key: until it is used, dropped on the way, freed, or over.
    fn kept_until(&self, ticket: &PassedOn, granted: Option<usize>) -> u64 {
        let begun = ticket.uses.iter().map(|call| self.calls[*call].asked).min();
        // The process's clock measures nothing of it, but the server's may be fast.
        let over = ticket.asked + ticket.pick_up - ticket.pick_up / 100;
        let freed = self.orders.iter().filter(|order| {
            let may_be = order.result != Ordered::Changed && order.key == ticket.key;
            may_be
                && order
                    .answered
                    .is_none_or(|answered| answered >= ticket.asked)
        });
        let freed = freed.map(|order| order.sent).min().unwrap_or(u64::MAX);
        let until = match granted {
            Some(call) => {
                let believes = self.claims.iter().find(|claim| claim.call == call);
                believes.map_or(self.calls[call].asked, |claim| claim.from - 1)
            }
            None => begun.unwrap_or(u64::MAX).min(over),
        };
        until.min(freed)
    }

    /// Checks that a ticket works while it may, and not when its time is over.
    fn check_uses(&mut self, plan: &Plan, ticket: &PassedOn) {
        let refusals = |fault: &Fault| matches!(fault, Fault::Refuse { .. } | Fault::Deny { .. });
        for (at, number) in ticket.uses.iter().enumerate() {
            let call = &self.calls[*number];
            let Some(answered) = call.answered else {
                continue;
            };
            if plan.has(Fault::loses_data) || plan.steps_clocks() {
                return;
            }
            let is_quiet = is_quiet(plan, ticket.asked, answered, refusals);
            let used = ticket.uses.iter().enumerate().any(|(other, number)| {
                let it = &self.calls[*number];
                // An answer of before says that the ticket was there.
                let may_use = match &it.answer {
                    // A refusal does nothing. A request without an answer may have used it, and one that no replica or standby
                    // has confirmed has used it.
                    Answer::Refused(why) => {
                        let told = it.answered.unwrap_or(u64::MAX);
                        !undisturbed::is_quiet(plan, ticket.asked, told, refusals)
                            || why.contains(UNCONFIRMED)
                            || begins_to_refuse(plan, it)
                    }
                    // Its request may have arrived twice, and an order freed the lock between the two.
                    Answer::NoTicket => it.answered.is_some_and(|told| {
                        self.is_freed(ticket, told)
                            && !undisturbed::is_quiet(plan, ticket.asked, told, refusals)
                    }),
                    _ => true,
                };
                other != at && may_use && it.asked <= answered
            });
            let freed = self.is_freed(ticket, answered);
            let over = ticket.made + ticket.pick_up + promptly(plan);
            let in_time = answered + ticket.pick_up / 100 < ticket.asked + ticket.pick_up;
            let wrong = match &call.answer {
                Answer::NoTicket => in_time && !used && !freed,
                _ => is_quiet && self.is_granted(*number) && call.asked > over,
            };
            if wrong {
                let text = format!("{ticket:?}\n  {}", self.show(*number));
                let rule = match in_time {
                    true => "a good ticket does not work",
                    false => "a ticket works when its time is over",
                };
                self.violates(rule, text);
                return;
            }
        }
    }

    /// Returns whether an order may have freed the key by this time, since the ticket was asked for.
    fn is_freed(&self, ticket: &PassedOn, by: u64) -> bool {
        self.orders.iter().any(|order| {
            let sent = order.sent <= by && order.result != Ordered::Changed;
            let late = order
                .answered
                .is_none_or(|answered| answered >= ticket.asked);
            sent && late && order.key == ticket.key
        })
    }

    pub(super) fn is_granted(&self, call: usize) -> bool {
        self.calls[call].answer.is_granted()
    }

    /// Returns whether the later owner got the lock of the earlier one by tickets, with its token.
    pub(super) fn goes_on_with(&self, earlier: &Claim, later: &Claim) -> bool {
        earlier.token == later.token
            && self.first_owner(earlier.call) == self.first_owner(later.call)
    }

    /// Returns whether the owner of a claim has passed its lock on by a ticket.
    pub(super) fn is_on_its_way(&self, claim: &Claim) -> bool {
        let mut tickets = self.tickets.iter();
        tickets.any(|it| it.by == claim.call && it.made <= claim.from)
    }

    /// Returns whether a ticket keeps a key at a time.
    pub(super) fn is_on_its_way_at(&self, key: usize, time: u64) -> bool {
        self.tickets.iter().any(|ticket| {
            let mut uses = ticket.uses.iter();
            let is_over = time >= ticket.made + ticket.pick_up + SECOND;
            ticket.key == key && !is_over && !uses.any(|call| self.is_granted(*call))
        })
    }

    fn first_owner(&self, call: usize) -> usize {
        let by = self.tickets.iter().find(|it| it.uses.contains(&call));
        by.map_or(call, |ticket| self.first_owner(ticket.by))
    }

    /// Checks that a lock is not lost to the request for its ticket, while its owner still had it until `ends`.
    pub fn check_lost_to_ticket(&mut self, plan: &Plan, call: usize, ends: u64) {
        let loses = |fault: &Fault| fault.loses_data() || fault.clock_step().is_some();
        if sim().now() < ends && !plan.has(loses) && !self.may_be_freed(call) {
            let text = self.show(call);
            self.violates("a held lock is lost when its ticket is asked for", text);
        }
    }

    /// Checks that a ticket was made before the end of the lease, of which its owner knew.
    pub fn check_made_in_time(&mut self, plan: &Plan, call: usize, ends: u64) {
        let now = sim().now();
        if now > ends + MILLI && !may_stop_before(plan, now) {
            let text = format!("at {:.6}: {}", now as f64 / 1e9, self.show(call));
            self.violates("a ticket is made after the end of its lease", text);
        }
    }
}

/// Returns whether a server began to refuse while a call asked it. Where replicas acknowledge, the server may have taken the
/// request then, and refused the `WAIT` behind it.
fn begins_to_refuse(plan: &Plan, call: &Call) -> bool {
    let span = call.asked..=call.answered.unwrap_or(u64::MAX);
    let begins = |it: &Planned| matches!(it.fault, Fault::Refuse { .. }) && span.contains(&it.at);
    plan.acks > 0 && plan.faults.iter().any(begins)
}
