//! The policies of a layer, each with its default and its price.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Response, response};
use lock_core::{Error, Renew, Wait};

use crate::in_flight::InFlight;
use crate::layer::LockLayer;
use crate::options::{Disconnect, MissingKey, Outage, RefusalFormat, ReleaseAt};
use crate::record::Record;
use crate::rejection::Rejection;

/// Which requests.
impl<K> LockLayer<K> {
    /// The methods that are locked; all others pass untouched, without a question to the store.
    ///
    /// Default: POST, PUT, PATCH and DELETE. GET and OPTIONS are locked only if they are named here,
    /// and so are methods that a client makes up: `post` is not POST. Behind a route of any method
    /// (`axum::routing::any`) a client could choose one that is not locked; route the methods that
    /// there are.
    ///
    /// HEAD is locked where GET is, and under the same key (`<method>` is `GET` for both): axum
    /// answers HEAD with the handler of GET, and other frameworks do the same.
    pub fn methods(self, methods: impl IntoIterator<Item = Method>) -> Self {
        self.with(|policy| policy.methods = methods.into_iter().collect())
    }

    /// What happens to a request that names nothing to lock. Default: [`MissingKey::Reject`].
    pub fn on_missing_key(self, missing_key: MissingKey) -> Self {
        self.with(|policy| policy.missing_key = missing_key)
    }

    /// Refuses nothing: a request that would be refused runs without a lock, and is counted and
    /// logged at level `info`. To see on real traffic what the layer would do before it does it. The
    /// handler's [`LockContext`](crate::LockContext) says that it is
    /// [not locked](crate::LockContext::is_locked).
    ///
    /// Locks are taken, held and cooled down as without it, so each request still pays for the
    /// store's answer, at most [`acquire_timeout`](Self::acquire_timeout); no request [waits](Self::wait).
    /// Default: off.
    pub fn shadow(self) -> Self {
        self.with(|policy| policy.shadow = true)
    }
}

/// The lock.
impl<K> LockLayer<K> {
    /// How long the lock outlives its last renewal: what a process that was killed in the middle of
    /// a request costs that user. Renewed as long as the handler runs, however long that is.
    ///
    /// From 10 ms to 24 h, and at most the manager's
    /// [`max_ttl`](lock_core::ManagerBuilder::max_ttl); anything else is [`Invalid`](Self::checked).
    /// Default: 30 s.
    pub fn ttl(self, ttl: Duration) -> Self {
        self.with(|policy| policy.ttl = ttl)
    }

    /// Whether the lock is renewed while the handler runs. Default: it is.
    ///
    /// With [`Renew::Off`] a handler that takes longer than the [ttl](Self::ttl) runs on without its
    /// lock, beside the next request: for handlers that check their fencing token.
    pub fn renew(self, renew: Renew) -> Self {
        self.with(|policy| policy.renew = renew)
    }

    /// The longest time that one request may hold its lock. After that it is lost: renewed no more,
    /// and free after one [ttl](Self::ttl) at most. The handler goes on, as after any loss, and can
    /// see it in its [`LockContext`](crate::LockContext).
    ///
    /// Zero is [`Invalid`](Self::checked). Default: no limit, because a limit ends the lock and not
    /// the handler: a handler that is only slow would run beside the next request of its user, which
    /// is what the layer is there to prevent. So a handler that never ends shuts its user out until
    /// the process ends. **Give every locked route a timeout that ends the handler**, inside of the
    /// lock layer, and `max_hold` somewhat above it for handlers that no timeout can end:
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use {axum::{Router, routing::post}, lock_tower::LockLayer};
    /// # let locks = lock_core::LockManager::in_memory();
    /// # async fn create_order() {}
    /// # fn timeout(_: Duration) -> tower::layer::util::Identity { tower::layer::util::Identity::new() }
    /// use std::time::Duration;
    ///
    /// let layer = LockLayer::template(locks, "submit:<header.x-user-id>:<method>:<route>")?
    ///     .cooldown(Duration::from_secs(2))
    ///     .max_hold(Duration::from_secs(40));
    /// let app: Router = Router::new()
    ///     .route("/orders", post(create_order))
    ///     .route_layer(timeout(Duration::from_secs(30))) // such as tower-http's TimeoutLayer
    ///     .route_layer(layer); // added last: outside
    /// # let _ = app; Ok(()) }
    /// ```
    ///
    /// A handler that holds its lock for ten ttls (5 minutes by default) is a warning in the log, and
    /// again whenever the time has doubled, with the layer's name and template, the method and the
    /// matched route: at most one line for a layer in 10 s, which counts those that were left out.
    pub fn max_hold(self, max_hold: Duration) -> Self {
        self.with(|policy| policy.max_hold = Some(max_hold))
    }

