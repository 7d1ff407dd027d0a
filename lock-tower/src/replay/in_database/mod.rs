//! One request whose effect and answer are committed together, in the database of the application.
//!
//! 1. The layer *peeks* at the record, outside of a transaction. Without it, a repeated request would reach the checks of the
//!    handler first, and one whose outcome has changed meanwhile would refuse what is done. A request that has a record
//!    releases its lock before its body is compared, and the record is its answer.
//! 2. The handler begins its transaction, in which the operation is claimed.
//! 3. When it has answered, the layer completes the claim with the answer and commits, or rolls back.
//! 4. The lock is released and the answer sent, as without a database.

mod ending;
mod found;
mod place;

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode, request};
use http_body::Body;
use lock_core::OperationId;
use lock_core::once::Claim;
use tower_service::Service;

use self::ending::Ending;
use self::found::record_of;
use self::place::InDatabase;
use super::RecordedBody;
use super::duplicate::{compared, refused};
use super::recording::Recording;
use crate::key::RequestBody;
use crate::lock::{LockContext, SharedLock};
use crate::once::{AnyDatabase, Installed, Terms, log_failure};
use crate::policy::Policy;
use crate::record::ReplayRules;
use crate::rejection::{Rejection, RejectionKind};

/// A request inside the layer, before its handler runs.
pub(super) struct InTransaction {
    policy: Arc<Policy>,
    rules: Arc<ReplayRules>,
    database: Arc<dyn AnyDatabase>,
    /// `None`: the request runs without a lock.
    lock: Option<Arc<SharedLock>>,
    /// `None`: the request has no key.
    operation: Option<OperationId>,
}

impl InTransaction {
    /// Returns the transaction of a request whose context this layer has made; `None` if its records are not in a database.
    pub(super) fn of(policy: &Arc<Policy>, context: &LockContext) -> Option<Self> {
        let rules = policy.replay.as_ref()?;
        Some(Self {
            database: Arc::clone(rules.database.as_ref()?),
            rules: Arc::clone(rules),
            policy: Arc::clone(policy),
            lock: context.own_lock().cloned(),
            operation: context.own_operation(),
        })
    }

    /// Answers a request by its record or by its handler.
    pub(super) async fn run<S, B, R>(
        self,
        mut handler: S,
        request: Request<RequestBody<B>>,
    ) -> Result<Response<RecordedBody<R>>, S::Error>
    where
        S: Service<Request<RequestBody<B>>, Response = Response<R>>,
        B: Body,
        R: Body,
    {
        let request = match self.by_record(request).await {
            Ok(response) => return Ok(response),
            Err(request) => request,
        };
        let (mut parts, body) = request.into_parts();
        let claim = match self.claim() {
            Ok(claim) => claim,
            Err(rejection) => return Ok(self.refused(rejection, &parts)),
        };
        let head = parts.clone();
        let place = InDatabase::new(self.operation);
        if let Some(context) = parts.extensions.get_mut::<LockContext>() {
            context.decides_in(place.decision());
        }
        let terms = Terms {
            layer: self.policy.telemetry.layer,
            claim,
            lock: self.lock.clone(),
            wait: self.policy.wait,
        };
        let run = self.database.start(terms, &mut parts.extensions);
        let (recording, body) = Recording::begin(&self.policy, place, &parts, body);
        let ending = Ending::new(recording, head, run, self.lock);
        let result = handler.call(Request::from_parts(parts, body)).await;
        ending.end(result).await
    }

    /// Answers a request whose operation is done, and otherwise returns it.
    async fn by_record<B: Body, R: Body>(
        &self,
        request: Request<RequestBody<B>>,
    ) -> Result<Response<RecordedBody<R>>, Request<RequestBody<B>>> {
        let Some(operation) = self.operation else {
            return Err(request);
        };
        let found = match self.database.peek(operation).await {
            Ok(Some(found)) => found,
            Ok(None) => return Err(request),
            Err(error) => {
                log_failure(self.policy.telemetry.layer, &error);
                let (parts, _) = request.into_parts();
                return Ok(self.refused(Rejection::of_database(&error), &parts));
            }
        };
        let (policy, rules) = (&self.policy, &self.rules);
        // The handler does not run, also if the record is forgotten before the body is there.
        if let Some(lock) = &self.lock {
            lock.release_and_report(policy.release_timeout).await;
        }
        let answer = match record_of(policy, rules, operation, &found) {
            Ok(record) => compared(policy, record, request, rules.fingerprint).await,
            Err(rejection) => refused(policy, rejection, &request.into_parts().0),
        };
        Ok(answer.map(|(data, trailers)| RecordedBody::whole(data, trailers)))
    }

    fn claim(&self) -> Result<Option<Claim>, Rejection> {
        let claim = |operation| Claim::new(operation, self.rules.lifetime);
        let claim = self.operation.map(claim).transpose();
        claim.map_err(|error| Rejection::from(&error))
    }

    fn refused<R: Body>(
        &self,
        rejection: Rejection,
        request: &request::Parts,
    ) -> Response<RecordedBody<R>> {
        self.policy
            .refuse(rejection, request)
            .map(RecordedBody::ready)
    }
}

/// Refuses a request whose answer an outer layer commits together with its effect: one commit cannot have two records.
pub(super) fn refuse_nested<R: Body>(
    policy: &Policy,
    request: &request::Parts,
) -> Option<Response<RecordedBody<R>>> {
    request.extensions.get::<Installed>()?;
    tracing::error!(
        layer = policy.telemetry.layer,
        "a lock layer with replay stands inside of one with `in_database`, so it refuses every request: remove one of them, \
         or its replay"
    );
    let refusal = policy.refuse(Rejection::new(RejectionKind::Invalid), request);
    Some(refusal.map(RecordedBody::ready))
}

/// Answers a request whose body broke off before its head was sent.
fn broken<R: Body>() -> Response<RecordedBody<R>> {
    let mut response = Response::new(RecordedBody::ready(Bytes::new()));
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    response
}
