//! What a layer was told: which requests it locks, and how.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Response};
use lock_core::__private::{invalid, is_draining};
use lock_core::{Error, LockKey, LockManager, LockRequest, Renew, Wait};
use tracing::Span;

use crate::body_reader::BodyLimits;
use crate::context::LockContext;
use crate::cooldown::Cooldown;
use crate::in_flight::InFlight;
use crate::key::NoKey;
use crate::options::{Disconnect, MissingKey, Outage, RefusalFormat, ReleaseAt};
use crate::order::OrderWatch;
use crate::record::Record;
use crate::rejection::{Rejection, RejectionKind, TYPES};
use crate::stuck::StuckWatch;
use crate::taking::{Taking, both};

pub(crate) type OnReject = dyn Fn(&Rejection, &Parts) -> Response<Bytes> + Send + Sync;

/// Shared by a layer and all services made from it.
#[derive(Clone)]
pub(crate) struct Policy {
    pub(crate) locks: LockManager,
    /// What its keys are made of, where that is said in one.
    pub(crate) template: Option<Arc<str>>,
    /// Whether its keys ask for the route that axum has matched.
    pub(crate) names_route: bool,
    pub(crate) body: BodyLimits,
    pub(crate) methods: Vec<Method>,
    pub(crate) missing_key: MissingKey,
    pub(crate) ttl: Duration,
    pub(crate) renew: Renew,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) wait: Wait,
    pub(crate) cooldown: Cooldown,
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
    pub(crate) record: Record,
    pub(crate) in_flight: InFlight,
    pub(crate) order: Arc<OrderWatch>,
    pub(crate) stuck: Arc<StuckWatch>,
    /// What is wrong with all this, once it was looked at.
    pub(crate) checked: OnceLock<Option<Error>>,
}

impl Policy {
    pub(crate) fn new(locks: LockManager) -> Self {
        Self {
            locks,
            template: None,
            names_route: false,
            body: BodyLimits::default(),
            methods: vec![Method::POST, Method::PUT, Method::PATCH, Method::DELETE],
            missing_key: MissingKey::default(),
            ttl: Duration::from_secs(30),
            renew: Renew::default(),
            max_hold: None,
            wait: Wait::None,
            cooldown: Cooldown::default(),
            acquire_timeout: Duration::from_millis(250),
            release_timeout: Duration::from_millis(250),
            release_at: ReleaseAt::default(),
            disconnect: Disconnect::default(),
            outage: Outage::default(),
            shadow: false,
            format: RefusalFormat::default(),
            on_reject: None,
            retry_hint: Duration::from_secs(1),
            types: Cow::Borrowed(TYPES),
            record: Record::new("lock"),
            in_flight: InFlight::new(),
            order: Arc::default(),
            stuck: Arc::default(),
            checked: OnceLock::new(),
        }
    }

    /// A handler of GET serves HEAD too, in axum and by the rules of HTTP.
    pub(crate) fn locks_method(&self, method: &Method) -> bool {
        self.methods.contains(method)
            || *method == Method::HEAD && self.methods.contains(&Method::GET)
    }

    /// What no store can keep of the settings. Said once in the log, by the first who asks.
    pub(crate) fn fault(&self) -> Option<&Error> {
        let fault = self.checked.get_or_init(|| {
            let fault = self.check().err();
            if let Some(error) = &fault {
                tracing::error!(
                    layer = self.record.layer,
                    %error,
                    "the settings of a lock layer are out of bounds: it refuses every request"
                );
            }
            fault
        });
        fault.as_ref()
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let fallback = match &self.outage {
            Outage::Fallback(local) => Some(local),
            Outage::Reject | Outage::Pass => None,
        };
        // Which keys there will be nobody knows yet; the spans are the same for all.
        let cooldown = self.cooldown.longest();
        for locks in std::iter::once(&self.locks).chain(fallback) {
            let request = self
                .request(locks, LockKey::exact("any"))
                .cooldown(cooldown);
            request.check()?;
        }
        let in_uri = |c: char| c.is_ascii_graphic() && !"\"\\<>^`{|}".contains(c);
        if self.types.is_empty() || !self.types.chars().all(in_uri) {
            return Err(invalid("the base of the problem types is no URI"));
        }
        if self.retry_hint.is_zero() {
            return Err(invalid("a retry_hint of zero would mean: at once"));
        }
        if self.body.bytes == 0 || self.body.time.is_zero() {
            return Err(invalid(
                "a body limit or a body_timeout of zero lets no body be read",
            ));
        }
        Ok(())
    }