    /// How long the store may take to answer before the request is answered with 503 (or what
    /// [`on_outage`](Self::on_outage) says). Zero is [`Invalid`](Self::checked). Default: 250 ms.
    ///
    /// Longer rides out slow moments of the store, and keeps every request waiting during an outage.
    pub fn acquire_timeout(self, timeout: Duration) -> Self {
        self.with(|policy| policy.acquire_timeout = timeout)
    }

    /// How long the handler's answer is held back for the store to confirm the release, so that a
    /// client that has read it finds the lock free. After that the answer is sent and the release
    /// goes on in the background. Default: 250 ms.
    pub fn release_timeout(self, timeout: Duration) -> Self {
        self.with(|policy| policy.release_timeout = timeout)
    }

    /// When the lock is released. Default: [`ReleaseAt::Head`], for handlers that have done their
    /// work when they answer.
    pub fn release_at(self, release_at: ReleaseAt) -> Self {
        self.with(|policy| policy.release_at = release_at)
    }

    /// What happens to a handler whose client has gone. Default: [`Disconnect::RunToEnd`].
    pub fn on_disconnect(self, disconnect: Disconnect) -> Self {
        self.with(|policy| policy.disconnect = disconnect)
    }

    /// What happens to requests while the store gives no answer. Default: [`Outage::Reject`].
    pub fn on_outage(self, outage: Outage) -> Self {
        self.with(|policy| policy.outage = outage)
    }
}

/// Duplicates.
impl<K> LockLayer<K> {
    /// How long a duplicate waits for the first request to end, and then *runs*, before it is
    /// refused. Default: not at all.
    ///
    /// That makes requests of one key run one after the other; it does not make them one. A request
    /// that waits out its time while nothing is known of the lock is answered with 503. With
    /// [`Outage::Fallback`] the time counts for the lock of the process and for the store's, one
    /// after the other.
    pub fn wait(self, wait: impl Into<Wait>) -> Self {
        let wait = wait.into();
        self.with(|policy| policy.wait = wait)
    }

    /// How long the key stays taken after a request that succeeded: one answered with 2xx, or with
    /// 303, as forms are. Counted from the release, so a handler may take longer than that.
    ///
    /// Without a cooldown the lock stops requests that *overlap*, and the second click of a double
    /// click that comes after a fast answer is served again. Two seconds stop it too. A request
    /// that failed may be repeated at once. A day at most; more than the manager's
    /// [`max_ttl`](lock_core::ManagerBuilder::max_ttl), 10 minutes on `redlock://`, is
    /// [`Invalid`](Self::checked). Default: none.
    pub fn cooldown(self, cooldown: Duration) -> Self {
        self.with(|policy| policy.cooldown.after_success = cooldown)
    }

    /// How far apart the beginnings of two requests of one key are at least, where the first one
    /// succeeded: the key stays taken for what is left of `interval` when the handler has ended.
    /// For "one text message a minute". Counted from the moment the lock was granted.
    ///
    /// With a [`cooldown`](Self::cooldown) beside it the longer one counts. A day at most after the
    /// end of a request, and no more than a cooldown may be. Default: none.
    pub fn min_interval(self, interval: Duration) -> Self {
        self.with(|policy| policy.cooldown.interval = interval)
    }

    /// How long the key stays taken after a request, by the head of its response, whatever its
    /// status: in place of [`cooldown`](Self::cooldown) and [`min_interval`](Self::min_interval).
    /// [`Duration::ZERO`] for not at all. A request that ended without a response (an error of the
    /// service, a panic) has no cooldown.
    ///
    /// The work is done when this is known, so a cooldown longer than the manager's
    /// [`max_ttl`](lock_core::ManagerBuilder::max_ttl) cannot be refused: it is cut to that, with a
    /// warning in the log.
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
    ///         401 | 403 => Duration::from_secs(1), // no guessing in a hurry
    ///         200..=299 => Duration::from_secs(2),
    ///         _ => Duration::ZERO,
    ///     });
    /// # let _ = layer; Ok(()) }
    /// ```
    pub fn cooldown_with<F>(self, cooldown: F) -> Self
    where
        F: Fn(&response::Parts) -> Duration + Send + Sync + 'static,
    {
        self.with(|policy| policy.cooldown.of_response = Some(Arc::new(cooldown)))
    }

    /// What clients are told to wait while a request is in flight, in `Retry-After` and
    /// `retry_after_ms`: about as long as a handler takes. The lease says nothing about that, as it is
    /// renewed for as long as the handler runs. Zero is [`Invalid`](Self::checked). Default: 1 s.
    ///
    /// While a key cools down what is left of that is told instead, exactly.
    pub fn retry_hint(self, hint: Duration) -> Self {
        self.with(|policy| policy.retry_hint = hint)
    }

