//! The error type of the kit.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::record::StoredRecord;

/// Classifies an [`Error`] by the action that the caller can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Another owner holds the key, or held it until the wait ran out. This is a *fact*, from a
    /// lock that this process holds or from an answer of the server. Try again later.
    Busy,
    /// The store gave no usable answer in time.
    ///
    /// The state of the key is unknown. A caller that [waits](crate::LockRequest::wait) gets this
    /// error after a second of failures, even if its wait is longer. Try again later; never treat
    /// it as "busy".
    Unavailable,
    /// The lock was held and is no longer held. Either another client took or deleted the key, or
    /// the lease was not renewed in time, or `max_hold` was reached. The work may be half done, so
    /// check its state before you repeat it.
    Lost,
    /// The server will never accept this request with its present configuration.
    ///
    /// Causes are permissions, the password, or a key of another type. Change the configuration.
    Misconfigured,
    /// The call is wrong. Change the code.
    ///
    /// Either a ttl, key or URL is out of bounds, or no manager is installed.
    Invalid,
    /// Another call has used the key before, with other arguments. Use a new key for another call.
    ///
    /// Only functions with `#[idempotent]` return this kind.
    Reused,
    /// The work was done before, and its result is kept but cannot be read. It is not done again.
    ///
    /// Only functions with `#[idempotent]` return this kind. The message says why, and what to do.
    Unreadable,
}

/// Says why a lock could not be taken, kept or released.
///
/// [`kind`](Error::kind) says how the caller can react. Neither `Display` nor `Debug` shows the
/// key, a lease token or a URL's user info, so an error can be logged as it is. [`key`](Error::key)
/// returns the key to code that needs it.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
/// use lock_core::LockManager;
///
/// let locks = LockManager::in_memory();
/// let first = locks.lock("order:42").acquire().await?;
/// let second = locks.lock("order:42").acquire().await.unwrap_err();
/// assert!(second.is_busy()); // or `match second.kind()`
/// assert_eq!(second.http_status(), 409);
/// assert!(second.retry_after().is_some());
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    message: Cow<'static, str>,
    key: Option<Arc<str>>,
    retry_after: Option<Duration>,
    detail: Detail,
    record: Option<Arc<StoredRecord>>,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// Tells errors of one kind apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    None,
    CoolingDown,
    Done,
    Full,
    MaxHold,
    OutcomeUnknown,
}

