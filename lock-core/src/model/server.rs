//! The server of the model: what the scripts do, line for line, with a clock that is moved by hand.

use super::fault::Fault;
use super::process::MOST;
use crate::lease::cohort::GAP;

/// What stands in a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Value<T> {
    Held(T),
    /// Nobody's for a while, after this token.
    Cooling(T),
    /// A client of another library.
    Stranger,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Entry<T> {
    pub(super) value: Value<T>,
    /// Milliseconds of the server's clock.
    pub(super) ends: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Waiting<T> {
    /// When it came, by the server's clock in microseconds; above all who came before.
    pub(super) score: u64,
    pub(super) token: T,
    pub(super) grant: u64,
}

/// One lock and its queue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key<T> {
    pub(super) entry: Option<Entry<T>>,
    pub(super) queue: Vec<Waiting<T>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Server<T> {
    /// The server's clock.
    pub(super) micros: u64,
    pub(super) mark: u64,
    pub(super) keys: Vec<Key<T>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Ask<T> {
    pub(super) token: T,
    pub(super) ttl: u64,
    pub(super) queue: bool,
    /// A token that may be stepped over, and its fencing token.
    pub(super) replaces: Option<(T, Option<u64>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Answer<T> {
    Granted(u64),
    /// The owner, for how many milliseconds, the server's time, and whether the waiter stands in the queue.
    Busy(Value<T>, u64, u64, bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Released {
    Yes,
    Absent,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Push<T> {
    /// The key is this token's; its fencing token; until then, in milliseconds.
    Given(T, u64, u64),
    /// The next turn is this token's, after so many milliseconds.
    Next(T, u64),
}

/// What a script does beside its reply, and what it is told of the world.
pub(super) struct Around<'a, T> {
    /// Whether a push for a token finds a receiver.
    pub(super) listens: &'a dyn Fn(T) -> bool,
    pub(super) pushes: Vec<Push<T>>,
    /// Whether the server refuses all writes at the moment.
    pub(super) refuses_writes: bool,
    pub(super) fault: Option<Fault>,
}

impl<T> Around<'_, T> {
    pub(super) fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }
}

impl<T: Copy + Eq> Server<T> {
    pub(super) fn new(micros: u64, keys: usize) -> Self {
        let key = Key {
            entry: None,
            queue: Vec::new(),
        };
        Self {
            micros,
            mark: 0,
            keys: vec![key; keys],
        }
    }

    pub(super) fn millis(&self) -> u64 {
        self.micros / 1_000
    }

    /// What stands in a key, and for how many milliseconds.
    pub(super) fn look(&self, key: usize) -> Option<(Value<T>, u64)> {
        let entry = self.keys[key].entry?;
        let left = entry.ends.checked_sub(self.millis())?;
        // To the millisecond: the earliest at which a server may let go.
        (left > 0).then_some((entry.value, left))
    }

    pub(super) fn forget_what_ran_out(&mut self) {
        for key in 0..self.keys.len() {
            if self.look(key).is_none() {
                self.keys[key].entry = None;
            }
        }
    }

    /// `acquire.lua`. A first attempt by native commands does the same, at the moment of its `SET`.
    pub(super) fn acquire(
        &mut self,
        key: usize,
        ask: Ask<T>,
        around: &mut Around<'_, T>,
    ) -> Answer<T> {
        let mut found = self.look(key);
        if let (Some((value, _)), Some((replaced, used))) = (found, ask.replaces)
            && (value == Value::Held(replaced) || around.has(Fault::AnyTokenIsSteppedOver))
        {
            self.leave_queue(key, ask.token);
            self.keys[key].entry = None;
            if !around.has(Fault::SteppedOverWithoutTheMark) {
                self.raise(used, around);
            }
            self.hand_over(key, self.mark + 1, around);
            found = self.look(key);
        }
        let ours = Value::Held(ask.token);
        if let Some((value, left)) = found
            && value != ours
        {
            let stands = ask.queue && self.enter_queue(key, ask, around);
            return Answer::Busy(value, left, self.micros, stands);
        }
        let mut fence = self.micros;
        if self.mark >= self.micros {
            fence = self.mark + 1;
            self.write_ahead(fence, around);
        }
        let mut ends = self.millis() + ask.ttl;
        if let Some((_, left)) = found {
            if !around.has(Fault::ALateAskCutsTheLease) {
                ends = ends.max(self.millis() + left);
            }
            if around.has(Fault::OwnTokenIsNotLengthened) {
                ends = self.millis() + left;
            }
        }
        self.keys[key].entry = Some(Entry { value: ours, ends });
        self.leave_queue(key, ask.token);
        Answer::Granted(fence)
    }

    /// `release.lua`; `leave`: to touch nothing but the queue.
    pub(super) fn release(
        &mut self,
        key: usize,
        token: T,
        fence: Option<u64>,
        leave: bool,
        around: &mut Around<'_, T>,
    ) -> Released {
        let value = self.look(key).map(|(value, _)| value);
        let mut released = match value {
            Some(Value::Held(owner)) if owner == token && !leave => Released::Yes,
            None => Released::Absent,
            Some(_) => Released::Other,
        };
        if around.has(Fault::AnyTokenIsReleased) && released == Released::Other && !leave {
            released = Released::Yes;
        }
        let used = self.mark.max(fence.unwrap_or(0));
        if released == Released::Yes {
            self.keys[key].entry = None;
            self.raise(fence, around);
        }
        // Whoever holds the key has left the queue.
        if released != Released::Yes {
            self.leave_queue(key, token);
        }
        if released != Released::Other {
            self.hand_over(key, used + 1, around);
        }
        released
    }

    /// `batch.lua`, of two releases of one key: it reads before it deletes.
    pub(super) fn release_two(
        &mut self,
        key: usize,
        releases: [(T, Option<u64>); 2],
        around: &mut Around<'_, T>,
    ) {
        let value = self.look(key).map(|(value, _)| value);
        if releases
            .iter()
            .any(|(token, _)| value == Some(Value::Held(*token)))
        {
            self.keys[key].entry = None;
            // The highest of all is sent along once.
            let used = releases.iter().filter_map(|(_, fence)| *fence).max();
            self.raise(used, around);
        }
        for (token, _) in releases {
            self.leave_queue(key, token);
            if value.is_none() || value == Some(Value::Held(token)) {
                self.hand_over(key, self.mark + 1, around);
            }
        }
    }

    /// `extend.lua`, for one key. `false`: not ours.
    pub(super) fn extend(
        &mut self,
        key: usize,
        token: T,
        ttl: u64,
        around: &Around<'_, T>,
    ) -> bool {
        let millis = self.millis();
        match self.look(key) {
            Some((Value::Held(owner), left)) if owner == token => {
                let mut lasts = ttl;
                if !around.has(Fault::ALateRenewalCutsTheLease) {
                    lasts = lasts.max(left);
                }
                let ends = millis + lasts;
                let value = Value::Held(token);
                self.keys[key].entry = Some(Entry { value, ends });
                true
            }
            _ => false,
        }
    }

    /// `cool.lua`.
    pub(super) fn cool(
        &mut self,
        key: usize,
        token: T,
        fence: Option<u64>,
        millis: u64,
        around: &mut Around<'_, T>,
    ) -> Released {
        match self.look(key).map(|(value, _)| value) {
            Some(Value::Cooling(owner)) if owner == token => return Released::Yes,
            None => return Released::Absent,
            Some(Value::Held(owner)) if owner == token => {}
            Some(_) => return Released::Other,
        }
        let ends = self.millis() + millis;
        let value = match around.has(Fault::CooledByItsToken) {
            true => Value::Held(token),
            false => Value::Cooling(token),
        };
        self.keys[key].entry = Some(Entry { value, ends });
        self.raise(fence, around);
        self.leave_queue(key, token);
        self.notify_next(key, millis, around);
        Released::Yes
    }

    /// `vacate.lua`.
    pub(super) fn vacate(
        &mut self,
        key: usize,
        token: T,
        fence: Option<u64>,
        around: &mut Around<'_, T>,
    ) -> Released {
        match self.look(key).map(|(value, _)| value) {
            None => return Released::Absent,
            Some(Value::Held(owner)) if owner == token => {}
            Some(_) if around.has(Fault::AnyTokenIsVacated) => {}
            Some(_) => return Released::Other,
        }
        if !around.has(Fault::VacatedWithoutTheMark) {
            self.raise(fence, around);
        }
        self.keys[key].entry = None;
        if around.has(Fault::AGapIsGivenAway) {
            self.hand_over(key, self.mark + 1, around);
        }
        if !around.has(Fault::NoWaiterIsToldOfAGap) {
            let gap = u64::try_from(GAP.as_millis()).unwrap_or(u64::MAX);
            self.notify_next(key, gap, around);
        }
        Released::Yes
    }

    /// The clock stands behind a fencing token: what its lease may use is remembered at once.
    pub(super) fn write_ahead(&mut self, fence: u64, around: &Around<'_, T>) {
        let passes = match around.has(Fault::PassesAreNotReserved) {
            true => 0,
            false => u64::from(MOST),
        };
        if !around.has(Fault::MarkNotWrittenAhead) {
            self.mark = self.mark.max(fence + passes);
        }
    }

    fn raise(&mut self, fence: Option<u64>, around: &Around<'_, T>) {
        if !around.has(Fault::MarkNotRaised) {
            self.mark = self.mark.max(fence.unwrap_or(0));
        }
    }
}
