//! The settings of a layer, and the decisions that follow from them.

mod check;

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};
use lock_core::{Error, LockManager, LockRequest, Renew, Wait};
use tracing::Span;

use crate::key::{BodyLimits, KeyFailure, RequestKeys};
use crate::lock::{Acquiring, CooldownRule, LockContext, acquire_both};
use crate::options::{Disconnect, MissingKey, Outage, RefusalFormat, ReleaseAt};
#[cfg(feature = "replay")]
use crate::record::ReplayRules;
use crate::rejection::{DEFAULT_TYPES, Rejection, RejectionKind};
use crate::telemetry::{InFlight, LongHolds, MisplacementDetector, Telemetry};

pub(crate) type OnReject = dyn Fn(&Rejection, &Parts) -> Response<Bytes> + Send + Sync;

/// The settings that a layer shares with all services made from it.
#[derive(Clone)]
pub(crate) struct Policy {
    pub(crate) locks: LockManager,
    /// How many keys each request has.
    pub(crate) keys: usize,
    /// The key contains the route that axum matched.
    pub(crate) names_route: bool,
    /// The key contains a caller that the service knows, by the layer's template.
    #[cfg_attr(not(feature = "replay"), allow(dead_code))]
    pub(crate) names_caller: bool,
    /// The key has an optional part, by one of the layer's templates.
    #[cfg_attr(not(feature = "replay"), allow(dead_code))]
    pub(crate) names_optional: bool,
    #[cfg(feature = "replay")]
    pub(crate) replay: Option<Arc<ReplayRules>>,
    pub(crate) body: BodyLimits,
    pub(crate) methods: Vec<Method>,
    /// Requests with these methods share the key as readers.
    pub(crate) read_methods: Vec<Method>,
    /// The number of requests that have a key at a time; `None`: one.
    pub(crate) permits: Option<u32>,
    pub(crate) full_status: Option<StatusCode>,
    pub(crate) missing_key: MissingKey,
    pub(crate) ttl: Duration,
    pub(crate) renew: Renew,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) wait: Wait,
    pub(crate) cooldown: CooldownRule,
    pub(crate) acquire_timeout: Duration,
    pub(crate) release_timeout: Duration,
    pub(crate) release_at: ReleaseAt,
    pub(crate) disconnect: Disconnect,
    pub(crate) outage: Outage,
    pub(crate) shadow: bool,
    pub(crate) format: RefusalFormat,
    pub(crate) on_reject: Option<Arc<OnReject>>,
    pub(crate) retry_hint: Duration,
    pub(crate) types: Cow<'static, str>,
    /// The page that describes the key, as a header `Link` names it.
    pub(crate) documentation: Option<HeaderValue>,
    pub(crate) telemetry: Telemetry,
    pub(crate) in_flight: InFlight,
    pub(crate) misplacement: Arc<MisplacementDetector>,
    pub(crate) long_holds: Arc<LongHolds>,
    /// The error in these settings, if there is one, once they were checked.
    pub(crate) checked: OnceLock<Option<Error>>,
}

impl Policy {
    pub(crate) fn new(locks: LockManager) -> Self {
        Self {
            locks,
            keys: 1,
            names_route: false,
            names_caller: false,
            names_optional: false,
            #[cfg(feature = "replay")]
            replay: None,
            body: BodyLimits::default(),
            methods: vec![Method::POST, Method::PUT, Method::PATCH, Method::DELETE],
            read_methods: Vec::new(),
            permits: None,
            full_status: None,
            missing_key: MissingKey::default(),
            ttl: Duration::from_secs(30),
            renew: Renew::default(),
            max_hold: None,
            wait: Wait::None,
            cooldown: CooldownRule::default(),
            acquire_timeout: Duration::from_millis(250),
            release_timeout: Duration::from_millis(250),
            release_at: ReleaseAt::default(),
            disconnect: Disconnect::default(),
            outage: Outage::default(),
            shadow: false,
            format: RefusalFormat::default(),
            on_reject: None,
            retry_hint: Duration::from_secs(1),
            types: Cow::Borrowed(DEFAULT_TYPES),
            documentation: None,
            telemetry: Telemetry::new("lock"),
            in_flight: InFlight::new(),
            misplacement: Arc::default(),
            long_holds: Arc::default(),
            checked: OnceLock::new(),
        }
    }

