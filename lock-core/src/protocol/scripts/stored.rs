//! A document, as a Redis server holds it.

use super::Server;
use crate::protocol::Waited;
use crate::protocol::document::{Closed, Document, Phase};
use crate::protocol::shares::Place;

/// The value of a lock that several shares have.
const SEVERAL: &str = "shared/lockkit";

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

    /// The shares of a lock that has several: their tokens with their ends in milliseconds, and the end of them all.
    #[must_use]
    pub fn shares(&self, lock: &str) -> Option<(Vec<(String, f64)>, u64)> {
        let Phase::Shared(shares) = &self.keys.get(lock)?.phase else {
            return None;
        };
        let members = shares.inside.iter().map(|place| {
            let Place { token, ends, .. } = place;
            let name = match place.is_freed {
                true => format!("cooling/{token}/{ends}"),
                false => token.to_string(),
            };
            (name, *ends as f64)
        });
        let mut members: Vec<_> = members.collect();
        members.sort_by(|(one, end), (other, ends)| end.total_cmp(ends).then(one.cmp(other)));
        Some((members, shares.ends + 1_000))
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
            Phase::Shared(_) => SEVERAL.to_owned(),
            Phase::Closed(Closed { of, until, record }) => match record {
                None => format!("cooling/{of}/{until}"),
                Some(record) => {
                    let fence = Some(record.fence).filter(|fence| *fence > 0);
                    let fence = fence.map_or_else(String::new, |fence| fence.to_string());
                    let bytes = String::from_utf8_lossy(&record.bytes);
                    format!("done/{of}/{until}/{fence}/{bytes}")
                }
            },
        })
    }
}

fn score(waited: Waited) -> f64 {
    match waited {
        Waited::Since(arrival) => arrival as f64,
        Waited::Asked(at) => -2.0 * at as f64,
        Waited::Answered(at) => -2.0 * at as f64 - 1.0,
    }
}
