//! The steps of the processes, of time, and of the operator.

use super::parts::{
    Condition, ForceBounds, ForceFault, ForceWrong, Message, PASSES, Phase, Process,
};
use super::parts::{START, Token, Value};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ForceWorld {
    pub(super) value: Option<Value>,
    pub(super) ends: u8,
    pub(super) clock: u8,
    pub(super) mark: u8,
    pub(super) queue: Vec<Token>,
    pub(super) processes: Vec<Process>,
    messages: Vec<Message>,
    /// What is left of the bounds: orders, failures, expiries, renewals, ticks, steps back.
    left: [u8; 6],
    /// The fencing token of the last grant.
    pub(super) fence: u8,
    /// The highest token that was used, and the highest that a freed holder may use.
    pub(super) used: u8,
    pub(super) above: u8,
    /// Leases that were freed, and those of them whose process was listening.
    pub(super) freed: Vec<Token>,
    pub(super) told: Vec<Token>,
}

const ORDERS: usize = 0;
const FAILURES: usize = 1;
const EXPIRIES: usize = 2;
const RENEWALS: usize = 3;
const TICKS: usize = 4;
const STEPS_BACK: usize = 5;

impl ForceWorld {
    pub(super) fn new(bounds: ForceBounds) -> Self {
        let process = Process {
            phase: Phase::Idle,
            condition: Condition::Runs,
            lease: 0,
        };
        Self {
            value: None,
            ends: 0,
            clock: START,
            mark: bounds.mark,
            queue: Vec::new(),
            processes: vec![process; bounds.processes],
            messages: Vec::new(),
            left: [
                bounds.orders,
                bounds.failures,
                bounds.expiries,
                bounds.renewals,
                bounds.ticks,
                bounds.steps_back,
            ],
            fence: 0,
            used: 0,
            above: 0,
            freed: Vec::new(),
            told: Vec::new(),
        }
    }

    pub(super) fn send(&mut self, message: Message) {
        self.messages.push(message);
        self.messages.sort_unstable();
    }

    fn token(&self, process: usize) -> Token {
        (process, self.processes[process].lease)
    }

    fn is_underway(&self, is_it: impl Fn(&Message) -> bool) -> bool {
        self.messages.iter().any(is_it)
    }

    /// All states that may follow.
    pub(super) fn next(&self, bounds: ForceBounds) -> Result<Vec<Self>, ForceWrong> {
        let mut all = Vec::new();
        for number in 0..self.processes.len() {
            self.steps_of(number, bounds, &mut all);
        }
        self.steps_of_time(&mut all);
        self.steps_of_the_operator(bounds, &mut all);
        for (index, message) in self.messages.iter().enumerate() {
            let mut after = self.clone();
            after.messages.remove(index);
            if after.arrives(*message, bounds)? {
                all.push(after);
            }
        }
        for after in &all {
            after.check()?;
        }
        Ok(all)
    }

    fn steps_of(&self, number: usize, bounds: ForceBounds, all: &mut Vec<Self>) {
        let mut step = |act: &dyn Fn(&mut Self)| {
            let mut after = self.clone();
            act(&mut after);
            all.push(after);
        };
        let process = &self.processes[number];
        let token = self.token(number);
        if process.condition != Condition::Runs {
            step(&|world| world.comes_back(number, bounds));
        } else if self.left[FAILURES] > 0 {
            for condition in [Condition::Stands, Condition::IsCutOff] {
                step(&|world| {
                    world.left[FAILURES] -= 1;
                    world.fails(number, condition);
                });
            }
        }
        match process.phase {
            // A process that is cut off goes on with its work.
            Phase::Holds { uses, passes } if process.condition != Condition::Stands => {
                if passes > 0 {
                    step(&|world| world.holds(number, uses + 1, passes - 1));
                }
                if process.condition == Condition::IsCutOff {
                    return;
                }
                if self.left[RENEWALS] > 0 {
                    step(&|world| {
                        world.left[RENEWALS] -= 1;
                        world.send(Message::Renew { token });
                    });
                }
                step(&|world| {
                    world.processes[number].ends();
                    world.send(Message::Release { token, used: uses });
                });
            }
            Phase::Idle
                if process.condition == Condition::Runs && process.lease < bounds.leases =>
            {
                step(&|world| world.asks(number));
            }
            // Its timer, or a message that the key is free, or an order.
            Phase::Waits { freed } if process.condition == Condition::Runs => {
                let asked = self.is_underway(|message| match message {
                    Message::Acquire { token: of } => *of == token,
                    Message::Granted { token: of, .. } => !freed && *of == token,
                    _ => false,
                });
                if !asked && (self.value.is_none() || !self.queue.contains(&token)) {
                    step(&|world| world.asks(number));
                }
            }
            _ => {}
        }
    }

    fn asks(&mut self, number: usize) {
        self.processes[number].phase = Phase::Waits { freed: false };
        let token = self.token(number);
        // A grant from before the question counts for nothing.
        self.messages.retain(|message| !message.grants(token));
        self.send(Message::Acquire { token });
    }

    fn holds(&mut self, number: usize, uses: u8, passes: u8) {
        self.processes[number].phase = Phase::Holds { uses, passes };
        self.used = self.used.max(uses);
    }

    fn fails(&mut self, number: usize, condition: Condition) {
        self.processes[number].condition = condition;
        if condition == Condition::IsCutOff {
            let lost = |message: &Message| match message {
                Message::Granted { token, .. } | Message::Renewed { token, .. } => {
                    token.0 == number
                }
                Message::Told { token } => token.0 == number,
                _ => false,
            };
            let told = |token: &Token| self.messages.contains(&Message::Told { token: *token });
            self.told.retain(|token| token.0 != number || !told(token));
            self.messages.retain(|message| !lost(message));
        }
    }

