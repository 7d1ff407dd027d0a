//! Settings that decide how duplicates are answered, and for how long.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Response, response};
use lock_core::Wait;

use super::LockLayer;
use crate::options::RefusalFormat;
use crate::rejection::Rejection;

/// How duplicates are answered.
impl<K> LockLayer<K> {
    /// Sets how long a duplicate waits for the first request to end before it is refused.
    ///
    /// After a successful wait the duplicate *runs*. Requests of one key then run one after the other,
    /// but all of them run. A cooldown ends every wait: when it begins, the duplicates that wait are refused with 409
    /// `lock_cooling_down`, and so is one that comes while it lasts. The release of a layer with `wait` therefore leaves
    /// its cooldown as a [record](lock_core::LockHandle::remember), which every caller that waits for the key gets.
    /// With [several keys](LockLayer::and), `wait` beside a cooldown is [`Invalid`](Self::checked), because a record
    /// belongs to one key.
    ///
    /// A request that waits keeps its place in a service inside of the layer that counts places, such as one of tower's
    /// `ConcurrencyLimit`, so such a limit needs room for the requests that wait. Without `wait`, a duplicate gives its
    /// place back at once.
    ///
    /// If the state of the lock is unknown when the time is over, the request is
    /// refused with 503. With [`Outage::Fallback`](crate::Outage::Fallback) the time counts twice:
    /// first for the lock of the store, then for that of the process. With `Replay::in_database` (feature `once`) it counts
    /// once more for a claim that a run in another process has: the layer repeats the claim after 50 ms, and then in pauses of
    /// up to a second.
    ///
    /// Default: no wait.
    pub fn wait(self, wait: impl Into<Wait>) -> Self {
        let wait = wait.into();
        self.with(|policy| policy.wait = wait)
    }

    /// Sets how long the key stays taken after a request that succeeded with 2xx or 303.
    ///
    /// Forms are often answered with 303. The time counts from the release, so the handler may take
    /// longer than the cooldown. A request that failed has no cooldown, so its client may retry at
    /// once.
    ///
    /// The lock alone refuses requests that *overlap*. Without a cooldown, the second click of a
    /// double click succeeds if it comes after a fast response. A cooldown of two seconds refuses it.
    ///
    /// The longest cooldown is one day. A cooldown above the manager's
    /// [`max_ttl`](lock_core::ManagerBuilder::max_ttl), which is 10 minutes on `redlock://`, is
    /// [`Invalid`](Self::checked). A cooldown beside [`permits`](Self::permits) or [`read_methods`](Self::read_methods)
    /// is too.
    ///
    /// A request in the cooldown is refused with 409 `lock_cooling_down`, also if it [waits](Self::wait). The refusal does
    /// not say that the first request succeeded.
    ///
    /// Default: none.
    pub fn cooldown(self, cooldown: Duration) -> Self {
        self.with(|policy| policy.cooldown.after_success = cooldown)
    }

    /// Sets the shortest time between the starts of two requests of one key.
    ///
    /// For example, one text message a minute. The time counts from the grant of the lock. It applies
    /// if the first request succeeded: the key stays taken for the rest of `interval` after the
    /// release. If a [`cooldown`](Self::cooldown) is set as well, the longer one counts.
    ///
    /// The bounds are those of [`cooldown`](Self::cooldown).
    ///
    /// Default: none.
    pub fn min_interval(self, interval: Duration) -> Self {
        self.with(|policy| policy.cooldown.interval = interval)
    }

    /// Chooses the cooldown after each request by the head of its response, whatever its status.
    ///
    /// It replaces [`cooldown`](Self::cooldown) and [`min_interval`](Self::min_interval).
    /// [`Duration::ZERO`] means no cooldown. A request that ends without a response, because of an
    /// error of the service or a panic, has no cooldown.
    ///
    /// The work is done when the cooldown is known, so a cooldown above the manager's
    /// [`max_ttl`](lock_core::ManagerBuilder::max_ttl) cannot be refused. It is shortened to that, with
    /// a warning in the log.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), lock_tower::TemplateError> {
    /// # let locks = lock_core::LockManager::in_memory();
    /// use std::time::Duration;
    /// use lock_tower::LockLayer;
    ///
    /// let layer = LockLayer::template(locks, "login:<header.x-user-id>")?
    ///     .cooldown_with(|head| match head.status.as_u16() {
    ///         401 | 403 => Duration::from_secs(1), // slows down guessing
    ///         200..=299 => Duration::from_secs(2),
    ///         _ => Duration::ZERO,
    ///     });
    /// # let _ = layer; Ok(()) }
    /// ```
    pub fn cooldown_with<F>(self, cooldown: F) -> Self
    where
        F: Fn(&response::Parts) -> Duration + Send + Sync + 'static,
    {
        self.with(|policy| policy.cooldown.by_response = Some(Arc::new(cooldown)))
    }

