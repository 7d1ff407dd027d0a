//! A document, as a Redis server holds it.

use super::Server;
use crate::protocol::Waited;
use crate::protocol::document::{Closed, Document, Phase};

impl Server {
    /// The value of a lock, and its end in milliseconds.
    #[must_use]
    pub fn value(&self, lock: &str) -> Option<(String, u64)> {
        let document = self.keys.get(lock)?;
        document.value().zip(document.ends())
    }

    /// The queue of a lock: its entries with their scores, and its end in milliseconds.
    #[must_use]
    pub fn queue(&self, lock: &str) -> Option<(Vec<(String, f64)>, u64)> {
        let document = self.keys.get(lock)?;
        let entries = document.queue.iter().map(|waiter| {
            let entry = format!("{} {}", waiter.token, waiter.grant);
            (entry, score(waiter.waited))
        });
        let entries: Vec<_> = entries.collect();
        (!entries.is_empty()).then_some((entries, document.queue_ends))
    }

    /// The high-water mark.
    #[must_use]
    pub fn mark(&self) -> Option<u64> {
        (self.mark > 0).then_some(self.mark)
    }
}

impl Document {
    /// The value of the lock. `None`: it is free.
    pub(super) fn value(&self) -> Option<String> {
        Some(match &self.phase {
            Phase::Free => return None,
            Phase::Held(hold) => hold.token.to_string(),
            Phase::Closed(Closed { of, until, record }) => match record {
                None => format!("cooling/{of}/{until}"),
                Some((fence, bytes)) => {
                    let fence = fence.map_or_else(String::new, |fence| fence.to_string());
                    let record = String::from_utf8_lossy(bytes);
                    format!("done/{of}/{until}/{fence}/{record}")
                }
            },
        })
    }
}

fn score(waited: Waited) -> f64 {
    let Waited::Since(arrival) = waited;
    arrival as f64
}