    /// A process that stood still hears first of the order that has arrived.
    fn comes_back(&mut self, number: usize, bounds: ForceBounds) {
        self.processes[number].condition = Condition::Runs;
        let token = self.token(number);
        let told = Message::Told { token };
        if let Some(index) = self.messages.iter().position(|message| *message == told) {
            self.messages.remove(index);
            self.hears_of_the_order(token, bounds);
        }
    }

    fn steps_of_time(&self, all: &mut Vec<Self>) {
        let mut tick = self.clone();
        if self.left[TICKS] > 0 {
            tick.left[TICKS] -= 1;
            tick.clock += 1;
            all.push(tick);
        }
        let mut after = self.clone();
        after.clock = after.clock.max(after.ends);
        after.value = None;
        match self.value {
            Some(Value::Of(token)) if self.left[EXPIRIES] > 0 => {
                let process = &self.processes[token.0];
                let believes = process.holds() && self.token(token.0) == token;
                if believes && process.condition == Condition::Runs {
                    return;
                }
                after.left[EXPIRIES] -= 1;
                if believes {
                    after.used = after.used.max(self.fence + PASSES);
                    after.processes[token.0].ends();
                }
                // A grant that was not heard before its end counts for nothing.
                after.messages.retain(|message| !message.grants(token));
                all.push(after);
            }
            Some(Value::Closed) => {
                let must_hear = |message: &Message| match message {
                    Message::Told { token } => self.processes[token.0].condition == Condition::Runs,
                    _ => false,
                };
                if !self.is_underway(must_hear) {
                    all.push(after);
                }
            }
            _ => {}
        }
    }

    fn steps_of_the_operator(&self, bounds: ForceBounds, all: &mut Vec<Self>) {
        let Some(Value::Of(token)) = self.value else {
            return;
        };
        let process = &self.processes[token.0];
        let named = match process.phase {
            Phase::Holds { uses, .. } if process.condition == Condition::Runs => uses,
            _ => 0,
        };
        if self.left[ORDERS] > 0 {
            let mut after = self.clone();
            after.left[ORDERS] -= 1;
            for fence in if named > 0 { vec![0, named] } else { vec![0] } {
                let mut after = after.clone();
                for _ in 0..bounds.order_copies {
                    after.send(Message::Order { token, fence });
                }
                all.push(after);
            }
        }
        // Only the token that the holder has named is above a clock that was set back.
        let names = |message: &Message| matches!(message, Message::Order { token: of, fence } if *of == token && *fence > 0);
        if self.left[STEPS_BACK] > 0 && self.left[ORDERS] == 0 && self.is_underway(names) {
            let mut after = self.clone();
            after.left[STEPS_BACK] -= 1;
            after.clock -= PASSES + 2;
            all.push(after);
        }
    }

    /// Returns `false` if the message cannot arrive now.
    fn arrives(&mut self, message: Message, bounds: ForceBounds) -> Result<bool, ForceWrong> {
        match message {
            Message::Acquire { token } => self.server_acquires(token)?,
            Message::Renew { token } => self.server_extends(token)?,
            Message::Release { token, used } => self.server_releases(token, used)?,
            Message::Order { token, fence } => self.server_forces(token, fence, bounds)?,
            Message::Granted { token, .. }
            | Message::Renewed { token, .. }
            | Message::Told { token }
                if self.processes[token.0].condition != Condition::Runs =>
            {
                // The connection of a stopped process keeps it.
                if self.processes[token.0].condition == Condition::Stands {
                    return Ok(false);
                }
            }
            Message::Granted { token, fence } => self.hears_of_the_grant(token, fence),
            Message::Renewed { token, yes } => {
                if !yes && self.processes[token.0].holds() && self.token(token.0) == token {
                    self.processes[token.0].ends();
                }
            }
            Message::Told { token } => self.hears_of_the_order(token, bounds),
        }
        Ok(true)
    }

    fn hears_of_the_grant(&mut self, token: Token, fence: u8) {
        if self.processes[token.0].lease != token.1 {
            // A release that is on its way frees the key.
            if !self.is_underway(
                |message| matches!(message, Message::Release { token: of, .. } if *of == token),
            ) {
                self.send(Message::Release { token, used: 0 });
            }
            return;
        }
        if self.processes[token.0].phase == (Phase::Waits { freed: false }) {
            self.holds(token.0, fence, PASSES);
        }
    }

    fn hears_of_the_order(&mut self, token: Token, bounds: ForceBounds) {
        let process = &mut self.processes[token.0];
        if process.lease != token.1 {
            return;
        }
        match &mut process.phase {
            Phase::Holds { .. } => process.ends(),
            Phase::Waits { freed } => *freed = bounds.fault != Some(ForceFault::ToldBeforeGrant),
            Phase::Idle => {}
        }
    }

    fn check(&self) -> Result<(), ForceWrong> {
        let mut owners = 0;
        for (number, process) in self.processes.iter().enumerate() {
            if !process.holds() {
                continue;
            }
            let token = self.token(number);
            let freed = self.freed.contains(&token);
            if !freed && self.value != Some(Value::Of(token)) {
                return Err(ForceWrong::OwnerWithoutKey);
            }
            let may_work = process.condition != Condition::Runs || !self.told.contains(&token);
            owners += usize::from(!(freed && may_work));
        }
        match owners {
            0 | 1 => Ok(()),
            _ => Err(ForceWrong::TwoOwners),
        }
    }
}