    /// Returns whether requests of this method are locked.
    ///
    /// HEAD is locked where GET is, because the same handler serves both.
    pub(crate) fn locks_method(&self, method: &Method) -> bool {
        let locked = has_method(&self.methods, method) || self.reads(method);
        self.misplacement.method(self.telemetry.layer, locked);
        locked
    }

    /// Returns whether requests of this method share the key as readers.
    fn reads(&self, method: &Method) -> bool {
        has_method(&self.read_methods, method)
    }

    /// Returns the context of a request at this layer, which may be the one that replays.
    pub(crate) fn completed(&self, context: LockContext) -> LockContext {
        #[cfg(feature = "replay")]
        if self.replay.is_some() {
            return context.of_replay();
        }
        context
    }

    /// Returns whether the records of requests are in a database.
    fn is_in_database(&self) -> bool {
        #[cfg(feature = "replay")]
        return self
            .replay
            .as_ref()
            .is_some_and(|rules| rules.is_in_database());
        #[cfg(not(feature = "replay"))]
        false
    }

    /// Returns whether requests wait for the lock of another one.
    pub(crate) fn has_waiters(&self) -> bool {
        self.wait != Wait::None && !self.shadow
    }

    /// Returns whether an outer layer already holds the lock of this request.
    ///
    /// The inner layer would then treat each request as a duplicate of itself.
    pub(crate) fn held_by_outer_layer(&self, request: &Parts, keys: &RequestKeys) -> bool {
        LockContext::innermost_lock(&request.extensions).is_some_and(|outer| {
            keys.iter().any(|key| {
                let fallback = match &self.outage {
                    Outage::Fallback(local) => outer.holds(local, key),
                    Outage::Reject | Outage::Pass => false,
                };
                fallback || outer.holds(&self.locks, key)
            })
        })
    }

    pub(crate) fn acquire(&self, keys: RequestKeys, method: &Method) -> Acquiring {
        let method = Some(method);
        match &self.outage {
            Outage::Fallback(local) => {
                let fallback = || self.request(local, keys.clone(), method);
                let fallback = [fallback(), fallback()];
                let store = self.request(&self.locks, keys, method);
                let both = acquire_both(store, self.locks.clone(), fallback, local.clone());
                Acquiring::Both(Box::pin(both))
            }
            Outage::Reject | Outage::Pass => {
                Acquiring::Store(self.request(&self.locks, keys, method).acquire())
            }
        }
    }

    /// Returns the refusal of a request without a lock, or `None` if the request may run without one.
    pub(crate) fn refuse_or_pass(
        &self,
        rejection: Rejection,
        request: &Parts,
    ) -> Option<Response<Bytes>> {
        let passes = match rejection.kind() {
            // These settings rule each other out, and a database refuses the transaction of a duplicate.
            _ if self.shadow && !self.is_in_database() => true,
            RejectionKind::KeyMissing => self.missing_key == MissingKey::Pass,
            RejectionKind::Unavailable => {
                matches!(self.outage, Outage::Pass) && !self.locks.is_draining()
            }
            _ => false,
        };
        if passes {
            self.telemetry.passed(&rejection, self.shadow);
            return None;
        }
        Some(self.refuse(rejection, request))
    }

