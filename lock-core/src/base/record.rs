//! The record that an owner leaves in its key when it ends.
//!
//! The record takes the place of the token in the key, in the one step that releases the lock, and only where the
//! token still stands. So a record is never beside a running owner, and a second owner never runs beside a record.
//! A lease with a record is not passed on in its process, and no acquire steps over it.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::base::error::Error;
use crate::base::options::cooldown_millis;

/// The largest record in bytes: 1 MiB.
///
/// [`LockHandle::remember`](crate::LockHandle::remember) refuses a larger one.
pub const MAX_RECORD: usize = 1 << 20;

/// Says whether the store has a record, as [`LockHandle::record_outcome`](crate::LockHandle::record_outcome) reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RecordOutcome {
    /// The store has the record.
    Stored,
    /// The store has the record, and too few replicas or nodes have acknowledged it in time.
    Unacknowledged,
    /// The lock had gone to another owner, or had ended. The record was not stored; of several servers, a minority may
    /// have it.
    Lost,
    /// The store refused the record, and has no memory for it in most cases. The key stays taken for one more ttl.
    Failed,
    /// The store has not answered yet.
    ///
    /// The background repeats the request until the lease would have ended.
    Background,
}

/// A record, and the store's answer to it.
pub(crate) struct Record {
    pub(crate) bytes: Vec<u8>,
    pub(crate) lifetime: Duration,
    outcome: OnceLock<RecordOutcome>,
}

impl Record {
    /// # Errors
    ///
    /// For a record that is too large, or a lifetime that no store of the manager can keep.
    pub(crate) fn checked(
        bytes: Vec<u8>,
        lifetime: Duration,
        max_ttl: Duration,
    ) -> Result<Arc<Self>, Error> {
        if bytes.len() > MAX_RECORD {
            return Err(Error::invalid(format!(
                "a record of {} bytes is too large; the largest has {MAX_RECORD}",
                bytes.len()
            )));
        }
        if lifetime.is_zero() {
            return Err(Error::invalid("a record needs a lifetime above zero"));
        }
        if lifetime > max_ttl {
            return Err(Error::invalid(format!(
                "a record's lifetime of {lifetime:?} is longer than the manager's max_ttl of {max_ttl:?}"
            )));
        }
        Ok(Arc::new(Self {
            bytes,
            lifetime: Duration::from_millis(cooldown_millis(lifetime).into()),
            outcome: OnceLock::new(),
        }))
    }

    /// Notes the store's answer. The first one counts.
    pub(crate) fn note(&self, outcome: RecordOutcome) {
        let _ = self.outcome.set(outcome);
    }

    pub(crate) fn outcome(&self) -> RecordOutcome {
        self.outcome
            .get()
            .copied()
            .unwrap_or(RecordOutcome::Background)
    }
}

/// A record as a store has it.
#[derive(Default, PartialEq)]
#[cfg_attr(test, derive(Hash))]
pub(crate) struct StoredRecord {
    /// The fencing token of the owner that left it, 0 if it had none.
    pub(crate) fence: u64,
    pub(crate) bytes: Box<[u8]>,
}

impl fmt::Debug for StoredRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredRecord")
            .field("fence", &self.fence)
            .field("bytes", &self.bytes.len())
            .finish()
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record")
            .field("bytes", &self.bytes.len())
            .field("lifetime", &self.lifetime)
            .finish_non_exhaustive()
    }
}
