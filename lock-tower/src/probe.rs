//! Checks with a sample request whether a layer stands in the right place.

use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use tower_service::Service;

use crate::key::{KeyFailure, RequestKeys};
use crate::policy::Policy;
use crate::rejection::Rejection;

/// Sends a sample request through an application and checks that its lock layer can make a key.
///
/// Call it in a test, or at the start of a service before it serves.
///
/// The layers outside of the lock layer run as for any request, so the sample needs all that they
/// require, such as credentials. The lock layer answers the sample with 204, does not ask the
/// store, and does not call the handler. Of two nested lock layers, the probe checks the outer one.
///
/// Only a lock layer recognizes the sample. Where none is in its way, which is what the probe is to find, the application
/// handles the sample like any request, and **the handler runs**. Before a service with a live database, send a sample
/// that the handler refuses, for example without the body that it expects. The probe then fails with
/// [`NotReached`](ProbeError::NotReached) and the status of that refusal.
///
/// # Errors
///
/// [`ProbeError`] says what is wrong and what to change.
///
/// # Cancel safety
///
/// Dropping the future drops the sample request, which has taken no lock.
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
    let finding = probing.finding();
    finding.unwrap_or_else(|| {
        let status = response.ok().map(|response| response.status());
        Err(ProbeError::NotReached { status })
    })
}

/// The reason why a [`probe`] failed. Most often the layers are in the wrong order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProbeError {
    /// The sample reached no lock layer.
    ///
    /// Its route is not behind a lock layer, or an outer layer has answered it. In the first case the handler has run.
    NotReached {
        /// The status of the response, or `None` if the service failed.
        status: Option<StatusCode>,
    },
    /// The lock layer does not lock the sample's method.
    MethodNotLocked,
    /// No key could be made of the sample.
    NoKey {
        /// The code with which the layer would refuse such requests.
        code: &'static str,
        /// The part of the key that is missing or ambiguous, as the template names it.
        source: Option<String>,
    },
    /// The key contains `<route>`, but axum has matched no route where the layer stands.
    RouteUnknown,
    /// A setting of the lock layer is out of bounds, so the layer refuses every request.
    ///
    /// [`LockLayer::checked`](crate::LockLayer::checked) finds this as well.
    Invalid {
        /// The setting and its bound.
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
                    "; is its route behind one, and does the sample carry all that the outer layers \
                     require? A handler without a lock layer may have run",
                )
            }
            Self::MethodNotLocked => f.write_str(
                "the lock layer does not lock the sample's method; use one of `LockLayer::methods`",
            ),
            Self::NoKey { code, source } => {
                write!(f, "no key can be made of the sample ({code}")?;
                if let Some(source) = source {
                    write!(f, ": {source}")?;
                }
                f.write_str(
                    "); if the sample carries this value, the lock layer is outside of the layer that \
                     provides it. In axum the layer that is added last is the outermost",
                )
            }
            Self::RouteUnknown => f.write_str(
                "axum has matched no route where the lock layer stands, so `<route>` is the path; add the layer by `Router::route_layer` or `Router::layer` instead of putting \
                 it around the router",
            ),
            Self::Invalid { reason } => {
                write!(f, "the settings of the lock layer are out of bounds: {reason}")
            }
        }
    }
}

impl std::error::Error for ProbeError {}

/// Marks the sample in its extensions, which no request from outside can do.
#[derive(Clone, Default)]
pub(crate) struct Probing(Arc<Mutex<Option<Result<(), ProbeError>>>>);

impl Probing {
    pub(crate) fn not_locked(&self) -> Response<Bytes> {
        self.record(Err(ProbeError::MethodNotLocked))
    }

    pub(crate) fn answer(
        &self,
        policy: &Policy,
        sample: &Parts,
        key: Result<RequestKeys, KeyFailure>,
    ) -> Response<Bytes> {
        if let Some(error) = policy.invalid_settings() {
            let reason = error.to_string();
            return self.record(Err(ProbeError::Invalid { reason }));
        }
        self.record(match key {
            _ if policy.route_known(sample) == Some(false) => Err(ProbeError::RouteUnknown),
            Ok(_) => Ok(()),
            Err(failure) => {
                let rejection = Rejection::from(failure);
                Err(ProbeError::NoKey {
                    code: rejection.code(),
                    source: rejection.source().map(str::to_owned),
                })
            }
        })
    }

    fn record(&self, finding: Result<(), ProbeError>) -> Response<Bytes> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(finding);
        let mut response = Response::new(Bytes::new());
        *response.status_mut() = StatusCode::NO_CONTENT;
        response
    }

    fn finding(&self) -> Option<Result<(), ProbeError>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