    /// Makes the response of a refusal, and reports it.
    pub(crate) fn refuse(&self, rejection: Rejection, request: &Parts) -> Response<Bytes> {
        let rejection = rejection.with_settings(
            self.types.clone(),
            self.documentation.clone(),
            self.retry_hint,
        );
        let rejection = match rejection.kind() {
            RejectionKind::Full => match self.full_status {
                Some(status) => rejection.with_status(status),
                None => rejection,
            },
            _ => rejection,
        };
        self.telemetry.refused(&rejection);
        let mut response = match &self.on_reject {
            Some(function) => function(&rejection, request),
            None => rejection.answer(self.format, &request.headers),
        };
        response.extensions_mut().insert(rejection);
        response
    }

    /// Records whether the layer stands where its keys can be made.
    pub(crate) fn check_placement(&self, request: &Parts, key: &Result<RequestKeys, KeyFailure>) {
        if let Some(known) = self.route_known(request) {
            self.misplacement.route(self.telemetry.layer, known);
        }
        match key {
            Err(KeyFailure::Missing {
                part: Some(source), ..
            }) => self.misplacement.key(self.telemetry.layer, Some(source)),
            Err(_) => {}
            Ok(_) => self.misplacement.key(self.telemetry.layer, None),
        }
    }

    /// Returns whether axum has matched a route.
    ///
    /// It returns `None` if that does not matter, because the key contains no route or because the
    /// feature `axum` is off and the route is the path.
    #[cfg_attr(not(feature = "axum"), allow(unused_variables))]
    pub(crate) fn route_known(&self, request: &Parts) -> Option<bool> {
        #[cfg(feature = "axum")]
        if self.names_route {
            let matched = request.extensions.get::<axum::extract::MatchedPath>();
            return Some(matched.is_some());
        }
        None
    }

    /// Returns the span of a request, which covers its acquire and its handler.
    ///
    /// If no subscriber records it, the caller's span takes its place.
    pub(crate) fn span(&self) -> Span {
        tracing::debug_span!("lock.request", layer = self.telemetry.layer).or_current()
    }

    /// Makes a request with all of the layer's settings, which override the manager's defaults.
    ///
    /// Only the cooldown is set later, because it depends on the response.
    fn request(
        &self,
        locks: &LockManager,
        keys: RequestKeys,
        method: Option<&Method>,
    ) -> LockRequest {
        // In shadow mode the layer delays no request.
        let wait = if self.shadow { Wait::None } else { self.wait };
        let request = keys
            .request(locks)
            .ttl(self.ttl)
            .renew(self.renew)
            .wait(wait)
            .acquire_timeout(self.acquire_timeout);
        let request = match self.permits {
            Some(count) => request.permits(count),
            None if method.is_some_and(|method| self.reads(method)) => request.read(),
            None => request,
        };
        match self.max_hold {
            Some(longest) => request.max_hold(longest),
            None => request,
        }
    }
}

/// Returns whether a method is in the list. The handler of GET serves HEAD too.
fn has_method(methods: &[Method], method: &Method) -> bool {
    methods.contains(method) || *method == Method::HEAD && methods.contains(&Method::GET)
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Policy");
        debug
            .field("name", &self.telemetry.layer)
            .field("locks", &self.locks)
            .field("methods", &self.methods)
            .field("read_methods", &self.read_methods)
            .field("permits", &self.permits)
            .field("missing_key", &self.missing_key)
            .field("ttl", &self.ttl)
            .field("renew", &self.renew)
            .field("max_hold", &self.max_hold)
            .field("wait", &self.wait)
            .field("cooldown", &self.cooldown)
            .field("acquire_timeout", &self.acquire_timeout)
            .field("release_timeout", &self.release_timeout)
            .field("release_at", &self.release_at)
            .field("disconnect", &self.disconnect)
            .field("outage", &self.outage)
            .field("shadow", &self.shadow)
            .field("format", &self.format)
            .field("retry_hint", &self.retry_hint)
            .field("types", &self.types)
            .field("body", &self.body)
            .field("in_flight", &self.in_flight);
        #[cfg(feature = "replay")]
        debug.field("replay", &self.replay);
        debug.finish_non_exhaustive()
    }
}