impl Error {
    /// Returns the kind, which says how the caller can react.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the key of the call, if it had one.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.0.key.as_deref()
    }

    /// Returns after what time to try again.
    ///
    /// [`Busy`](ErrorKind::Busy) and [`Unavailable`](ErrorKind::Unavailable) have such a time. The
    /// time is exact while the key [cools down](Error::is_cooling_down). While the lock is held,
    /// the time is a hint: the lease would last that long if its owner died now. A first attempt on
    /// Redis does not ask for that time, and the hint is the ttl of the request. Work that is done has no such time (code
    /// `lock_done`), because it would run again after the life of its record.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Returns whether the kind is [`Busy`](ErrorKind::Busy): another owner holds the key, or it cools down.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.0.kind == ErrorKind::Busy
    }

    /// Returns whether the kind is [`Unavailable`](ErrorKind::Unavailable): the store gave no answer.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        self.0.kind == ErrorKind::Unavailable
    }

    /// Returns whether the kind is [`Lost`](ErrorKind::Lost): the lock was held, and is no longer.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.0.kind == ErrorKind::Lost
    }

    /// Returns whether the kind is [`Misconfigured`](ErrorKind::Misconfigured): the server's settings must change.
    #[must_use]
    pub fn is_misconfigured(&self) -> bool {
        self.0.kind == ErrorKind::Misconfigured
    }

    /// Returns whether the kind is [`Invalid`](ErrorKind::Invalid): the code must change.
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        self.0.kind == ErrorKind::Invalid
    }

    /// Returns whether the kind is [`Reused`](ErrorKind::Reused): another call has used the key.
    #[must_use]
    pub fn is_reused(&self) -> bool {
        self.0.kind == ErrorKind::Reused
    }

    /// Returns whether the kind is [`Unreadable`](ErrorKind::Unreadable): the kept result cannot be read.
    #[must_use]
    pub fn is_unreadable(&self) -> bool {
        self.0.kind == ErrorKind::Unreadable
    }

    /// Returns whether the key is busy after its last owner's work: a `cooldown` runs, or the work is done for good (`lock_done`).
    #[must_use]
    pub fn is_cooling_down(&self) -> bool {
        self.0.detail == Detail::CoolingDown || self.is_done()
    }

    pub(crate) fn is_done(&self) -> bool {
        self.0.detail == Detail::Done
    }

    /// Returns whether all [permits](crate::LockRequest::permits) of the key are taken.
    ///
    /// [`retry_after`](Error::retry_after) then is when the first of them runs out if its owner dies now.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.0.detail == Detail::Full
    }

    /// Returns the record that the last owner has [left](crate::LockHandle::remember) in the key.
    ///
    /// A key with a record counts as [cooling down](Error::is_cooling_down), and
    /// [`retry_after`](Error::retry_after) is the exact rest of the record's lifetime.
    #[must_use]
    pub fn record(&self) -> Option<&[u8]> {
        self.0.record.as_ref().map(|record| &*record.bytes)
    }

    /// Returns whether the lock was [lost](ErrorKind::Lost) because `max_hold` was reached.
    #[must_use]
    pub fn is_max_hold(&self) -> bool {
        self.0.detail == Detail::MaxHold
    }

    /// Returns whether the work may be done or not, and nothing tells yet.
    ///
    /// The answer to a COMMIT did not come. The kind is [`Unavailable`](ErrorKind::Unavailable). Do the same operation again: it is
    /// refused while the first commit is under way, and gets the first result if that commit has arrived. Do not take
    /// the work for failed.
    #[must_use]
    pub fn is_outcome_unknown(&self) -> bool {
        self.0.detail == Detail::OutcomeUnknown
    }

    /// Returns the HTTP status of this error: 409, 422, 429, 503 or 500.
    ///
    /// 429 means that all permits are [taken](Self::is_full), and 422 that the key is [reused](Self::is_reused).
    #[must_use]
    pub fn http_status(&self) -> u16 {
        match (self.0.kind, self.0.detail) {
            (ErrorKind::Busy, Detail::Full) => 429,
            (ErrorKind::Busy, _) => 409,
            (ErrorKind::Unavailable, _) => 503,
            (ErrorKind::Reused, _) => 422,
            (ErrorKind::Lost | ErrorKind::Misconfigured | ErrorKind::Invalid, _) => 500,
            (ErrorKind::Unreadable, _) => 500,
        }
    }

    /// Returns a stable, machine-readable code for each distinguishable cause.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match (self.0.kind, self.0.detail) {
            (ErrorKind::Busy, Detail::CoolingDown) => "lock_cooling_down",
            (ErrorKind::Busy, Detail::Done) => "lock_done",
            (ErrorKind::Busy, Detail::Full) => "lock_full",
            (ErrorKind::Busy, _) => "lock_busy",
            (ErrorKind::Unavailable, Detail::OutcomeUnknown) => "lock_outcome_unknown",
            (ErrorKind::Unavailable, _) => "lock_unavailable",
            (ErrorKind::Lost, Detail::MaxHold) => "lock_max_hold",
            (ErrorKind::Lost, _) => "lock_lost",
            (ErrorKind::Misconfigured, _) => "lock_misconfigured",
            (ErrorKind::Invalid, _) => "lock_invalid",
            (ErrorKind::Reused, _) => "lock_key_reused",
            (ErrorKind::Unreadable, _) => "lock_unreadable",
        }
    }

    /// Makes an [`Invalid`](ErrorKind::Invalid) error, for the settings of a
    /// [middleware](crate::middleware).
    ///
    /// The message should name the setting and its bound. It must contain no key, token or user.
    ///
    /// # Examples
    ///
    /// ```
    /// use lock_core::{Error, ErrorKind};
    ///
    /// let error = Error::invalid("a retry_hint of zero is too short; use at least 1 ms");
    /// assert_eq!(error.kind(), ErrorKind::Invalid);
    /// ```
    #[must_use]
    pub fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }
}