    /// What the `type` of each problem (RFC 9457) begins with; the [code](Rejection::code) follows:
    /// `https://shop.example/problems/` makes `https://shop.example/problems/lock_busy`. Best an
    /// absolute URI under which the service describes its problems.
    ///
    /// Anything that can be no part of a URI is [`Invalid`](Self::checked). Default:
    /// `urn:lockkit:problem:`, names that can be compared and not looked up. The answers of
    /// [`lock_core::Error`] itself, of a `#[distributed_lock]` in the handler, have the same default;
    /// with lock-core's feature `axum` its `Error::problem` takes the same base.
    pub fn problem_types(self, base: impl Into<Cow<'static, str>>) -> Self {
        let base = base.into();
        self.with(|policy| policy.types = base)
    }

    /// What a refusal looks like. Default: [`RefusalFormat::Problem`].
    pub fn refusals(self, format: RefusalFormat) -> Self {
        self.with(|policy| policy.format = format)
    }

    /// Answers refusals in your own words: the closure sees why, and the head of the request. In
    /// place of [`refusals`](Self::refusals); [`Rejection::problem`] and [`Rejection::page`] are the
    /// ready answers, to be changed.
    ///
    /// The [`Rejection`] is put into the response's extensions here as well, so that layers outside
    /// can tell it from the application's own. One answer is not asked for: that of a request whose
    /// runtime was shut down under it, which has no head any more.
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
    ///         // The form was sent twice: on to where the first click will have led.
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

/// Operations.
impl<K> LockLayer<K> {
    /// The layer, if all its settings are within their bounds: best the last call, at the start of a
    /// service, before it serves.
    ///
    /// The bounds depend on the manager (what its servers can keep, see
    /// [`max_ttl`](lock_core::ManagerBuilder::max_ttl)), so no setting is looked at alone, and none is
    /// cut to its bound. A layer that is used without this call is looked at when it is put around a
    /// service: what is out of bounds is an error in the log then, [`probe`](crate::probe) finds it,
    /// and every request is answered with 500 `lock_invalid`.
    ///
    /// # Errors
    ///
    /// [`Invalid`](lock_core::ErrorKind::Invalid): which setting, and its bound.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = lock_core::LockManager::in_memory();
    /// use std::time::Duration;
    /// use lock_tower::LockLayer;
    ///
    /// let layer = LockLayer::template(locks, "submit:<header.x-user-id>")?
    ///     .cooldown(Duration::from_secs(2))
    ///     .checked()?;
    /// let error = layer.ttl(Duration::from_millis(1)).checked().unwrap_err();
    /// assert_eq!(error.to_string(), "a ttl of 1ms is too short; the shortest is 10ms");
    /// # Ok(()) }
    /// ```
    pub fn checked(self) -> Result<Self, Error> {
        self.policy.check()?;
        Ok(self)
    }

    /// The layer's name in log lines, spans and metrics. `'static`, so that no request can choose
    /// one. Default: `lock`.
    ///
    /// The span `lock.request` (level `debug`, with `layer`) is around the acquire and the handler;
    /// lock-core's `lock.acquire`, `lock.hold` and `lock.release` are inside it. With the feature
    /// `metrics`, and `layer` as a label of each:
    ///
    /// | metric | kind | more labels |
    /// | --- | --- | --- |
    /// | `lock_layer_requests_total` | counter | `outcome`: `granted`, `fallback`, or the code of the [`Rejection`]; `action`: `locked`, `refused`, or `passed` for what runs without a lock (shadow mode, a missing key, an outage) |
    /// | `lock_layer_in_flight` | gauge: as [`InFlight`] counts | |
    /// | `lock_layer_acquire_seconds` | histogram: how long granted requests waited for their lock | |
    /// | `lock_layer_hold_seconds` | histogram: how long they held it | |
    /// | `lock_layer_releases_total` | counter | `outcome`: `released`, `background`, or the code of the error, such as `lock_lost` |
    /// | `lock_layer_disconnects_total` | counter: requests that were dropped while their handler ran | |
    ///
    /// No label, span or log line holds a key, a path, a header or a user: the number of series is
    /// the number of names times the words above.
    pub fn name(self, name: &'static str) -> Self {
        self.with(|policy| policy.record = Record::new(name))
    }

    /// The requests that are under way, to be kept for the shutdown: a server that ends in order
    /// waits for its clients, not for handlers whose clients have gone.
    ///
    /// Clones of a layer, and the services made of them, count together.
    #[must_use]
    pub fn in_flight(&self) -> InFlight {
        self.policy.in_flight.clone()
    }
}
