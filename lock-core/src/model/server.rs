//! The server of the model: a transcription of the scripts, with a manual clock.

use super::fault::ModelFault;
use super::process::MOST;
use crate::lease::cohort::GAP;

/// The value of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Value<T> {
    Held(T),
    /// The key cools down after the lease of this token.
    Cooling(T),
    /// The owner of this token has left its record.
    Done(T),
    /// A client of another library.
    ForeignOwner,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct StoredValue<T> {
    pub(super) value: Value<T>,
    /// The end, in milliseconds of the server's clock.
    pub(super) ends: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct QueueEntry<T> {
    /// The position, which is the arrival in microseconds, and above all earlier positions.
    pub(super) score: u64,
    pub(super) token: T,
    pub(super) grant: u64,
}

/// One lock and its queue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key<T> {
    pub(super) entry: Option<StoredValue<T>>,
    pub(super) queue: Vec<QueueEntry<T>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ModelServer<T> {
    /// The server's clock in microseconds.
    pub(super) micros: u64,
    pub(super) high_water_mark: u64,
    pub(super) keys: Vec<Key<T>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Ask<T> {
    pub(super) token: T,
    pub(super) ttl: u64,
    pub(super) queue: bool,
    /// A token that may be superseded, and its fencing token.
    pub(super) replaces: Option<(T, Option<u64>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum AcquireReply<T> {
    Granted(u64),
    /// The value, its milliseconds, the server's time, and whether the waiter is queued.
    Busy(Value<T>, u64, u64, bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum ReleaseReply {
    Yes,
    Absent,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Push<T> {
    /// The token owns the key, with a fencing token, until an end in milliseconds.
    HandedOver(T, u64, u64),
    /// The token is next, after so many milliseconds.
    Next(T, u64),
}

/// The effects of a script besides its reply, and its view of the world.
pub(super) struct Around<'a, T> {
    /// Returns whether a push for a token has a receiver.
    pub(super) listens: &'a dyn Fn(T) -> bool,
    pub(super) pushes: Vec<Push<T>>,
    /// Whether the server refuses all writes now.
    pub(super) refuses_writes: bool,
    pub(super) fault: Option<ModelFault>,
}

impl<T> Around<'_, T> {
    pub(super) fn has(&self, fault: ModelFault) -> bool {
        self.fault == Some(fault)
    }
}

impl<T: Copy + Eq> ModelServer<T> {
    pub(super) fn new(micros: u64, keys: usize) -> Self {
        let key = Key {
            entry: None,
            queue: Vec::new(),
        };
        Self {
            micros,
            high_water_mark: 0,
            keys: vec![key; keys],
        }
    }

    pub(super) fn millis(&self) -> u64 {
        self.micros / 1_000
    }

    /// Returns the value of a key, and the milliseconds that it lasts.
    pub(super) fn current(&self, key: usize) -> Option<(Value<T>, u64)> {
        let entry = self.keys[key].entry?;
        let left = entry.ends.checked_sub(self.millis())?;
        // The key ends to the millisecond, which is the earliest moment at which a server may drop
        // it.
        (left > 0).then_some((entry.value, left))
    }

    pub(super) fn remove_expired(&mut self) {
        for key in 0..self.keys.len() {
            if self.current(key).is_none() {
                self.keys[key].entry = None;
            }
        }
    }

    /// Runs `acquire.lua`; native commands do the same at the moment of their `SET`.
    pub(super) fn acquire(
        &mut self,
        key: usize,
        ask: Ask<T>,
        around: &mut Around<'_, T>,
    ) -> AcquireReply<T> {
        let mut found = self.current(key);
        if let (Some((value, _)), Some((replaced, used))) = (found, ask.replaces)
            && (value == Value::Held(replaced) || around.has(ModelFault::SupersedeDoesNotCompare))
        {
            self.leave_queue(key, ask.token);
            self.keys[key].entry = None;
            if !around.has(ModelFault::SupersededWithoutHighWaterMark) {
                self.raise(used, around);
            }
            self.hand_over(key, self.high_water_mark + 1, around);
            found = self.current(key);
        }
        let ours = Value::Held(ask.token);
        if let Some((value, left)) = found
            && value != ours
        {
            let answered = matches!(value, Value::Done(_));
            let waits = ask.queue && (!answered || around.has(ModelFault::QueuedBehindRecord));
            let stands = waits && self.enter_queue(key, ask, around);
            return AcquireReply::Busy(value, left, self.micros, stands);
        }
        let mut fence = self.micros;
        if self.high_water_mark >= self.micros {
            fence = self.high_water_mark + 1;
            self.write_ahead(fence, around);
        }
        let mut ends = self.millis() + ask.ttl;
        if let Some((_, left)) = found {
            if !around.has(ModelFault::LateAcquireShortens) {
                ends = ends.max(self.millis() + left);
            }
            if around.has(ModelFault::RepeatedAcquireDoesNotExtend) {
                ends = self.millis() + left;
            }
        }
        self.keys[key].entry = Some(StoredValue { value: ours, ends });
        self.leave_queue(key, ask.token);
        AcquireReply::Granted(fence)
    }

    /// Runs `release.lua`; with `leave` it changes only the queue.
    pub(super) fn release(
        &mut self,
        key: usize,
        token: T,
        fence: Option<u64>,
        leave: bool,
        around: &mut Around<'_, T>,
    ) -> ReleaseReply {
        let value = self.current(key).map(|(value, _)| value);
        let mut released = match value {
            Some(Value::Held(owner)) if owner == token && !leave => ReleaseReply::Yes,
            None => ReleaseReply::Absent,
            Some(_) => ReleaseReply::Other,
        };
        if around.has(ModelFault::ReleaseDoesNotCompare)
            && released == ReleaseReply::Other
            && !leave
        {
            released = ReleaseReply::Yes;
        }
        let used = self.high_water_mark.max(fence.unwrap_or(0));
        if released == ReleaseReply::Yes {
            self.keys[key].entry = None;
            self.raise(fence, around);
        }
        // An owner has left the queue already.
        if released != ReleaseReply::Yes {
            self.leave_queue(key, token);
        }
        if released != ReleaseReply::Other {
            self.hand_over(key, used + 1, around);
        }
        released
    }

    /// Runs `batch.lua` for two releases of one key; it reads before it deletes.
    pub(super) fn release_two(
        &mut self,
        key: usize,
        releases: [(T, Option<u64>); 2],
        around: &mut Around<'_, T>,
    ) {
        let value = self.current(key).map(|(value, _)| value);
        if releases
            .iter()
            .any(|(token, _)| value == Some(Value::Held(*token)))
        {
            self.keys[key].entry = None;
            // The batch sends the highest fencing token once.
            let used = releases.iter().filter_map(|(_, fence)| *fence).max();
            self.raise(used, around);
        }
        for (token, _) in releases {
            self.leave_queue(key, token);
            if value.is_none() || value == Some(Value::Held(token)) {
                self.hand_over(key, self.high_water_mark + 1, around);
            }
        }
    }

    /// Runs `extend.lua` for one key; returns `false` for "not ours".
    pub(super) fn extend(
        &mut self,
        key: usize,
        token: T,
        ttl: u64,
        around: &Around<'_, T>,
    ) -> bool {
        let millis = self.millis();
        match self.current(key) {
            Some((Value::Held(owner), left)) if owner == token => {
                let mut lasts = ttl;
                if !around.has(ModelFault::LateRenewalShortens) {
                    lasts = lasts.max(left);
                }
                let ends = millis + lasts;
                let value = Value::Held(token);
                self.keys[key].entry = Some(StoredValue { value, ends });
                true
            }
            _ => false,
        }
    }

    /// Runs `cool.lua`.
    pub(super) fn cool(
        &mut self,
        key: usize,
        token: T,
        fence: Option<u64>,
        millis: u64,
        around: &mut Around<'_, T>,
    ) -> ReleaseReply {
        match self.current(key).map(|(value, _)| value) {
            Some(Value::Cooling(owner)) if owner == token => return ReleaseReply::Yes,
            None => return ReleaseReply::Absent,
            Some(Value::Held(owner)) if owner == token => {}
            Some(_) => return ReleaseReply::Other,
        }
        let ends = self.millis() + millis;
        let value = match around.has(ModelFault::CooldownKeepsToken) {
            true => Value::Held(token),
            false => Value::Cooling(token),
        };
        self.keys[key].entry = Some(StoredValue { value, ends });
        self.raise(fence, around);
        self.leave_queue(key, token);
        self.notify_next(key, millis, around);
        ReleaseReply::Yes
    }

    /// Runs `vacate.lua`.
    pub(super) fn vacate(
        &mut self,
        key: usize,
        token: T,
        fence: Option<u64>,
        around: &mut Around<'_, T>,
    ) -> ReleaseReply {
        match self.current(key).map(|(value, _)| value) {
            None => return ReleaseReply::Absent,
            Some(Value::Held(owner)) if owner == token => {}
            Some(_) if around.has(ModelFault::GapDoesNotCompare) => {}
            Some(_) => return ReleaseReply::Other,
        }
        if !around.has(ModelFault::GapWithoutHighWaterMark) {
            self.raise(fence, around);
        }
        self.keys[key].entry = None;
        if around.has(ModelFault::GapHandedOver) {
            self.hand_over(key, self.high_water_mark + 1, around);
        }
        if !around.has(ModelFault::GapNotAnnounced) {
            let gap = u64::try_from(GAP.as_millis()).unwrap_or(u64::MAX);
            self.notify_next(key, gap, around);
        }
        ReleaseReply::Yes
    }

    /// Records the tokens of a lease whose fencing token is above the clock.
    pub(super) fn write_ahead(&mut self, fence: u64, around: &Around<'_, T>) {
        let passes = match around.has(ModelFault::PassesNotReserved) {
            true => 0,
            false => u64::from(MOST),
        };
        if !around.has(ModelFault::FutureTokenNotRecorded) {
            self.high_water_mark = self.high_water_mark.max(fence + passes);
        }
    }

    pub(super) fn raise(&mut self, fence: Option<u64>, around: &Around<'_, T>) {
        if !around.has(ModelFault::HighWaterMarkNotRaised) {
            self.high_water_mark = self.high_water_mark.max(fence.unwrap_or(0));
        }
    }
}
