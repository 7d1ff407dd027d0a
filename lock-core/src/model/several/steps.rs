//! All steps that a world may take next.

use super::world::{GroupFault, Key, Limits, Message, Phase, Step, Token, World};

impl World {
    pub(super) fn steps(&self, limits: &Limits) -> Vec<(Step, World)> {
        let mut steps = Vec::new();
        for (index, message) in self.messages.iter().enumerate() {
            // Equal messages lead to equal worlds.
            if index == 0 || self.messages[index - 1] != *message {
                let mut after = self.clone();
                let message = after.messages.remove(index);
                after.arrives(message, limits);
                steps.push((Step::Arrives, after));
            }
        }
        for number in 0..self.processes.len() {
            self.own_steps(number, limits, &mut steps);
        }
        for key in 0..self.owners.len() {
            if self.owners[key].is_some_and(|token| self.is_dead(token)) {
                let mut after = self.clone();
                after.owners[key] = None;
                steps.push((Step::RunsOut, after));
            }
            for place in 0..self.queues[key].len() {
                if self.forgotten > 0 {
                    let mut after = self.clone();
                    after.queues[key].remove(place);
                    after.forgotten -= 1;
                    steps.push((Step::Fails, after));
                }
            }
        }
        for (_, after) in &mut steps {
            after.messages.sort_unstable();
        }
        steps
    }

    fn own_steps(&self, number: usize, limits: &Limits, steps: &mut Vec<(Step, World)>) {
        let process = &self.processes[number];
        let waits_for = match process.phase {
            Phase::WaitsForOne(key, token) | Phase::InOrder(key, token) => vec![(key, token)],
            Phase::InAllQueues => self.missing(number, limits),
            _ => Vec::new(),
        };
        match process.phase {
            Phase::Idle => {
                let mut after = self.clone();
                after.begins(number, limits);
                steps.push((Step::Begins, after));
            }
            Phase::Holds => {
                let mut after = self.clone();
                after.gives_back(number);
                after.processes[number].phase = Phase::Done;
                steps.push((Step::Ends, after));
            }
            _ => {}
        }
        if limits.gives_up && !waits_for.is_empty() {
            let mut after = self.clone();
            after.gives_back(number);
            let leave = waits_for
                .iter()
                .map(|(key, token)| Message::Release(*key, *token));
            after.messages.extend(leave);
            after.processes[number].phase = Phase::Done;
            steps.push((Step::Fails, after));
        }
        if self.crashes > 0 && !matches!(process.phase, Phase::Idle | Phase::Done | Phase::Dead) {
            let mut after = self.clone();
            after.crashes -= 1;
            after.processes[number].phase = Phase::Dead;
            after.processes[number].held.clear();
            after.messages.retain(|message| match message {
                Message::AllGranted(to, _) | Message::AllRefused(to, _) => *to != number,
                Message::Given(_, token) => token.0 != number,
                _ => true,
            });
            steps.push((Step::Fails, after));
        }
        // A waiter asks again if the key is free or its place is gone.
        for (key, token) in waits_for {
            let under_way = self.messages.iter().any(|message| match message {
                Message::Ask(_, of, by) => (*of, *by) == (key, token),
                Message::Given(of, by) => (*of, *by) == (key, token),
                _ => false,
            });
            let forgotten = self.owners[key].is_none() || !self.queues[key].contains(&token);
            if !under_way && forgotten {
                let mut after = self.clone();
                after.messages.push(Message::Ask(number, key, token));
                steps.push((Step::Timer, after));
            }
        }
    }

    fn is_dead(&self, token: Token) -> bool {
        self.processes[token.0].phase == Phase::Dead
    }

    fn missing(&self, number: usize, limits: &Limits) -> Vec<(Key, Token)> {
        let held = &self.processes[number].held;
        let keys = limits.order(number).into_iter();
        let missing = keys.filter(|key| held.iter().all(|(other, _)| other != key));
        missing.map(|key| (key, (number, 0))).collect()
    }

    fn fresh(&mut self, number: usize, limits: &Limits) -> Token {
        let lease = self.processes[number].leases;
        if limits.fault == Some(GroupFault::OneToken) {
            return (number, 0);
        }
        self.processes[number].leases += 1;
        (number, lease)
    }

    fn begins(&mut self, number: usize, limits: &Limits) {
        match limits.fault {
            Some(GroupFault::GivenOrder) => self.takes_next(number, limits),
            Some(GroupFault::QueuedInAll) => {
                self.processes[number].phase = Phase::InAllQueues;
                let all = limits.order(number).into_iter();
                let ask = all.map(|key| Message::Ask(number, key, (number, 0)));
                self.messages.extend(ask);
            }
            _ => {
                let token = self.fresh(number, limits);
                let leases = limits.order(number).into_iter().map(|key| (key, token));
                self.messages.push(Message::All(number, leases.collect()));
                self.processes[number].phase = Phase::AsksForAll;
            }
        }
    }

