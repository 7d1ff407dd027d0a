//! The world of the model: a server, processes, what is on its way between them, and every single
//! thing that can happen next.

use std::time::Duration;

use super::fault::Fault;
use super::process::{Name, Process, Tenure, Turn, Waiter};
use super::server::{Answer, Around, Ask, Push, Server, Value};
use crate::clock::Moment;
use crate::lease::{Action, Phase, Renewal, Terms};

/// The processes' clock moves by a second at a time; the server's by 1 % more or less.
const TICK: Duration = Duration::from_secs(1);
const START: Moment = Moment(3_600_000_000_000);
const SERVER_START: u64 = 1_000_000_000;
/// A command that has not arrived by then never will: its socket gives up.
const LONGEST_TRIP: Duration = Duration::from_secs(5);
/// When what a command without an answer may have done is undone once more.
const LATE_TWIN: Duration = Duration::from_secs(6);

/// How large the world is, and what may go wrong in it.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    pub(super) processes: u8,
    /// The time that is looked at.
    pub(super) ticks: u8,
    /// Leases that a process begins.
    pub(super) leases: u8,
    /// Questions for one lease.
    pub(super) rounds: u8,
    /// Tasks of a process that come to stand in line behind another.
    pub(super) line: u8,
    /// Whether waiters give up, and whether questions and renewals go unanswered.
    pub(super) cancels: bool,
    pub(super) unanswered: bool,
    /// Whether it is kept when a waiter will ask by itself. What is safe does not depend on it: a
    /// waiter may ask at any time.
    pub(super) timers: bool,
    /// What goes wrong beyond late and lost messages: kills, doubled messages, strangers, lost queues.
    pub(super) mischief: u8,
    /// The ttl of a lease, and of a body nested in it, if there are such.
    pub(super) ttl_millis: u64,
    pub(super) longer_millis: Option<u64>,
    /// Milliseconds by which the server's clock may be stepped, once.
    pub(super) step: Option<i64>,
    /// Microseconds of the server's clock in a tick of the processes'.
    pub(super) rates: &'static [u64],
    /// For how many ticks anybody may still have to wait once nothing goes wrong any more.
    pub(super) longest_wait: u64,
    pub(super) fault: Option<Fault>,
}

impl Limits {
    fn terms(&self) -> Terms {
        Terms::new(Duration::from_millis(self.ttl_millis), true, None)
    }

    fn longer(&self) -> Terms {
        let millis = self.longer_millis.unwrap_or(self.ttl_millis);
        Terms::new(Duration::from_millis(millis), true, None)
    }

    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Message {
    Ask(Ask<Name>, Moment, u8),
    Answer(Name, u8, Answer<Name>),
    Extend(Name, Moment, u64),
    Extended(Name, Moment, u64, bool),
    Release(Name, Option<u64>),
    Push(Push<Name>),
}

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Time goes on, with the server's clock at so many microseconds.
    Tick(u64),
    /// Somebody wants the lock.
    Begin(u8),
    /// One more task of the process wants it.
    Line(u8),
    Deliver(usize),
    /// Delivered, and once more later.
    Double(usize),
    /// Two releases arrive in one batch.
    Batch(usize, usize),
    /// A question, or a renewal, is taken for unanswered, and asked again.
    AskAgain(u8),
    RenewalUnanswered(u8),
    Cancel(u8),
    /// The tenure ends: passed on, or given back.
    End(u8),
    /// A nested body with a longer ttl goes under the lease.
    Serve(u8),
    /// The keeper looks.
    Look(u8),
    /// The process is gone, and the server knows.
    Kill(u8),
    Stranger,
    QueueLost,
    ClockJumps,
}

