//! A sample request that finds out whether a layer is in the right place.

use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use lock_core::LockKey;
use tower_service::Service;

use crate::key::NoKey;
use crate::policy::Policy;
use crate::rejection::Rejection;

/// Sends a sample request through a whole application, to where its lock layer would take the
/// lock, and says whether it could: for a test, or for the start of a service before it serves.
///
/// The layers outside of the lock layer run as for any request, so give the sample what they ask
/// for, credentials too. The lock layer answers it with 204 and asks the store nothing; the handler
/// does not run. Of two lock layers, one inside the other, it is the outer one that is tried.
///
/// # Errors
///
/// What is wrong, and what to change: see [`ProbeError`].
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let locks = lock_core::LockManager::in_memory();
/// # use {axum::{Router, body::Body, routing::post}, http::Request, lock_tower::LockLayer};
/// # let layer = LockLayer::template(locks, "submit:<header.x-user-id>:<method>:<route>")?;
/// # async fn create_order() {}
/// let app = Router::new().route("/orders", post(create_order)).route_layer(layer);
/// let sample = Request::post("/orders").header("x-user-id", "42").body(Body::empty())?;
/// lock_tower::probe(app.clone(), sample).await?;
/// // … serve(app) …
/// # Ok(()) }
/// ```
pub async fn probe<S, B, R>(mut app: S, mut sample: Request<B>) -> Result<(), ProbeError>
where
    S: Service<Request<B>, Response = Response<R>>,
{
    let probing = Probing::default();
    sample.extensions_mut().insert(probing.clone());
    let response = match poll_fn(|context| app.poll_ready(context)).await {
        Ok(()) => app.call(sample).await,
        Err(error) => Err(error),
    };
    let found = probing.found();
    found.unwrap_or_else(|| {
        let status = response.ok().map(|response| response.status());
        Err(ProbeError::NotReached { status })
    })
}

/// Why a [`probe`] got no lock: most of the time, layers in the wrong order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProbeError {
    /// The sample reached no lock layer. Its route is not behind one, or a layer outside has
    /// answered it, with this status.
    NotReached {
        /// The status of the answer; `None` if the service failed.
        status: Option<StatusCode>,
    },
    /// The lock layer lets the sample's method pass.
    MethodNotLocked,
    /// No key could be made of the sample.
    NoKey {
        /// The code that requests would be answered with.
        code: &'static str,
        /// The part that is missing or ambiguous, as the template names it.
        source: Option<String>,
    },
    /// The key names `<route>`, and axum has matched none where the layer stands.
    RouteUnknown,
    /// A setting of the lock layer is out of bounds: it refuses every request, see
    /// [`LockLayer::checked`](crate::LockLayer::checked).
    Invalid {
        /// Which one, and its bound.
        reason: String,
    },
}

impl fmt::Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotReached { status } => {
                f.write_str("the sample reached no lock layer")?;
                if let Some(status) = status {
                    write!(f, " and was answered with {}", status.as_u16())?;
                }
                f.write_str(
                    "; is its route behind one, and has the sample what the layers outside ask for?",
                )
            }
            Self::MethodNotLocked => f.write_str(
                "the lock layer lets the sample's method pass; use one of `LockLayer::methods`",
            ),
            Self::NoKey { code, source } => {
                write!(f, "no key can be made of the sample ({code}")?;
                if let Some(source) = source {
                    write!(f, ": {source}")?;
                }
                f.write_str(
                    "); if the sample has what the key is made of, the lock layer is outside of \
                     the layer that provides it. In axum the layer that is added last is the \
                     outermost",
                )
            }
            Self::RouteUnknown => f.write_str(
                "axum has matched no route where the lock layer stands, so that `<route>` is the \
                 path; add the layer by `Router::route_layer` or `Router::layer` instead of putting \
                 it around the router",
            ),
            Self::Invalid { reason } => {
                write!(f, "the settings of the lock layer are out of bounds: {reason}")
            }
        }
    }
}

impl std::error::Error for ProbeError {}

/// In the sample's extensions: no request from outside can have it.
#[derive(Clone, Default)]
pub(crate) struct Probing(Arc<Mutex<Option<Result<(), ProbeError>>>>);

impl Probing {
    pub(crate) fn not_locked(&self) -> Response<Bytes> {
        self.note(Err(ProbeError::MethodNotLocked))
    }

    pub(crate) fn answer(
        &self,
        policy: &Policy,
        sample: &Parts,
        key: Result<LockKey, NoKey>,
    ) -> Response<Bytes> {
        if let Some(error) = policy.fault() {
            let reason = error.to_string();
            return self.note(Err(ProbeError::Invalid { reason }));
        }
        self.note(match key {
            _ if policy.route_known(sample) == Some(false) => Err(ProbeError::RouteUnknown),
            Ok(_) => Ok(()),
            Err(no_key) => {
                let rejection = Rejection::from(no_key);
                Err(ProbeError::NoKey {
                    code: rejection.code(),
                    source: rejection.source().map(str::to_owned),
                })
            }
        })
    }

    fn note(&self, finding: Result<(), ProbeError>) -> Response<Bytes> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(finding);
        let mut response = Response::new(Bytes::new());
        *response.status_mut() = StatusCode::NO_CONTENT;
        response
    }

    fn found(&self) -> Option<Result<(), ProbeError>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