    /// Asks for the next key in order, or holds all.
    fn takes_next(&mut self, number: usize, limits: &Limits) {
        let held = &self.processes[number].held;
        let mut order = limits.order(number).into_iter();
        let next = order.find(|key| held.iter().all(|(other, _)| other != key));
        self.processes[number].phase = match next {
            None => Phase::Holds,
            Some(key) => {
                let token = self.fresh(number, limits);
                self.messages.push(Message::Ask(number, key, token));
                Phase::InOrder(key, token)
            }
        };
    }

    fn keeps(&mut self, number: usize, leases: &[(Key, Token)]) {
        let held = &mut self.processes[number].held;
        held.extend_from_slice(leases);
        held.sort_unstable();
        held.dedup();
    }

    fn gives_back(&mut self, number: usize) {
        for (key, token) in std::mem::take(&mut self.processes[number].held) {
            self.messages.push(Message::Release(key, token));
        }
    }

    fn arrives(&mut self, message: Message, limits: &Limits) {
        match message {
            Message::All(from, leases) => {
                let is_taken = |(key, token): &&(Key, Token)| {
                    self.owners[*key].is_some_and(|owner| owner != *token)
                };
                let answer = match leases.iter().find(is_taken) {
                    Some((key, _)) => Message::AllRefused(from, *key),
                    None => {
                        for (key, token) in &leases {
                            self.owners[*key] = Some(*token);
                        }
                        Message::AllGranted(from, leases)
                    }
                };
                self.messages.push(answer);
            }
            Message::Ask(_, key, token) => {
                let queue = &mut self.queues[key];
                match self.owners[key] {
                    Some(owner) if owner != token => {
                        if !queue.contains(&token) {
                            queue.push(token);
                        }
                    }
                    _ => {
                        queue.retain(|other| *other != token);
                        self.owners[key] = Some(token);
                        self.messages.push(Message::Given(key, token));
                    }
                }
            }
            Message::Release(key, token) => {
                self.queues[key].retain(|other| *other != token);
                if self.owners[key].is_none_or(|owner| owner == token) {
                    self.hand_over(key);
                }
            }
            Message::AllGranted(to, leases) => self.all_granted(to, &leases),
            Message::AllRefused(to, key) => self.all_refused(to, key, limits),
            Message::Given(key, token) => self.given(key, token, limits),
        }
    }

    /// Gives a free key to the first waiter that still listens.
    fn hand_over(&mut self, key: Key) {
        self.owners[key] = None;
        while !self.queues[key].is_empty() {
            let token = self.queues[key].remove(0);
            if !self.is_dead(token) {
                self.owners[key] = Some(token);
                self.messages.push(Message::Given(key, token));
                return;
            }
        }
    }

    fn all_granted(&mut self, to: usize, leases: &[(Key, Token)]) {
        match self.processes[to].phase {
            Phase::AsksForAll | Phase::AsksForTheRest => {
                self.keeps(to, leases);
                self.processes[to].phase = Phase::Holds;
            }
            Phase::Dead => {}
            _ => {
                let undo = leases
                    .iter()
                    .map(|(key, token)| Message::Release(*key, *token));
                self.messages.extend(undo);
            }
        }
    }

    fn all_refused(&mut self, to: usize, key: Key, limits: &Limits) {
        match self.processes[to].phase {
            Phase::AsksForAll => {
                let token = self.fresh(to, limits);
                self.messages.push(Message::Ask(to, key, token));
                self.processes[to].phase = Phase::WaitsForOne(key, token);
            }
            Phase::AsksForTheRest => {
                if limits.fault != Some(GroupFault::KeepsTheOne) {
                    self.gives_back(to);
                }
                self.takes_next(to, limits);
            }
            _ => {}
        }
    }

    fn given(&mut self, key: Key, token: Token, limits: &Limits) {
        let to = token.0;
        match self.processes[to].phase {
            Phase::Dead => {}
            Phase::WaitsForOne(of, by) if (of, by) == (key, token) => {
                self.keeps(to, &[(key, token)]);
                let fresh = self.fresh(to, limits);
                let keys = limits.order(to).into_iter().filter(|other| *other != key);
                let rest = keys.map(|key| (key, fresh)).collect();
                self.messages.push(Message::All(to, rest));
                self.processes[to].phase = Phase::AsksForTheRest;
            }
            Phase::InOrder(of, by) if (of, by) == (key, token) => {
                self.keeps(to, &[(key, token)]);
                self.takes_next(to, limits);
            }
            Phase::InAllQueues => {
                self.keeps(to, &[(key, token)]);
                if self.missing(to, limits).is_empty() {
                    self.processes[to].phase = Phase::Holds;
                }
            }
            _ if self.processes[to].held.contains(&(key, token)) => {}
            _ => self.messages.push(Message::Release(key, token)),
        }
    }
}
