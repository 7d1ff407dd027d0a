//! Answers a duplicate with the recorded answer of the first request.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, header};
use http_body::Body;
use lock_core::Error;

use super::compare::{is_same, read_on};
use super::in_key::lock_name;
use crate::key::RequestBody;
use crate::lock::{BoxFuture, Replayed};
use crate::policy::Policy;
use crate::record::{Fingerprint, Record, Sealing};
use crate::rejection::{DONE, Rejection, RejectionKind, is_cooldown};
use crate::response::ReadyBody;

const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// Answers a request if its refusal carries a record, and otherwise returns the request.
///
/// A request that is done or whose record cannot be read is refused behind its body.
#[expect(
    clippy::result_large_err,
    reason = "it is matched at once, and a box would cost every refusal an allocation"
)]
pub(crate) fn answer_duplicate<B>(
    policy: &Arc<Policy>,
    error: &Error,
    request: Request<RequestBody<B>>,
) -> Result<BoxFuture<Response<ReadyBody>>, Request<RequestBody<B>>>
where
    B: Body<Error: Send> + Send + 'static,
{
    // In shadow mode the request runs, and is counted like a request in a cooldown.
    let (false, Some(bytes), Some(rules)) = (policy.shadow, error.record(), &policy.replay) else {
        return Err(request);
    };
    if is_cooldown(bytes) {
        return Err(request);
    }
    let name = lock_name(policy, error.key().unwrap_or_default());
    let record = match bytes {
        DONE => None,
        bytes => Record::decode(bytes, Sealing::of(rules, &name))
            .map_err(|reason| policy.telemetry.unreadable(reason.as_str()))
            .ok(),
    };
    let rejection = Rejection::from(error);
    let fingerprint = rules.fingerprint;
    let policy = Arc::clone(policy);
    Ok(Box::pin(async move {
        let answer = match record {
            Some(record) => compared(&policy, record, request, fingerprint).await,
            None => {
                let (parts, body) = request.into_parts();
                read_on(pin!(body), policy.body.time).await;
                refused(&policy, rejection, &parts)
            }
        };
        answer.map(|(data, trailers)| ReadyBody::new(data, trailers))
    }))
}

/// The data and the trailers of an answer that the layer makes.
pub(super) type Whole = (Bytes, Option<HeaderMap>);

/// Repeats a recorded answer, if the request is the same as the first one.
pub(super) async fn compared<B>(
    policy: &Policy,
    record: Record,
    request: Request<RequestBody<B>>,
    fingerprint: Fingerprint,
) -> Response<Whole>
where
    B: Body,
{
    let (parts, body) = request.into_parts();
    let same = is_same(record.request, &parts, body, fingerprint, policy.body.time).await;
    let rejection = match same {
        Ok(true) => return repeated(policy, record, &parts.method),
        Ok(false) => Rejection::new(RejectionKind::KeyReused),
        Err(failure) => Rejection::from(failure),
    };
    refused(policy, rejection, &parts)
}

/// Refuses a request that was to be compared or repeated.
pub(super) fn refused(policy: &Policy, rejection: Rejection, request: &Parts) -> Response<Whole> {
    policy.refuse(rejection, request).map(|data| (data, None))
}

/// Repeats a recorded answer.
pub(super) fn repeated(policy: &Policy, record: Record, method: &Method) -> Response<Whole> {
    policy.telemetry.replayed();
    let length = record.body.len();
    let body = match *method {
        Method::HEAD => (Bytes::new(), None),
        _ => (record.body, record.trailers),
    };
    let mut response = Response::new(body);
    *response.status_mut() = record.status;
    *response.headers_mut() = record.headers;
    if *method == Method::HEAD {
        let length = HeaderValue::from(length);
        response
            .headers_mut()
            .insert(header::CONTENT_LENGTH, length);
    }
    let replayed = HeaderValue::from_static("true");
    response.headers_mut().insert(REPLAYED, replayed);
    response.extensions_mut().insert(Replayed);
    response
}
