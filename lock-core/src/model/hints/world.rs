//! The state of a world, its steps, and its checks.

use std::time::Duration;

use super::fault::HintFault::{self, *};
use super::fault::HintWrong;
use crate::base::clock::Moment;
use crate::base::options::Watch;
use crate::lease::{Action, Extended, Lease, LeaseOptions, Loss, Phase};

const TICK: Duration = Duration::from_millis(125);
const TTL: u8 = 36;
/// The intervals between renewals, of which the second follows one without an answer.
const INTERVAL: u8 = TTL / 3;
const RETRY: u8 = TTL / 12;
/// The limit between two renewals by hints, and the time in which leases are renewed whose connection has ended.
const LIMIT: u8 = 2;
const SPREAD: u8 = 8;

fn moment(tick: u8) -> Moment {
    Moment(0) + TICK * u32::from(tick)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Key {
    Ours,
    Another,
    Absent,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The last tick.
    pub(super) ends: u8,
    pub(super) changes: u8,
    pub(super) copies: u8,
    /// How often the connection may end, and how often a renewal may be given up.
    pub(super) losses: u8,
    pub(super) timeouts: u8,
    /// The first renewal comes at once.
    pub(super) watched: bool,
    pub(super) fault: Option<HintFault>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct HintWorld {
    pub(super) now: u8,
    key: Key,
    expires: u8,
    /// The server's entry for the key and the keeper's connection.
    tracked: bool,
    /// A renewal has read the key, and nothing was pushed since.
    promised: bool,
    lease: Lease,
    /// When the renewal in flight was sent, and if a hint came since then.
    sent: Option<u8>,
    hinted: bool,
    /// The next renewal is due by a hint.
    by_hint: bool,
    renewed: bool,
    last_by_hint: Option<u8>,
    /// A change was pushed, and no renewal was sent since.
    unnoticed: bool,
    refused: bool,
    requests: Vec<u8>,
    answers: Vec<(u8, bool)>,
    pushes: u8,
    /// What is left: changes, copies, losses, timeouts.
    left: [u8; 4],
}

impl HintWorld {
    pub(super) fn new(limits: Limits) -> Self {
        let watch = match limits.watched {
            true => Watch::AtOnce,
            false => Watch::default(),
        };
        let ttl = TICK * u32::from(TTL);
        let mut lease = Lease::new(LeaseOptions::new(ttl, true, None).watch(watch));
        assert!(lease.grant(moment(0), moment(0)));
        Self {
            now: 0,
            key: Key::Ours,
            expires: TTL,
            // The process has renewed an earlier lease of this key, and its release is pushed.
            tracked: false,
            promised: false,
            pushes: 1,
            lease,
            sent: None,
            hinted: false,
            by_hint: false,
            renewed: false,
            last_by_hint: None,
            unnoticed: false,
            refused: false,
            requests: Vec::new(),
            answers: Vec::new(),
            left: [
                limits.changes,
                limits.copies,
                limits.losses,
                limits.timeouts,
            ],
        }
    }

    fn is_held(&self) -> bool {
        self.lease.phase() == Phase::Held
    }

    fn is_due(&self) -> bool {
        self.is_held() && self.lease.due() <= Some(moment(self.now))
    }

    /// All states that may follow.
    pub(super) fn next(&self, limits: Limits) -> Result<Vec<Self>, HintWrong> {
        let fault = limits.fault;
        let mut all = Vec::new();
        let mut step = |act: &dyn Fn(&mut Self) -> Result<(), HintWrong>| {
            let mut after = self.clone();
            act(&mut after)?;
            after.check()?;
            all.push(after);
            Ok(())
        };
        if self.is_due() {
            step(&|world| world.keeper_acts())?;
            return Ok(all);
        }
        if self.now < limits.ends && self.is_held() {
            step(&|world| world.time_passes())?;
        }
        if !self.requests.is_empty() {
            step(&|world| world.server_renews(fault))?;
        }
        for index in 0..self.answers.len() {
            step(&|world| world.hears_the_answer(index, fault))?;
        }
        if self.pushes > 0 {
            step(&|world| world.hears_a_push(fault))?;
        }
        let [changes, copies, losses, timeouts] = self.left;
        if changes > 0 {
            // Ours: another client writes the same value, or another end.
            for key in [Key::Ours, Key::Another, Key::Absent] {
                step(&|world| {
                    world.left[0] -= 1;
                    world.key_changes(key)
                })?;
            }
        }
        if copies > 0 && self.pushes > 0 {
            step(&|world| {
                world.left[1] -= 1;
                world.pushes += 1;
                Ok(())
            })?;
        }
        if losses > 0 {
            for spread in [0, SPREAD - 1] {
                step(&|world| {
                    world.left[2] -= 1;
                    world.connection_ends(spread, fault)
                })?;
            }
        }
        if timeouts > 0 && self.sent.is_some() {
            step(&|world| {
                world.left[3] -= 1;
                world.is_answered(Extended::Unknown, fault);
                Ok(())
            })?;
        }
        Ok(all)
    }

    fn keeper_acts(&mut self) -> Result<(), HintWrong> {
        let now = moment(self.now);
        if self.lease.poll(now) != Action::Renew {
            return Ok(());
        }
        if self.by_hint {
            let last = self.last_by_hint.replace(self.now);
            if last.is_some_and(|last| self.now < last + LIMIT) {
                return Err(HintWrong::TooManyRenewals);
            }
        }
        (self.by_hint, self.hinted, self.unnoticed) = (false, false, false);
        self.renewed = true;
        self.sent = Some(self.now);
        self.requests.push(self.now);
        Ok(())
    }

    fn time_passes(&mut self) -> Result<(), HintWrong> {
        self.now += 1;
        match self.key == Key::Ours && self.now >= self.expires {
            true => self.key_changes(Key::Absent),
            false => Ok(()),
        }
    }

    /// The key is changed, and not by a renewal.
    fn key_changes(&mut self, key: Key) -> Result<(), HintWrong> {
        // A key that is gone or another's does not become ours again.
        self.key = self.key.max(key);
        if self.promised && !self.tracked {
            return Err(HintWrong::ChangeNotPushed);
        }
        if std::mem::take(&mut self.tracked) {
            self.promised = false;
            self.pushes += 1;
            self.unnoticed = self.is_held();
        }
        Ok(())
    }

    /// `extend.lua` and `extend_watch.lua`.
    fn server_renews(&mut self, fault: Option<HintFault>) -> Result<(), HintWrong> {
        let sent = self.requests.remove(0);
        // `GET`.
        self.tracked = true;
        let yes = self.key == Key::Ours;
        if yes && self.expires < self.now + TTL {
            // `PEXPIREAT`.
            self.expires = self.now + TTL;
            self.tracked = false;
            if matches!(fault, Some(OwnRenewalsArePushed | Loop)) {
                self.pushes += 1;
            }
        }
        // `EXISTS`.
        if fault != Some(KeyNotReadAgain) {
            self.tracked = true;
        }
        self.promised = true;
        self.answers.push((sent, yes));
        self.answers.sort_unstable();
        Ok(())
    }

    fn hears_the_answer(
        &mut self,
        index: usize,
        fault: Option<HintFault>,
    ) -> Result<(), HintWrong> {
        let (sent, yes) = self.answers.remove(index);
        // The process has given up an earlier one.
        if self.sent == Some(sent) {
            self.refused |= !yes;
            let answer = match yes {
                true => Extended::Yes,
                false => Extended::NotOurs,
            };
            self.is_answered(answer, fault);
        }
        Ok(())
    }

    fn is_answered(&mut self, answer: Extended, fault: Option<HintFault>) {
        let Some(sent) = self.sent.take() else {
            return;
        };
        let now = moment(self.now);
        self.lease.renewed(moment(sent), answer, now);
        if answer == Extended::Yes && self.hinted {
            if matches!(fault, Some(NoLimit | Loop)) {
                self.lease.renew_now(now);
            }
            self.by_hint = self.lease.due() < Some(moment(sent + INTERVAL));
        }
        self.hinted = false;
    }

    fn hears_a_push(&mut self, fault: Option<HintFault>) -> Result<(), HintWrong> {
        self.pushes -= 1;
        if !self.is_held() {
            return Ok(());
        }
        let (now, before) = (moment(self.now), self.lease.due());
        let in_limit = self
            .last_by_hint
            .is_some_and(|last| self.now < last + LIMIT);
        match fault {
            Some(PushEndsTheLease) => {
                self.lease.lose_with(Loss::NotOurs);
                return Ok(());
            }
            Some(NoLimit | Loop) if self.renewed && self.sent.is_none() => {
                self.lease.renew_now(now);
            }
            Some(OfAnEarlierLease) => self.lease.renew_now(now),
            Some(ForgottenInTheLimit) if self.sent.is_none() && in_limit => {}
            Some(ForgottenInFlight) if self.sent.is_some() => {}
            _ => {
                self.lease.hint(now);
                self.hinted = self.sent.is_some();
            }
        }
        if self.lease.due() < before {
            self.by_hint = true;
            if !self.renewed {
                return Err(HintWrong::HintOfAnEarlierLease);
            }
        }
        Ok(())
    }

    /// The connection ends, with all that is on its way, and stands again.
    fn connection_ends(&mut self, spread: u8, fault: Option<HintFault>) -> Result<(), HintWrong> {
        self.requests.clear();
        self.answers.clear();
        self.pushes = 0;
        (self.tracked, self.promised, self.unnoticed) = (false, false, false);
        self.is_answered(Extended::Unknown, fault);
        let before = self.lease.due();
        if fault != Some(EndOfConnectionForgotten) {
            self.lease.watch_again(moment(self.now + spread));
        }
        self.by_hint &= self.lease.due() == before;
        let late = self.lease.due() > Some(moment(self.now + SPREAD));
        match self.is_held() && self.renewed && late {
            true => Err(HintWrong::NoRenewal),
            false => Ok(()),
        }
    }

    fn check(&self) -> Result<(), HintWrong> {
        if self.lease.phase() == Phase::Lost(Loss::NotOurs) && !self.refused {
            return Err(HintWrong::LostWithoutAnswer);
        }
        // The end of a connection may renew the lease before the time that a hint has taken. The next hint is due behind that.
        let soon = RETRY.max(2 * LIMIT);
        let is_late = self.lease.due() > Some(moment(self.now + soon));
        if self.unnoticed && self.is_held() && self.sent.is_none() && self.pushes == 0 && is_late {
            return Err(HintWrong::NoRenewal);
        }
        Ok(())
    }

    /// Checks that the world comes to rest once nothing changes the key any more.
    pub(super) fn comes_to_rest(&self, fault: Option<HintFault>) -> Result<(), HintWrong> {
        let mut world = self.clone();
        let from = world.now + 2 * INTERVAL;
        while world.is_held() && world.now < from + 2 * INTERVAL {
            if world.is_due() {
                if world.by_hint && world.now > from {
                    return Err(HintWrong::NeverRests);
                }
                // The limit is checked elsewhere.
                world.last_by_hint = None;
                world.keeper_acts()?;
            } else if !world.requests.is_empty() {
                world.server_renews(fault)?;
            } else if !world.answers.is_empty() {
                world.hears_the_answer(0, fault)?;
            } else if world.pushes > 0 {
                world.hears_a_push(fault)?;
            } else {
                world.time_passes()?;
            }
        }
        match world.is_held() && world.key != Key::Ours {
            true => Err(HintWrong::NotNoticed),
            false => Ok(()),
        }
    }
}