/// What must never be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    TwoWindows,
    WindowWithoutTheKey,
    FenceNotHigher,
    AnothersKeyTouched,
    NobodyLooksAfterIt,
    GivenToWhoHasGone,
    PassedOverTheQueue,
    WaitsForEver,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) ticks: u8,
    pub(super) server: Server<Name>,
    pub(super) net: Vec<Message>,
    pub(super) processes: Vec<Process>,
    mischief: u8,
    stepped: bool,
    /// The highest fencing token that anybody has acted on.
    acted_on: u64,
}

impl World {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            ticks: 0,
            server: Server::new(SERVER_START, 1),
            net: Vec::new(),
            processes: (0..limits.processes).map(|_| Process::new()).collect(),
            mischief: 0,
            stepped: false,
            acted_on: 0,
        }
    }

    pub(super) fn now(&self) -> Moment {
        START + TICK * u32::from(self.ticks)
    }

    /// All that can happen next.
    pub(super) fn steps(&self, limits: &Limits) -> Vec<Step> {
        let mut steps = Vec::with_capacity(16);
        let mischief = self.mischief < limits.mischief;
        if self.ticks < limits.ticks {
            steps.extend(limits.rates.iter().map(|rate| Step::Tick(*rate)));
        }
        for (index, message) in self.net.iter().enumerate() {
            // Twice the same is once the same, and the other later.
            if index > 0 && self.net[index - 1] == *message {
                continue;
            }
            steps.push(Step::Deliver(index));
            let doubles = matches!(message, Message::Push(_) | Message::Release(..));
            if mischief && doubles {
                steps.push(Step::Double(index));
            }
            if let Message::Release(name, _) = message {
                steps.extend((index + 1..self.net.len()).filter_map(|other| {
                    let together = matches!(&self.net[other], Message::Release(second, _)
                        if second.process == name.process);
                    together.then_some(Step::Batch(index, other))
                }));
            }
        }
        for (index, process) in (0..).zip(&self.processes) {
            if process.alive {
                self.steps_of(index, process, limits, &mut steps);
                if mischief {
                    steps.push(Step::Kill(index));
                }
            }
        }
        if mischief && self.server.look(0).is_none() {
            steps.push(Step::Stranger);
        }
        if mischief && !self.server.keys[0].queue.is_empty() {
            steps.push(Step::QueueLost);
        }
        if self.clock_may_be_stepped(limits) {
            steps.push(Step::ClockJumps);
        }
        steps
    }

    /// Forwards: not while somebody has the key, or is being given it. Backwards: before any lease
    /// has run out.
    fn clock_may_be_stepped(&self, limits: &Limits) -> bool {
        let Some(step) = limits.step.filter(|_| !self.stepped) else {
            return false;
        };
        if step < 0 {
            return self.ticks == 0;
        }
        let Some((Value::Held(owner), _)) = self.server.look(0) else {
            return true;
        };
        let process = &self.processes[usize::from(owner.process)];
        let waits = process.waiter.as_ref().is_some_and(|one| one.name == owner);
        let holds = process.tenure.as_ref().is_some_and(|one| one.name == owner);
        !waits && !holds
    }

    fn steps_of(&self, index: u8, process: &Process, limits: &Limits, steps: &mut Vec<Step>) {
        let begins = process.begun < limits.leases;
        match &process.waiter {
            Some(waiter) => {
                if limits.unanswered && waiter.rounds < limits.rounds {
                    steps.push(Step::AskAgain(index));
                }
                if limits.cancels {
                    steps.push(Step::Cancel(index));
                }
            }
            // Processes are alike: they come in the order of their numbers.
            None if process.tenure.is_none() && begins && self.is_next(index) => {
                steps.push(Step::Begin(index));
            }
            None => {}
        }
        if process.joined < limits.line && (process.waiter.is_some() || process.tenure.is_some()) {
            steps.push(Step::Line(index));
        }
        if let Some(tenure) = &process.tenure {
            steps.push(Step::End(index));
            if limits.unanswered && tenure.extending.is_some() {
                steps.push(Step::RenewalUnanswered(index));
            }
            if limits.longer_millis.is_some() && !tenure.served {
                steps.push(Step::Serve(index));
            }
        }
        if self.is_due(process) {
            steps.push(Step::Look(index));
        }
    }

    fn is_next(&self, index: u8) -> bool {
        index == 0 || self.processes[usize::from(index) - 1].begun > 0
    }

    fn is_due(&self, process: &Process) -> bool {
        let now = self.now();
        let tenure = process.tenure.as_ref();
        let twin = process.twins.first();
        tenure.is_some_and(|one| one.lease.due().is_some_and(|due| due <= now))
            || twin.is_some_and(|(_, at)| *at <= now)
    }

    /// The world after a step, or what is wrong with it.
    pub(super) fn after(&self, step: Step, limits: &Limits) -> Result<World, Wrong> {
        let mut next = self.clone();
        next.take(step, limits)?;
        next.net.sort_unstable();
        next.check()?;
        Ok(next)
    }

    fn take(&mut self, step: Step, limits: &Limits) -> Result<(), Wrong> {
        let now = self.now();
        match step {
            Step::Tick(micros) => self.tick(micros),
            Step::Begin(index) => self.begin(index, limits),
            Step::Line(index) => {
                let process = &mut self.processes[usize::from(index)];
                process.line += 1;
                process.joined += 1;
            }
            Step::Deliver(index) => {
                let message = self.net.remove(index);
                self.deliver(message, limits)?;
            }
            Step::Double(index) => {
                self.mischief += 1;
                let message = self.net[index].clone();
                self.deliver(message, limits)?;
            }
            Step::Batch(first, second) => {
                let second = self.net.remove(second);
                let first = self.net.remove(first);
                if let (Message::Release(a, af), Message::Release(b, bf)) = (first, second) {
                    let releases = [(a, af), (b, bf)];
                    self.serve(limits, &[a, b], |server, around| {
                        server.release_two(0, releases, around);
                    })?;
                    self.given_back(a);
                    self.given_back(b);
                }
            }
            Step::AskAgain(index) => {
                let waiter = self.waiter(index);
                waiter.gives_up(limits.fault);
                self.ask(index, true, limits);
            }
            Step::RenewalUnanswered(index) => {
                self.net
                    .retain(|message| !matches!(message, Message::Extended(name, ..) if name.process == index));
                self.renewed(index, now, Renewal::Unknown, limits);
            }
            Step::Cancel(index) => self.cancel(index, limits),
            Step::End(index) => self.end(index, limits)?,
            Step::Serve(index) => {
                if let Some(tenure) = &mut self.processes[usize::from(index)].tenure {
                    tenure.served = true;
                    tenure.lease.serve(limits.longer(), now);
                }
            }
            Step::Look(index) => self.look(index, limits),
            Step::Kill(index) => {
                self.mischief += 1;
                let begun = self.processes[usize::from(index)].begun;
                self.processes[usize::from(index)] = Process {
                    alive: false,
                    begun,
                    ..Process::new()
                };
                self.net.retain(|message| !message.is_for(index));
            }
            Step::Stranger => {
                self.mischief += 1;
                let ends = self.server.micros / 1_000 + limits.ttl_millis;
                let value = Value::Stranger;
                self.server.keys[0].entry = Some(super::server::Entry { value, ends });
            }
            Step::QueueLost => {
                self.mischief += 1;
                self.server.keys[0].queue.clear();
            }
            Step::ClockJumps => {
                self.stepped = true;
                let step = limits.step.unwrap_or(0) * 1_000;
                self.server.micros = self.server.micros.saturating_add_signed(step);
                self.server.forget_what_ran_out();
            }
        }
        Ok(())
    }

    pub(super) fn tick(&mut self, micros: u64) {
        self.ticks += 1;
        self.server.micros += micros;
        self.server.forget_what_ran_out();
        let now = self.now();
        self.net.retain(|message| match message {
            Message::Ask(_, sent, _) | Message::Extend(_, sent, _) => {
                now.since(*sent) <= LONGEST_TRIP
            }
            _ => true,
        });
    }

    fn waiter(&mut self, index: u8) -> &mut Waiter {
        let waiter = self.processes[usize::from(index)].waiter.as_mut();
        waiter.expect("only a waiter takes such a step")
    }

    fn begin(&mut self, index: u8, limits: &Limits) {
        let process = &mut self.processes[usize::from(index)];
        process.begun += 1;
        let name = Name {
            process: index,
            lease: process.begun,
        };
        process.waiter = Some(Waiter::new(name, limits.terms()));
        self.ask(index, false, limits);
    }

    /// The next in line of the process asks, if there is one.
    fn promote(&mut self, index: u8, limits: &Limits) {
        let process = &mut self.processes[usize::from(index)];
        if process.line > 0 {
            process.line -= 1;
            self.begin(index, limits);
        }
    }

    fn ask(&mut self, index: u8, queue: bool, limits: &Limits) {
        let now = self.now();
        let process = &mut self.processes[usize::from(index)];
        let Some(waiter) = &mut process.waiter else {
            return;
        };
        waiter.asks(queue, now);
        let ask = Ask {
            token: waiter.name,
            ttl: limits.ttl_millis,
            queue,
            replaces: process.unreleased,
        };
        let (name, round) = (waiter.name, waiter.rounds);
        // Nobody waits for what was answered to an earlier question.
        if !limits.has(Fault::AnswerToAnotherQuestion) {
            self.net
                .retain(|message| !matches!(message, Message::Answer(other, ..) if *other == name));
        }
        self.net.push(Message::Ask(ask, now, round));
    }

    fn release(&mut self, name: Name, fence: Option<u64>, twin: bool) {
        self.net.push(Message::Release(name, fence));
        let again = self.now() + LATE_TWIN;
        let process = &mut self.processes[usize::from(name.process)];
        process.unreleased = Some((name, fence));
        if twin {
            process.twins.push((name, again));
        }
    }

    fn given_back(&mut self, name: Name) {
        let process = &mut self.processes[usize::from(name.process)];
        if process.unreleased.is_some_and(|(one, _)| one == name) {
            process.unreleased = None;
        }
    }

    fn cancel(&mut self, index: u8, limits: &Limits) {
        let Some(mut waiter) = self.processes[usize::from(index)].waiter.take() else {
            return;
        };
        waiter.gives_up(limits.fault);
        let name = waiter.name;
        self.net
            .retain(|message| !matches!(message, Message::Answer(other, ..) if *other == name));
        if waiter.known && !limits.has(Fault::CancelledIsNotUndone) {
            self.release(name, None, waiter.twin);
        }
        self.promote(index, limits);
    }

    fn end(&mut self, index: u8, limits: &Limits) -> Result<(), Wrong> {
        let now = self.now();
        let process = &mut self.processes[usize::from(index)];
        let Some(mut tenure) = process.tenure.take() else {
            return Ok(());
        };
        self.net.retain(
            |message| !matches!(message, Message::Extended(other, ..) if *other == tenure.name),
        );
        if process.line > 0
            && let Some(next) = tenure.pass(limits.terms(), now, limits.fault)
        {
            process.line -= 1;
            let strangers = &self.server.keys[0].queue;
            if next.passes > super::process::MOST
                && strangers.iter().any(|one| one.token.process != index)
            {
                return Err(Wrong::PassedOverTheQueue);
            }
            return self.holds(index, next);
        }
        match tenure.lease.close(now) {
            Phase::Held | Phase::Lost(_) => {
                self.release(tenure.name, Some(tenure.fence), tenure.twin);
            }
            Phase::Asking | Phase::Closed => {}
        }
        self.promote(index, limits);
        Ok(())
    }

    /// A tenure begins.
    fn holds(&mut self, index: u8, tenure: Tenure) -> Result<(), Wrong> {
        if tenure.is_valid(self.now()) {
            if tenure.fence <= self.acted_on {
                return Err(Wrong::FenceNotHigher);
            }
            self.acted_on = tenure.fence;
        }
        self.processes[usize::from(index)].tenure = Some(tenure);
        Ok(())
    }

    fn turns(&mut self, index: u8, turn: Turn, limits: &Limits) -> Result<(), Wrong> {
        match turn {
            Turn::Waits => Ok(()),
            Turn::Asks => {
                self.ask(index, true, limits);
                Ok(())
            }
            Turn::Holds(tenure) => {
                let process = &mut self.processes[usize::from(index)];
                process.waiter = None;
                process.unreleased = None;
                self.holds(index, tenure)
            }
        }
    }

    fn look(&mut self, index: u8, limits: &Limits) {
        let now = self.now();
        let process = &mut self.processes[usize::from(index)];
        if let Some((name, at)) = process.twins.first().copied()
            && at <= now
        {
            process.twins.remove(0);
            self.net.push(Message::Release(name, None));
            return;
        }
        let Some(tenure) = &mut process.tenure else {
            return;
        };
        match tenure.lease.poll(now) {
            Action::Renew => {
                let ttl = u64::try_from(tenure.lease.renewing_to().as_millis()).unwrap_or(0);
                tenure.extending = Some((now, ttl));
                let extend = Message::Extend(tenure.name, now, ttl);
                self.net.push(extend);
            }
            Action::Lost => self.lost(index, true, limits),
            Action::Nothing | Action::Overdue | Action::HeldLong => {}
        }
    }

    fn lost(&mut self, index: u8, discard: bool, limits: &Limits) {
        let process = &mut self.processes[usize::from(index)];
        if let Some(tenure) = process.tenure.take()
            && discard
        {
            self.release(tenure.name, Some(tenure.fence), tenure.twin);
        }
        self.promote(index, limits);
    }

    fn renewed(&mut self, index: u8, sent: Moment, answer: Renewal, limits: &Limits) {
        let now = self.now();
        let terms = limits.longer();
        let process = &mut self.processes[usize::from(index)];
        let Some(tenure) = &mut process.tenure else {
            return;
        };
        if tenure.renewed(sent, answer, terms, now, limits.fault) {
            let discard = !matches!(
                tenure.lease.phase(),
                Phase::Lost(crate::lease::Loss::NotOurs)
            );
            self.lost(index, discard, limits);
        }
    }

    fn deliver(&mut self, message: Message, limits: &Limits) -> Result<(), Wrong> {
        match message {
            Message::Ask(ask, _, round) => {
                let tokens = [
                    ask.token,
                    ask.replaces.map_or(ask.token, |(replaced, _)| replaced),
                ];
                let answer = self.serve(limits, &tokens, |server, around| {
                    server.acquire(0, ask, around)
                })?;
                let waiter = self.processes[usize::from(ask.token.process)]
                    .waiter
                    .as_ref();
                let awaited = waiter.filter(|waiter| waiter.name == ask.token);
                if awaited.is_some_and(|waiter| waiter.is_waiting_for(round, limits.fault)) {
                    self.net.push(Message::Answer(ask.token, round, answer));
                }
                Ok(())
            }
            Message::Answer(name, _, answer) => {
                let now = self.now();
                let waiter = self.processes[usize::from(name.process)].waiter.as_mut();
                let Some(waiter) = waiter.filter(|waiter| waiter.name == name) else {
                    return Ok(());
                };
                let Some(question) = waiter.asked else {
                    return Ok(());
                };
                let turn = waiter.answered(question, answer, now, limits.fault);
                if !limits.timers {
                    waiter.until = Moment::FAR;
                }
                self.turns(name.process, turn, limits)
            }
            Message::Extend(name, sent, ttl) => {
                let ours = self.serve(limits, &[name], |server, around| {
                    server.extend(0, name, ttl, around)
                })?;
                let tenure = self.processes[usize::from(name.process)].tenure.as_ref();
                let awaited = tenure.filter(|tenure| tenure.name == name);
                if awaited.is_some_and(|tenure| tenure.extending == Some((sent, ttl))) {
                    self.net.push(Message::Extended(name, sent, ttl, ours));
                }
                Ok(())
            }
            Message::Extended(name, sent, ttl, ours) => {
                let tenure = self.processes[usize::from(name.process)].tenure.as_ref();
                let awaited = tenure.filter(|tenure| tenure.name == name);
                if awaited.is_none_or(|tenure| tenure.extending != Some((sent, ttl))) {
                    return Ok(());
                }
                let answer = if ours {
                    Renewal::Extended
                } else {
                    Renewal::NotOurs
                };
                self.renewed(name.process, sent, answer, limits);
                Ok(())
            }
            Message::Release(name, fence) => {
                self.serve(limits, &[name], |server, around| {
                    server.release(0, name, fence, false, around)
                })?;
                self.given_back(name);
                Ok(())
            }
            Message::Push(push) => self.push(push, limits),
        }
    }

    fn push(&mut self, push: Push<Name>, limits: &Limits) -> Result<(), Wrong> {
        let (Push::Given(name, ..) | Push::Next(name, _)) = push;
        if limits.has(Fault::SharedChannel) {
            // The other process hears it as well, and gives back what it did not ask for.
            self.net.push(Message::Release(name, None));
        }
        let now = self.now();
        let process = &mut self.processes[usize::from(name.process)];
        if !process.alive {
            return Ok(());
        }
        if let Some(waiter) = &mut process.waiter
            && waiter.name == name
        {
            let turn = waiter.hears(push, now, limits.fault);
            return self.turns(name.process, turn, limits);
        }
        if !process.knows(name) {
            match push {
                // A known gap, left out here: a late push for a token whose release is on its way, and
                // whose process has come to step over another since. What undoes it knows of no
                // fencing token; overtaking the release, it leaves the mark too low. It takes a
                // server's clock that goes back, or stands still between the two grants.
                Push::Given(..)
                    if self.net.iter().any(
                        |message| matches!(message, Message::Release(other, Some(_)) if *other == name),
                    ) => {}
                Push::Given(..) => self.net.push(Message::Release(name, None)),
                Push::Next(..) => {
                    self.serve(limits, &[name], |server, around| {
                        server.release(0, name, None, true, around)
                    })?;
                }
            }
        }
        Ok(())
    }

    /// The server runs a script of these tokens, and no other's key may be touched by it.
    fn serve<R>(
        &mut self,
        limits: &Limits,
        tokens: &[Name],
        script: impl FnOnce(&mut Server<Name>, &mut Around<'_, Name>) -> R,
    ) -> Result<R, Wrong> {
        let processes = &self.processes;
        let listens = |name: Name| processes[usize::from(name.process)].alive;
        let mut around = Around {
            listens: &listens,
            pushes: Vec::new(),
            fault: limits.fault,
        };
        let before = self.server.look(0);
        let reply = script(&mut self.server, &mut around);
        let theirs = |value: Value<Name>| match value {
            Value::Held(owner) => tokens.contains(&owner),
            Value::Stranger => false,
        };
        if before.is_some_and(|(value, _)| !theirs(value)) && self.server.look(0) != before {
            return Err(Wrong::AnothersKeyTouched);
        }
        for push in around.pushes {
            if let Push::Given(name, ..) = push
                && !listens(name)
            {
                return Err(Wrong::GivenToWhoHasGone);
            }
            if limits.timers || matches!(push, Push::Given(..)) {
                self.net.push(Message::Push(push));
            }
        }
        Ok(reply)
    }
}