    /// Sets the `Retry-After` of refusals while a request is in flight.
    ///
    /// Choose about the duration of a handler. The lease does not tell it, because the lease is
    /// renewed for as long as the handler runs. While a key cools down, refusals carry the exact rest
    /// of the cooldown instead. Zero is [`Invalid`](Self::checked).
    ///
    /// Default: 1 s.
    pub fn retry_hint(self, hint: Duration) -> Self {
        self.with(|policy| policy.retry_hint = hint)
    }

    /// Sets the beginning of the `type` of each problem (RFC 9457).
    ///
    /// The [code](Rejection::code) follows it: `https://shop.example/problems/` makes
    /// `https://shop.example/problems/lock_busy`. Best is an absolute URI under which the service
    /// describes its problems. Text that cannot be part of a URI is [`Invalid`](Self::checked).
    ///
    /// Default: `urn:lockkit:problem:`, which makes names that a client can compare but not look up.
    /// The problems of [`lock_core::Error`] have the same default; a `#[distributed_lock]` function in
    /// a handler returns such errors. With lock-core's feature `axum`, `Error::problem` takes the same
    /// base.
    pub fn problem_types(self, base: impl Into<Cow<'static, str>>) -> Self {
        let base = base.into();
        self.with(|policy| policy.types = base)
    }

    /// Names the page that tells clients how to make a key and what the refusals mean.
    ///
    /// Every refusal then has the header `Link: <uri>; rel="describedby"`, and the `type` of its problem
    /// is the URI with the [code](Rejection::code) as its fragment, such as `…/idempotency#lock_busy`.
    /// It replaces [`problem_types`](Self::problem_types). Text that cannot be a URI, or that has a fragment of its own,
    /// is [`Invalid`](Self::checked).
    ///
    /// Default: none.
    pub fn documentation(self, uri: impl Into<Cow<'static, str>>) -> Self {
        let uri = uri.into();
        self.with(|policy| {
            // Text that is no URI cannot be a problem type either, which the check reports.
            policy.documentation =
                HeaderValue::try_from(format!("<{uri}>; rel=\"describedby\"")).ok();
            policy.types = format!("{uri}#").into();
        })
    }

    /// Sets the format of refusals.
    ///
    /// Default: [`RefusalFormat::Problem`].
    pub fn refusals(self, format: RefusalFormat) -> Self {
        self.with(|policy| policy.format = format)
    }

    /// Answers refusals by a closure, which receives the refusal and the head of the request.
    ///
    /// It replaces [`refusals`](Self::refusals). [`Rejection::problem`] and [`Rejection::page`] make
    /// responses that the closure can change. The layer puts the [`Rejection`] into the extensions of
    /// these responses as well, so outer layers can distinguish them from those of the application.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), lock_tower::TemplateError> {
    /// # let locks = lock_core::LockManager::in_memory();
    /// use http::{StatusCode, header};
    /// use lock_tower::{LockLayer, RejectionKind};
    ///
    /// let layer = LockLayer::template(locks, "submit:<header.x-user-id>")?
    ///     .on_reject(|rejection, request| match rejection.kind() {
    ///         // The form was sent twice: redirect to the page that the first click leads to.
    ///         RejectionKind::InFlight if request.uri.path() == "/orders" => http::Response::builder()
    ///             .status(StatusCode::SEE_OTHER)
    ///             .header(header::LOCATION, "/orders/mine")
    ///             .body(String::new())
    ///             .expect("a response"),
    ///         _ => rejection.problem(),
    ///     });
    /// # let _ = layer; Ok(()) }
    /// ```
    pub fn on_reject<F, T>(self, respond: F) -> Self
    where
        F: Fn(&Rejection, &Parts) -> Response<T> + Send + Sync + 'static,
        T: Into<Bytes>,
    {
        self.with(|policy| {
            policy.on_reject = Some(Arc::new(move |rejection, request| {
                respond(rejection, request).map(Into::into)
            }));
        })
    }
}