/// Constructors for the library itself.
impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            key: None,
            retry_after: None,
            detail: Detail::None,
            record: None,
            source: None,
        }))
    }

    pub(crate) fn unavailable(message: impl Into<Cow<'static, str>>) -> Self {
        let mut error = Self::new(ErrorKind::Unavailable, message);
        error.0.retry_after = Some(Duration::from_secs(1));
        error
    }

    #[cfg(feature = "once")]
    pub(crate) fn outcome_unknown() -> Self {
        Self::unavailable(
            "the database did not answer a COMMIT, so it is unknown whether the work is done; do the same operation again",
        )
        .with_detail(Detail::OutcomeUnknown)
    }

    pub(crate) fn draining() -> Self {
        Self::unavailable("the lock manager is draining and grants no more locks")
    }

    /// `remaining` is the time that the present owner's lease, or the cooldown, still lasts.
    pub(crate) fn busy(cooling: bool, remaining: Option<Duration>) -> Self {
        let message = if cooling {
            "the key is in the cooldown after its last owner's work; try again later"
        } else {
            "the lock is held by another owner; try again later"
        };
        let mut error = Self::new(ErrorKind::Busy, message);
        error.0.retry_after = remaining;
        if cooling {
            error.0.detail = Detail::CoolingDown;
        }
        error
    }

    /// All permits are taken. `remaining`: until the first of them runs out.
    pub(crate) fn full(remaining: Option<Duration>) -> Self {
        let mut error = Self::new(
            ErrorKind::Busy,
            "all permits of the lock are taken; try again later",
        );
        error.0.retry_after = remaining;
        error.with_detail(Detail::Full)
    }

    fn with_detail(mut self, detail: Detail) -> Self {
        self.0.detail = detail;
        self
    }

    pub(crate) fn with_record(mut self, record: &Arc<StoredRecord>) -> Self {
        self.0.record = Some(Arc::clone(record));
        self
    }

    /// The work for the key is done, and its result is not kept.
    #[cfg(feature = "idempotent")]
    pub(crate) fn done() -> Self {
        Self::new(
            ErrorKind::Busy,
            "the work for this key is done, and its result is not kept; only its first caller has got it",
        )
        .with_detail(Detail::Done)
    }

    #[cfg(all(feature = "idempotent", feature = "once"))]
    pub(crate) fn rolled_back() -> Self {
        Self::unavailable(
            "the database has rolled the transaction back; do the same operation again",
        )
    }

    /// An open transaction has claimed the work.
    #[cfg(all(feature = "idempotent", feature = "once"))]
    pub(crate) fn claimed() -> Self {
        Self::new(
            ErrorKind::Busy,
            "another transaction works on this key and is still open; try again later",
        )
    }

    pub(crate) fn lost(message: &'static str) -> Self {
        Self::new(ErrorKind::Lost, message)
    }

    pub(crate) fn max_hold() -> Self {
        Self::lost("the lock reached its max_hold and was given up").with_detail(Detail::MaxHold)
    }

    pub(crate) fn with_key(mut self, key: &Arc<str>) -> Self {
        self.0.key.get_or_insert_with(|| Arc::clone(key));
        self
    }

    #[cfg(any(feature = "once", feature = "postgres", feature = "redis"))]
    pub(crate) fn with_source(
        mut self,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> Self {
        self.0.source = Some(Arc::new(source));
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Error");
        debug
            .field("kind", &self.0.kind)
            .field("message", &self.0.message);
        if let Some(source) = &self.0.source {
            debug.field("source", source);
        }
        debug.finish_non_exhaustive()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
