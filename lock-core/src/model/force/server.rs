//! The server of the model.

use super::parts::{
    ForceBounds, ForceFault, ForceWrong, GRACE, Message, PASSES, TTL, Token, Value,
};
use super::world::ForceWorld;

impl ForceWorld {
    /// `acquire.lua`, of a waiter.
    pub(super) fn server_acquires(&mut self, token: Token) -> Result<(), ForceWrong> {
        if self.value.is_some_and(|value| value != Value::Of(token)) {
            if !self.queue.contains(&token) {
                self.queue.push(token);
            }
            return Ok(());
        }
        let mut fence = self.clock;
        if self.mark >= self.clock {
            fence = self.mark + 1;
            self.mark = fence + PASSES;
        }
        self.server_grants(token, fence)
    }

    /// `extend.lua`.
    pub(super) fn server_extends(&mut self, token: Token) -> Result<(), ForceWrong> {
        let yes = self.value == Some(Value::Of(token));
        if yes {
            self.is_no_late_command(token)?;
            self.ends = self.ends.max(self.clock + TTL);
        }
        self.send(Message::Renewed { token, yes });
        Ok(())
    }

    /// `release.lua`.
    pub(super) fn server_releases(&mut self, token: Token, used: u8) -> Result<(), ForceWrong> {
        self.queue.retain(|waiter| *waiter != token);
        if self.value != Some(Value::Of(token)) {
            return Ok(());
        }
        self.is_no_late_command(token)?;
        self.mark = self.mark.max(used);
        self.server_hands_over(self.mark + 1)
    }

    /// `force.lua`.
    pub(super) fn server_forces(
        &mut self,
        seen: Token,
        fence: u8,
        bounds: ForceBounds,
    ) -> Result<(), ForceWrong> {
        let fault = bounds.fault;
        let Some(Value::Of(token)) = self.value else {
            return Ok(());
        };
        if token != seen {
            return match fault {
                Some(ForceFault::ByKey) => Err(ForceWrong::UnseenHolder),
                _ => Ok(()),
            };
        }
        let mut known = [self.mark, self.clock, fence];
        match fault {
            Some(ForceFault::MarkWithoutMark) => known[0] = 0,
            Some(ForceFault::MarkWithoutClock) => known[1] = 0,
            Some(ForceFault::MarkWithoutHolder) => known[2] = 0,
            _ => {}
        }
        let passes = match fault {
            Some(ForceFault::MarkWithoutPasses) => 0,
            _ => PASSES,
        };
        let mut least = known.into_iter().max().unwrap_or(0) + passes;
        match fault {
            Some(ForceFault::MarkNotRaised) => least = self.mark,
            _ => self.mark = least,
        }
        self.above = self.above.max(self.fence + PASSES);
        self.freed.push(token);
        self.freed.sort_unstable();
        if !self.processes[token.0].listens() {
            return self.server_hands_over(least + 1);
        }
        self.told.push(token);
        self.told.sort_unstable();
        if fault != Some(ForceFault::HolderNotTold) {
            self.send(Message::Told { token });
        }
        match fault {
            Some(ForceFault::NoGrace) => return self.server_hands_over(least + 1),
            Some(ForceFault::OwnTokenStays) => {}
            _ => self.value = Some(Value::Closed),
        }
        self.ends = self.clock + GRACE;
        Ok(())
    }

    /// `hand_over` of `common.lua`.
    fn server_hands_over(&mut self, least: u8) -> Result<(), ForceWrong> {
        self.value = None;
        while !self.queue.is_empty() {
            let token = self.queue.remove(0);
            if self.processes[token.0].listens() {
                if least > self.clock {
                    self.mark = least + PASSES;
                }
                return self.server_grants(token, least.max(self.clock));
            }
        }
        Ok(())
    }

    fn server_grants(&mut self, token: Token, fence: u8) -> Result<(), ForceWrong> {
        let again = self.value == Some(Value::Of(token));
        if fence <= self.above || !again && fence <= self.used {
            return Err(ForceWrong::TokenTooLow);
        }
        self.value = Some(Value::Of(token));
        self.fence = fence;
        self.ends = self.clock + TTL;
        self.queue.retain(|waiter| *waiter != token);
        self.freed.retain(|freed| *freed != token);
        self.told.retain(|told| *told != token);
        self.send(Message::Granted { token, fence });
        Ok(())
    }

    fn is_no_late_command(&self, token: Token) -> Result<(), ForceWrong> {
        match self.freed.contains(&token) {
            true => Err(ForceWrong::LateCommand),
            false => Ok(()),
        }
    }
}
