//! Answers of a store that a waiter acts on.

use std::sync::Arc;
use std::time::Duration;

use crate::base::clock::ServerTime;
use crate::base::error::Error;
use crate::base::fence::FencingToken;
use crate::base::record::StoredRecord;
use crate::base::share::ShareLimit;

/// The store's answer that another owner holds the key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refusal {
    /// The owner's work is done, and a cooldown runs.
    pub(crate) cooling: bool,
    /// The record that the owner has left. The key then counts as cooling down.
    pub(crate) record: Option<Arc<StoredRecord>>,
    /// The time for which the key stays taken if its owner does not extend it. `None` means that
    /// the key never expires.
    pub(crate) remaining: Option<Duration>,
    /// Shares have the key.
    pub(crate) shared: bool,
    /// The refused waiter asked for a share, and as many shares as this limit are inside.
    pub(crate) full: Option<ShareLimit>,
    /// The refused waiter stands in the store's queue.
    pub(crate) queued: bool,
    /// The owner's release will be pushed to the refused waiter, which need not poll.
    ///
    /// The waiter then stands in the queue and receives pushes, and the owner is a client that
    /// notifies the queue.
    pub(crate) pushed: bool,
    /// The server's clock, for a waiter to which the server may hand the key.
    pub(crate) server_time: Option<ServerTime>,
}

impl Refusal {
    /// The answer that a lease of this process amounts to.
    pub(crate) fn held(remaining: Duration) -> Self {
        Self {
            remaining: Some(remaining),
            pushed: true,
            ..Self::default()
        }
    }

    /// What it tells a caller behind the refused waiter. A key that is full for the one may have room for a higher limit.
    pub(crate) fn told_to(mut self, share: Option<ShareLimit>) -> Self {
        self.full = self
            .full
            .filter(|limit| share.is_some_and(|own| own <= *limit));
        self
    }

    pub(crate) fn to_error(&self) -> Error {
        if self.full.is_some() {
            return Error::full(self.remaining);
        }
        let busy = Error::busy(self.cooling, self.remaining);
        match &self.record {
            Some(record) => busy.with_record(record),
            None => busy,
        }
    }
}

/// A key that the store granted to a waiter without a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) fence: FencingToken,
    /// The time of the grant by the server's clock.
    pub(crate) given: ServerTime,
    /// The end of the grant by the server's clock.
    pub(crate) ends: ServerTime,
    /// The waiter asks before it uses the key, because its question lets in the shares behind it.
    pub(crate) asks: bool,
}