    /// Whether a layer around this one holds the lock already: the store would call its own request
    /// a duplicate, every time.
    pub(crate) fn holds_already(&self, request: &Parts, key: &LockKey) -> bool {
        LockContext::around(&request.extensions).is_some_and(|outer| {
            let fallback = match &self.outage {
                Outage::Fallback(local) => outer.is_that_of(local, key),
                Outage::Reject | Outage::Pass => false,
            };
            fallback || outer.is_that_of(&self.locks, key)
        })
    }

    pub(crate) fn take(&self, key: LockKey) -> Taking {
        match &self.outage {
            Outage::Fallback(local) => {
                let beside = self.request(local, key.clone());
                let store = self.request(&self.locks, key);
                Taking::Both(Box::pin(both(beside, store, self.locks.clone())))
            }
            Outage::Reject | Outage::Pass => {
                Taking::Store(self.request(&self.locks, key).acquire())
            }
        }
    }

    /// What becomes of a request that cannot have its lock: an answer, or `None`, and it runs
    /// without one.
    pub(crate) fn judge(&self, rejection: Rejection, request: &Parts) -> Option<Response<Bytes>> {
        let rejection = rejection.told(self.types.clone(), self.retry_hint);
        let passes = match rejection.kind() {
            _ if self.shadow => true,
            RejectionKind::KeyMissing => self.missing_key == MissingKey::Pass,
            RejectionKind::Unavailable => {
                matches!(self.outage, Outage::Pass) && !is_draining(&self.locks)
            }
            _ => false,
        };
        if passes {
            self.record.passed(&rejection, self.shadow);
            return None;
        }
        self.record.refused(&rejection);
        Some(self.respond(rejection, request))
    }

    /// Watches whether the layer is where its keys can be made.
    pub(crate) fn watch(&self, request: &Parts, key: &Result<LockKey, NoKey>) {
        if let Some(known) = self.route_known(request) {
            self.order.route(self.record.layer, known);
        }
        match key {
            Err(NoKey::Missing {
                part: Some(source), ..
            }) => self.order.key(self.record.layer, Some(source)),
            Err(_) => {}
            Ok(_) => self.order.key(self.record.layer, None),
        }
    }

    /// `None` where it does not matter: the key names no route, or the feature `axum` is off and
    /// the route is the path.
    #[cfg_attr(not(feature = "axum"), allow(unused_variables))]
    pub(crate) fn route_known(&self, request: &Parts) -> Option<bool> {
        #[cfg(feature = "axum")]
        if self.names_route {
            let matched = request.extensions.get::<axum::extract::MatchedPath>();
            return Some(matched.is_some());
        }
        None
    }

    /// Around all that is done for a request, the handler included; where nobody listens to it, the
    /// span of the caller.
    pub(crate) fn span(&self) -> Span {
        tracing::debug_span!("lock.request", layer = self.record.layer).or_current()
    }

    fn respond(&self, rejection: Rejection, request: &Parts) -> Response<Bytes> {
        let mut response = match &self.on_reject {
            Some(function) => function(&rejection, request),
            None => rejection.answer(self.format, &request.headers),
        };
        response.extensions_mut().insert(rejection);
        response
    }

    /// Everything is said here, whatever the manager's defaults are.
    ///
    /// The cooldown is not: it depends on the handler's answer.
    fn request(&self, locks: &LockManager, key: LockKey) -> LockRequest {
        // In shadow mode nobody is kept waiting either.
        let wait = if self.shadow { Wait::None } else { self.wait };
        let request = locks
            .lock(key)
            .ttl(self.ttl)
            .renew(self.renew)
            .wait(wait)
            .acquire_timeout(self.acquire_timeout);
        match self.max_hold {
            Some(longest) => request.max_hold(longest),
            None => request,
        }
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy")
            .field("name", &self.record.layer)
            .field("locks", &self.locks)
            .field("methods", &self.methods)
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
            .field("in_flight", &self.in_flight)
            .finish_non_exhaustive()
    }
}
