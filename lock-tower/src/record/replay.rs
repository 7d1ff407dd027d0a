//! The settings of replay.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::{HeaderName, response};
use lock_core::Error;
use lock_core::middleware::MAX_RECORD;

use super::{Seal, headers};
use crate::lock::{has_succeeded, is_by_inner_layer};
#[cfg(feature = "once")]
use crate::once::AnyDatabase;
use crate::options::Remember;

type Decide = dyn Fn(&response::Parts) -> Remember + Send + Sync;

/// Decides how a layer keeps and repeats answers: see [`LockLayer::replay`](crate::LockLayer::replay).
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use http::HeaderName;
/// use lock_tower::Replay;
///
/// let replay = Replay::default()
///     .lasting(Duration::from_secs(3600))
///     .headers([HeaderName::from_static("x-order-number")]);
/// # let _ = replay;
/// ```
#[derive(Clone)]
#[must_use = "the settings do nothing until they are given to `LockLayer::replay`"]
pub struct Replay {
    pub(crate) rules: ReplayRules,
    pub(crate) caller_is_in_key: bool,
}

/// The settings that count for every request.
#[derive(Clone)]
pub(crate) struct ReplayRules {
    pub(crate) lifetime: Duration,
    pub(crate) largest_body: usize,
    pub(crate) more_headers: Vec<HeaderName>,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) seal: Option<Arc<dyn Seal>>,
    /// The database that has the records, in place of the store of the locks.
    #[cfg(feature = "once")]
    pub(crate) database: Option<Arc<dyn AnyDatabase>>,
    decide: Option<Arc<Decide>>,
    /// The log says once that answers of the layer are too large or have no known length.
    warned: Arc<AtomicBool>,
    /// The log says once that a handler has not used its transaction.
    #[cfg(feature = "once")]
    pub(super) warned_unused: Arc<AtomicBool>,
}

/// Decides which parts of a duplicate must equal those of the first request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fingerprint {
    /// The method, the path, the query, the `Range` of a GET, and all bytes of the body that the first handler had read.
    #[default]
    Request,
    /// The method, the path, the query and the `Range` of a GET.
    ///
    /// This suits bodies that a client encodes anew for every attempt, such as multipart forms, whose
    /// boundaries are random. The layer reads the body of a duplicate before it answers, up to 64 MiB, because over
    /// HTTP/1.1 a client that still sends cannot read its answer.
    Head,
}

impl Default for Replay {
    fn default() -> Self {
        Self {
            rules: ReplayRules {
                lifetime: Duration::from_secs(24 * 3600),
                largest_body: 64 * 1024,
                more_headers: Vec::new(),
                fingerprint: Fingerprint::default(),
                seal: None,
                #[cfg(feature = "once")]
                database: None,
                decide: None,
                warned: Arc::default(),
                #[cfg(feature = "once")]
                warned_unused: Arc::default(),
            },
            caller_is_in_key: false,
        }
    }
}

impl Replay {
    /// Sets how long an answer is kept, counted from the end of the first request.
    ///
    /// It must be longer than a client goes on to retry, and at most the manager's
    /// [`max_ttl`](lock_core::ManagerBuilder::max_ttl), which is 10 minutes on `redlock://`.
    ///
    /// Default: 24 h, which is also the longest. In a database (`in_database`, feature `once`) it is between a minute and
    /// 3 650 days, whatever the `max_ttl` is, and counts from the claim.
    pub fn lasting(self, lifetime: Duration) -> Self {
        self.with(|rules| rules.lifetime = lifetime)
    }

    /// Sets the largest body of an answer that is kept, in bytes.
    ///
    /// A request with a larger answer counts as [done](Remember::Done). Every record takes memory in
    /// the store for its whole lifetime.
    ///
    /// Default: 64 KiB. The headers of an answer may have 8 KiB.
    pub fn largest_body(self, bytes: usize) -> Self {
        self.with(|rules| rules.largest_body = bytes)
    }

    /// Chooses by the head of an answer what is remembered of a request.
    ///
    /// A handler overrides it with [`LockContext::remember`](crate::LockContext::remember), or with a
    /// [`Remember`] in the extensions of its response. Of a refusal or a repeated answer of an inner lock layer nothing is
    /// remembered, and the function is not asked, because the handler has not run.
    ///
    /// Default: the answer of a request that succeeded with 2xx or 303 and without a gRPC error, and
    /// [nothing](Remember::Nothing) of any other request.
    ///
    /// # Examples
    ///
    /// ```
    /// use lock_tower::{Remember, Replay};
    ///
    /// let replay = Replay::default().remember_with(|head| match head.status.as_u16() {
    ///     200..=299 | 303 => Remember::Answer,
    ///     402 => Remember::Answer, // this payment was declined, and stays declined
    ///     500..=599 => Remember::Done, // the effect may have happened
    ///     _ => Remember::Nothing,
    /// });
    /// # let _ = replay;
    /// ```
    pub fn remember_with<F>(self, decide: F) -> Self
    where
        F: Fn(&response::Parts) -> Remember + Send + Sync + 'static,
    {
        self.with(|rules| rules.decide = Some(Arc::new(decide)))
    }

