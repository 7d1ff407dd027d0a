//! The keys of an embedded store: documents of the [`protocol`](crate::protocol). Pure: the time is an argument.

use std::collections::HashMap;
use std::sync::Arc;

use super::records::Records;
use super::vote::Registers;
use crate::base::clock::ServerTime;
use crate::base::fence::FencingToken;
use crate::base::token::Address;
use crate::protocol::{Around, Document, Push};
use crate::store::steps::event;
use crate::store::{Event, Events, Failure};

/// Events to report once the lock is released.
pub(super) type Messages = Vec<(Events, Event)>;

#[derive(Default)]
pub(super) struct MemoryState {
    pub(super) keys: HashMap<Arc<str>, Document>,
    pub(super) records: Records,
    /// The highest fencing token that was used, as far as it was noted.
    pub(super) mark: u64,
    /// Used where the store is a node of a quorum.
    pub(super) registers: Registers,
    /// The managers that use this store.
    pub(super) listeners: HashMap<Address, Events>,
    /// The events of the operation that has just run.
    pub(super) messages: Messages,
    /// The number of keys at which the next sweep removes those that are over.
    sweep_at: usize,
    /// Set by a test: every operation fails with it.
    pub(super) fault: Option<Failure>,
}

impl MemoryState {
    /// Runs a part of the protocol on a key. Notes its messages, and forgets a key that is idle then.
    pub(super) fn on<R>(
        &mut self,
        key: &Arc<str>,
        now: ServerTime,
        run: impl FnOnce(&mut Document, &mut Around<'_>) -> R,
    ) -> R {
        let listeners = &self.listeners;
        let listens = |address| listeners.contains_key(&address);
        let mut around = Around::new(now, self.mark, &listens);
        let document = self.keys.entry(Arc::clone(key)).or_default();
        let had_record = document.has_record();
        let reply = run(document, &mut around);
        match document.record() {
            Some(record) if !had_record => self.records.add(key, record.bytes.len()),
            None if had_record => self.records.remove(key),
            _ => {}
        }
        if document.is_idle() {
            self.keys.remove(key);
        }
        let Around { mark, pushes, .. } = around;
        self.mark = mark;
        self.send(key, now, pushes);
        self.sweep(now);
        reply
    }

    /// Notes the events for pushes.
    pub(super) fn send(&mut self, key: &Arc<str>, now: ServerTime, pushes: Vec<Push>) {
        for push in pushes {
            if let Some(events) = self.listeners.get(&push.to)
                && let Some(event) = event(key, &push, now)
            {
                self.messages.push((events.clone(), event));
            }
        }
    }

    /// Returns the state of a key, without what has ended.
    pub(super) fn look(&mut self, key: &Arc<str>, now: ServerTime) -> Option<&Document> {
        self.on(key, now, |document, around| {
            document.settle(around.now_ms());
            document.settle_shares(around.now_ms());
        });
        self.keys.get(key)
    }

    /// Refuses to count fencing tokens from a number that no clock shows. So a clock that is corrected later leaves no mark
    /// behind that is too high.
    pub(super) fn countable(&self, now: ServerTime) -> Result<(), Failure> {
        match self.mark.max(now.0) < FencingToken::HIGH_WATER_LIMIT {
            true => Ok(()),
            false => Err(Failure::refused(
                "the clock is too far in the future for a fencing token",
            )),
        }
    }

    /// Forgets keys that are over whenever the number of keys has doubled. So dead owners leave nothing behind, and
    /// each key is looked at a bounded number of times.
    fn sweep(&mut self, now: ServerTime) {
        if self.keys.len() < self.sweep_at {
            return;
        }
        let Self { keys, records, .. } = self;
        keys.retain(|key, document| {
            let had_record = document.has_record();
            document.settle(now.0 / 1000);
            if had_record && !document.has_record() {
                records.remove(key);
            }
            !document.is_idle()
        });
        self.sweep_at = (self.keys.len() * 2).max(64);
    }
}
