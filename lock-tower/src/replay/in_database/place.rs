//! The database, as the place of a record.

use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use http::response;
use http_body::Body;
use lock_core::OperationId;

use super::super::RecordedBody;
use super::super::recording::{Failed, Place, Recording, TOO_LARGE, is_grpc};
use crate::lock::{Decision, Kept};
use crate::options::Remember;
use crate::policy::Policy;

pub(super) struct InDatabase {
    /// `None`: the request has no key, so nothing is recorded.
    pub(super) operation: Option<OperationId>,
    decision: Arc<Decision>,
}

impl InDatabase {
    pub(super) fn new(operation: Option<OperationId>) -> Self {
        let decision = Arc::default();
        Self {
            operation,
            decision,
        }
    }

    pub(super) fn decision(&self) -> &Arc<Decision> {
        &self.decision
    }
}

/// Returns the name of a record, to which a seal binds it.
pub(super) fn record_name(operation: OperationId) -> Bytes {
    Bytes::copy_from_slice(&operation.to_bytes())
}

impl Place for InDatabase {
    fn decide(&self, remember: Remember) {
        self.decision.set(remember);
    }

    fn decided(&self) -> Option<Remember> {
        self.decision.of_handler()
    }

    fn name(&self, _: &Policy) -> Bytes {
        self.operation.map(record_name).unwrap_or_default()
    }
}

impl Recording<InDatabase> {
    /// Returns what is kept of a response, and the response's body. `Done` is kept of one that fails, too.
    ///
    /// A body of unknown length is sent after the commit, so it cannot be recorded. Only the trailers of a gRPC call say
    /// whether it has succeeded, so its body is read before the commit in any case.
    pub(super) async fn kept<R: Body>(
        &self,
        remember: Remember,
        head: &response::Parts,
        body: R,
    ) -> (Result<Option<Kept>, Failed>, RecordedBody<R>) {
        let length = body.size_hint().exact();
        let fits = length.is_some_and(|length| length <= self.rules.largest_body as u64);
        // It has no body, so it is no answer to a GET.
        let is_head = self.method == Method::HEAD;
        let answers = remember == Remember::Answer && !is_head;
        if (answers && fits) || (is_grpc(&head.headers) && !is_head) {
            let (answer, body) = self.collected(head, body, length).await;
            let kept = |answer| match remember {
                Remember::Answer => answer,
                Remember::Done => Some(self.done()),
                Remember::Nothing => None,
            };
            let kept = match answer {
                Ok(answer) => Ok(kept(Some(answer))),
                Err(failed) => Err(failed.failure.keeping(kept(failed.kept))),
            };
            return (kept, body);
        }
        let kept = match (remember, length) {
            (Remember::Nothing, _) => None,
            (Remember::Done, _) => Some(self.done()),
            (Remember::Answer, _) if is_head => None,
            (Remember::Answer, Some(_)) => Some(self.cannot_keep(TOO_LARGE)),
            (Remember::Answer, None) => Some(self.cannot_keep("the body has no known length")),
        };
        (Ok(kept), RecordedBody::unrecorded(body))
    }
}