    /// Keeps these headers of an answer, too.
    ///
    /// Without it, a record keeps `content-type`, `-encoding`, `-language`, `-disposition` and
    /// `-location`, `location`, `link`, `etag`, `last-modified`, `cache-control`, `expires`, `vary`,
    /// `allow`, `retry-after` and `grpc-…`. It also keeps the headers by which a page protects itself:
    /// `content-security-policy`, `x-content-type-options`, `x-frame-options`, `referrer-policy`, `permissions-policy`,
    /// `strict-transport-security` and `cross-origin-…-policy`. `set-cookie`, credentials and headers of one connection
    /// are never kept, and [`LockLayer::replay`](crate::LockLayer::replay) refuses them.
    pub fn headers(self, names: impl IntoIterator<Item = HeaderName>) -> Self {
        self.with(|rules| rules.more_headers.extend(names))
    }

    /// Decides which parts of a duplicate must equal those of the first request.
    ///
    /// A request that differs is refused with 422 `lock_key_reused`. Default:
    /// [`Fingerprint::Request`].
    pub fn fingerprint(self, fingerprint: Fingerprint) -> Self {
        self.with(|rules| rules.fingerprint = fingerprint)
    }

    /// Encrypts records before they are stored.
    ///
    /// Default: they are stored as they are.
    pub fn sealed(self, seal: impl Seal) -> Self {
        self.with(|rules| rules.seal = Some(Arc::new(seal)))
    }

    /// States that the key contains the authenticated caller.
    ///
    /// A layer sees that by itself if its template contains `<ext.…>`, `<bearer>` or `<session.…>`. A
    /// header proves nothing unless an outer layer or a proxy sets it, and the layer cannot see into
    /// closures and extractors. If two callers can make the same key, each gets the answers of the
    /// other.
    pub fn caller_is_in_key(mut self) -> Self {
        self.caller_is_in_key = true;
        self
    }

    pub(super) fn with(mut self, change: impl FnOnce(&mut ReplayRules)) -> Self {
        change(&mut self.rules);
        self
    }
}

impl ReplayRules {
    pub(crate) fn decide(&self, head: &response::Parts) -> Remember {
        match &self.decide {
            _ if is_by_inner_layer(&head.extensions) => Remember::Nothing,
            Some(decide) => decide(head),
            None if has_succeeded(head) => Remember::Answer,
            None => Remember::Nothing,
        }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        #[cfg(feature = "once")]
        self.check_database()?;
        if self.lifetime.is_zero() {
            return Err(Error::invalid(
                "a replay that lasts for no time keeps no answer; use a longer one",
            ));
        }
        // A record has headers, trailers and less than 4 KiB besides its body.
        let others = 2 * headers::LARGEST + 4 * 1024;
        if self.largest_body > MAX_RECORD - others {
            return Err(Error::invalid(format!(
                "a `largest_body` of {} bytes exceeds the {} bytes that a store keeps of one answer",
                self.largest_body,
                MAX_RECORD - others
            )));
        }
        match self
            .more_headers
            .iter()
            .find(|name| headers::is_never_kept(name))
        {
            Some(name) => Err(Error::invalid(format!(
                "the header {name} of an answer must not be replayed; remove it from `Replay::headers`",
            ))),
            None => Ok(()),
        }
    }

    /// Returns whether a database has the records, in place of the store of the locks.
    pub(crate) fn is_in_database(&self) -> bool {
        #[cfg(feature = "once")]
        return self.database.is_some();
        #[cfg(not(feature = "once"))]
        false
    }

    /// Reports answers that cannot be kept, once for each layer.
    pub(crate) fn warn_not_kept(&self, layer: &'static str, reason: &'static str) {
        if !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                layer,
                reason,
                "the answer to a request cannot be replayed, so its duplicates are refused with 409; \
                 answer with a body of known length within `Replay::largest_body`, or use \
                 `ReleaseAt::BodyEnd`"
            );
        }
    }
}

impl fmt::Debug for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay")
            .field("rules", &self.rules)
            .field("caller_is_in_key", &self.caller_is_in_key)
            .finish()
    }
}

impl fmt::Debug for ReplayRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayRules")
            .field("lifetime", &self.lifetime)
            .field("largest_body", &self.largest_body)
            .field("more_headers", &self.more_headers)
            .field("fingerprint", &self.fingerprint)
            .field("sealed", &self.seal.is_some())
            .field("in_database", &self.is_in_database())
            .finish_non_exhaustive()
    }
}
