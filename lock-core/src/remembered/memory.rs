//! What a function remembers, and for how long.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Result as Json;
use serde_json::error::Category;

use super::bytes::{Digest16, Draft, Stored, Unreadable};
use super::fingerprint::Fingerprint;
use super::result::{Remember, RememberErrors};
use crate::base::error::{Error, ErrorKind};
use crate::base::record::Record;
use crate::base::sync::lock;

/// The memory of one call.
#[doc(hidden)]
pub struct Memory<R> {
    /// The path of the function, for the log.
    pub(crate) function: &'static str,
    pub(crate) lifetime: Duration,
    fingerprint: Fingerprint,
    values: Codec<R>,
    errors: Option<Errors<R>>,
}

/// Writes and reads the `Ok` or the `Err` of a result.
///
/// These are pointers, because the bounds of the result are then needed in one place, where the compiler reports them.
struct Codec<R> {
    write: fn(&R, &mut Draft) -> Option<Json<()>>,
    read: fn(&[u8]) -> Json<R>,
}

struct Errors<R> {
    are_remembered: fn(&R) -> bool,
    codec: Codec<R>,
}

impl<R> Memory<R> {
    pub(super) fn new(function: &'static str, lifetime: Duration, fingerprint: Fingerprint) -> Self
    where
        R: Remember,
    {
        Self {
            function,
            lifetime,
            fingerprint,
            values: Codec {
                write: R::write_value,
                read: R::read_value,
            },
            errors: None,
        }
    }

    /// Remembers the errors that `are_remembered` accepts.
    pub(super) fn with_errors(mut self, are_remembered: fn(&R) -> bool) -> Self
    where
        R: RememberErrors,
    {
        self.errors = Some(Errors {
            are_remembered,
            codec: Codec {
                write: R::write_error,
                read: R::read_error,
            },
        });
        self
    }

    /// Checks a call before its body runs.
    ///
    /// # Errors
    ///
    /// `Invalid` if a value of the fingerprint could not be written.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.fingerprint.0.clone().map(drop)
    }

    /// Checks that a store keeps a record for the lifetime.
    ///
    /// # Errors
    ///
    /// `Invalid` if it is zero or longer than `max_ttl`.
    pub(crate) fn check_lifetime(&self, max_ttl: Duration) -> Result<(), Error> {
        Record::checked(Vec::new(), self.lifetime, max_ttl).map(drop)
    }

    fn digest(&self) -> Digest16 {
        self.fingerprint.0.clone().unwrap_or_default()
    }

    /// Returns the record of a result, which has no bytes if the value cannot be kept.
    ///
    /// `None`: the result is not remembered, and the next call runs.
    pub(crate) fn record_of(&self, result: &R) -> Option<Vec<u8>> {
        if let Some(record) = self.written(&self.values, false, result) {
            return Some(record);
        }
        let errors = self.errors.as_ref()?;
        if !(errors.are_remembered)(result) {
            return None;
        }
        self.written(&errors.codec, true, result)
    }

    /// Returns whether the result is an `Ok`.
    #[cfg(feature = "once")]
    pub(crate) fn is_value(&self, result: &R) -> bool {
        (self.values.write)(result, &mut Draft::new(self.digest(), false)).is_some()
    }

    fn written(&self, codec: &Codec<R>, is_error: bool, result: &R) -> Option<Vec<u8>> {
        let mut draft = Draft::new(self.digest(), is_error);
        Some(match (codec.write)(result, &mut draft)? {
            Ok(()) => {
                // Reading takes as long as writing.
                if cfg!(debug_assertions) && (codec.read)(draft.json()).is_err() {
                    warn_unreadable(self.function);
                }
                draft.finish()
            }
            // The work is done, so it must not run again.
            Err(error) => {
                warn_not_kept(self.function, &error);
                Vec::new()
            }
        })
    }

    /// Returns the result that an earlier call has left in the key, in place of a refusal.
    ///
    /// # Errors
    ///
    /// * `Reused`: the call had another fingerprint.
    /// * `Unreadable`: the record is no result of this function's type.
    /// * `Busy`: the work is done, and the record has no value.
    /// * The refusal itself, if there is no record.
    pub(crate) fn recall(&self, refusal: Error) -> Result<R, Error> {
        let Some(record) = refusal.record() else {
            return Err(refusal);
        };
        let result = self.read(record);
        result.map_err(|error| match refusal.key() {
            Some(key) => error.with_key(&Arc::from(key)),
            None => error,
        })
    }

    /// Reads the result in a record.
    ///
    /// # Errors
    ///
    /// As [`recall`](Self::recall).
    pub(crate) fn read(&self, record: &[u8]) -> Result<R, Error> {
        if record.is_empty() {
            return Err(Error::done());
        }
        let stored = Stored::decode(record).map_err(unreadable)?;
        if !is_same_call(stored.fingerprint, self.digest()) {
            return Err(Error::new(
                ErrorKind::Reused,
                "another call has used the key, with other arguments, and its result is kept; use a new key for \
                 another call",
            ));
        }
        let codec = match (&self.errors, stored.is_error) {
            (_, false) => &self.values,
            (Some(errors), true) => &errors.codec,
            (None, true) => {
                return Err(Error::new(
                    ErrorKind::Unreadable,
                    "the result that is kept is an error, and the function has no argument `errors` any more to read it",
                ));
            }
        };
        (codec.read)(stored.json).map_err(|_| {
            Error::new(
                ErrorKind::Unreadable,
                "the work is done, and its result does not fit the return type; if the type has changed, let it read old \
                 results, by `#[serde(default)]` or `#[serde(alias = \"…\")]`",
            )
        })
    }
}

/// A call without a fingerprint compares nothing, whether it is the earlier one or this one.
fn is_same_call(earlier: Digest16, this: Digest16) -> bool {
    let none = Digest16::default();
    earlier == this || earlier == none || this == none
}

fn unreadable(why: Unreadable) -> Error {
    let message = match why {
        Unreadable::Newer => {
            "a newer version of lock-core has kept the result of this key; update this program to read it"
        }
        Unreadable::Foreign => {
            "the record of this key is no result of an `#[idempotent]` function; give the function keys of its own"
        }
        Unreadable::Damaged => {
            "the work is done, and the bytes of its result are damaged; check its effect, and then forget the record"
        }
    };
    Error::new(ErrorKind::Unreadable, message)
}

/// Returns whether a function has reported none of its results before.
fn is_first_report(function: &'static str) -> bool {
    static REPORTED: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
    lock(&REPORTED).insert(function)
}

/// Reports a result that later calls cannot read, once for each function.
#[cold]
fn warn_unreadable(function: &'static str) {
    if is_first_report(function) {
        tracing::warn!(
            function,
            "the result of an `#[idempotent]` function cannot be read back, so later calls are refused with `Unreadable`; return \
             a value that serde reads as it has written it"
        );
    }
}

/// Reports a result that cannot be kept, once for each function.
#[cold]
fn warn_not_kept(function: &'static str, error: &serde_json::Error) {
    let reason = match error.classify() {
        Category::Io => "it is larger than the largest record",
        _ => "its `Serialize` fails",
    };
    if is_first_report(function) {
        tracing::warn!(
            function,
            reason,
            "the result of an `#[idempotent]` function cannot be kept, so later calls are refused with `Busy`; return \
             a value that fits, for example only its id"
        );
    }
}

impl<R> fmt::Debug for Memory<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory")
            .field("function", &self.function)
            .field("lifetime", &self.lifetime)
            .finish_non_exhaustive()
    }
}
