//! Cells in memory, with a clock that a test moves.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{Cells, Read, Stored, Swap, Swapped, Written, page};
use crate::audit::Finding;
use crate::base::clock::ServerTime;
use crate::base::sync::lock;
use crate::base::token::Address;
use crate::store::{BoxFuture, Events, Failure, Pattern, Scanned, Told};

/// The cells that several stores share.
#[derive(Clone, Debug, Default)]
pub(super) struct TestCells {
    pub(super) shared: Arc<Mutex<Shared>>,
    /// By so many microseconds the estimate of the clock is behind.
    pub(super) behind: i64,
}

#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) rows: BTreeMap<Arc<str>, Row>,
    pub(super) micros: u64,
    revision: u64,
    /// Nobody listens there.
    pub(super) deaf: Vec<Address>,
    /// When a process has heard of that, those listen again, and have asked for the key by a write.
    pub(super) come_back: bool,
    /// The messages that were sent: receiver and kind.
    pub(super) told: Vec<(Address, &'static str)>,
    /// A caller has waited until its messages were sent.
    pub(super) told_of: bool,
    /// Swaps and readings.
    pub(super) trips: usize,
}

#[derive(Debug)]
pub(super) struct Row {
    pub(super) stored: Stored,
    pub(super) ends: u64,
}

impl Shared {
    fn stored(&self, key: &str) -> Option<Stored> {
        self.rows.get(key).map(|row| row.stored.clone())
    }

    fn fits(&self, swap: &Swap) -> bool {
        match self.rows.get(&swap.key) {
            None => swap.seen.revision == 0,
            Some(row) if swap.seen.revision == 0 => row.ends <= self.micros,
            Some(row) => {
                row.stored.written == swap.seen && (swap.now.0..swap.until.0).contains(&self.micros)
            }
        }
    }

    fn write(&mut self, swap: &Swap, revision: u64) -> Written {
        let written = Written {
            revision,
            at: ServerTime(self.micros),
        };
        let counted = match swap.lasts {
            0 => 0,
            lasts => self.micros + lasts,
        };
        let row = Row {
            stored: Stored {
                written,
                bytes: swap.bytes.to_vec(),
            },
            ends: swap.ends.max(counted),
        };
        self.rows.insert(Arc::clone(&swap.key), row);
        for push in &swap.pushes {
            let kind = match push.news {
                crate::protocol::News::Given { .. } => "given",
                crate::protocol::News::Next { .. } => "next",
                crate::protocol::News::Forced => "forced",
            };
            self.told.push((push.to, kind));
        }
        written
    }

    fn next(&mut self) -> u64 {
        self.revision += 1;
        self.revision
    }
}

impl Cells for TestCells {
    fn background(&self, _: Events) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }

    fn ready(&self) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(ready(Ok(())))
    }

    fn ping(&self) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(ready(Ok(())))
    }

    fn audit(&self) -> BoxFuture<'_, Result<Vec<Finding>, Failure>> {
        Box::pin(ready(Ok(Vec::new())))
    }

    fn swap(&self, swaps: Vec<Swap>) -> BoxFuture<'_, Result<Swapped, Failure>> {
        let mut shared = lock(&self.shared);
        shared.trips += 1;
        let receivers = swaps.iter().flat_map(|swap| &swap.pushes);
        let receivers = receivers.map(|push| push.to);
        let deaf: Vec<_> = receivers.filter(|to| shared.deaf.contains(to)).collect();
        let swapped = if !deaf.is_empty() {
            if shared.come_back {
                shared.deaf.clear();
                let revision = shared.next();
                let row = shared.rows.get_mut(&swaps[0].key).expect("a row");
                row.stored.written.revision = revision;
            }
            Swapped::Deaf(deaf)
        } else if swaps.iter().all(|swap| shared.fits(swap)) {
            let revision = shared.next();
            let written = swaps.iter().map(|swap| shared.write(swap, revision));
            Swapped::Done(written.last().expect("one key at least"))
        } else {
            Swapped::Changed(shared.stored(&swaps[0].key), ServerTime(shared.micros))
        };
        Box::pin(ready(Ok(swapped)))
    }

    fn told(&self) -> BoxFuture<'_, ()> {
        lock(&self.shared).told_of = true;
        Box::pin(ready(()))
    }

    fn read(&self, keys: &[Arc<str>]) -> BoxFuture<'_, Result<Read, Failure>> {
        let mut shared = lock(&self.shared);
        shared.trips += 1;
        let stored = keys.iter().map(|key| shared.stored(key)).collect();
        let now = ServerTime(shared.micros);
        Box::pin(ready(Ok(Read { stored, now })))
    }

    fn list(
        &self,
        pattern: Pattern,
        after: Option<Arc<str>>,
    ) -> BoxFuture<'_, Result<Scanned, Failure>> {
        let shared = lock(&self.shared);
        let behind = shared.rows.keys().filter(|key| Some(*key) > after.as_ref());
        // One key a page.
        let keys: Vec<_> = behind.take(1).cloned().collect();
        let last = keys.last().cloned();
        let keys = keys.into_iter().filter(|key| pattern.matches(key));
        Box::pin(ready(Ok(page(keys.collect(), last))))
    }

    fn send(&self, to: Address, _: String) -> BoxFuture<'_, Result<Told, Failure>> {
        let told = match lock(&self.shared).deaf.contains(&to) {
            true => Told::NoReceiver,
            false => Told::Maybe,
        };
        Box::pin(ready(Ok(told)))
    }

    fn clock(&self) -> ServerTime {
        let micros = lock(&self.shared).micros;
        ServerTime(micros.saturating_add_signed(-self.behind))
    }

    fn listens(&self) -> bool {
        true
    }

    fn late_duplicate(&self) -> Duration {
        Duration::ZERO
    }

    fn check_sql(&self) -> Option<&'static str> {
        None
    }
}
