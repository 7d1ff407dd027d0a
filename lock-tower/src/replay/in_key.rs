//! The record of an answer in the key of its lock, which the release of the lock leaves there.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Response, request, response};
use http_body::Body;

use super::RecordedBody;
use super::body::BodyCopy;
use super::recording::{Failed, Place, Recording, TOO_LARGE, is_grpc};
use crate::key::RequestBody;
use crate::lock::{Kept, SharedLock};
use crate::options::{ReleaseAt, Remember};
use crate::policy::Policy;
use crate::response::UntilBodyEnd;

/// The key of a lock, as the place of a record.
pub(super) struct InKey(Arc<SharedLock>);

impl Place for InKey {
    fn decide(&self, remember: Remember) {
        self.0.decide(remember);
    }

    fn decided(&self) -> Option<Remember> {
        self.0.decided()
    }

    fn name(&self, policy: &Policy) -> Bytes {
        lock_name(policy, self.0.handle.key())
    }
}

impl Recording<InKey> {
    pub(super) fn in_key<B: Body>(
        policy: &Arc<Policy>,
        lock: Arc<SharedLock>,
        request: &request::Parts,
        body: RequestBody<B>,
    ) -> (Self, RequestBody<B>) {
        let (recording, body) = Self::begin(policy, InKey(lock), request, body);
        let lifetime = recording.rules.lifetime;
        recording.place.0.will_be_recorded(lifetime);
        (recording, body)
    }

    /// Tells the lock what its release leaves behind, and returns the response for the client.
    pub(super) async fn record<R: Body>(self, response: Response<R>) -> Response<RecordedBody<R>> {
        let (mut head, body) = response.into_parts();
        match self.remember(&mut head) {
            Remember::Nothing => {}
            Remember::Done => self.keep(Some(self.done())),
            // It has no body, so it is no answer to a GET, and HEAD changes nothing.
            Remember::Answer if self.method == Method::HEAD => {}
            Remember::Answer => return self.record_answer(head, body).await,
        }
        Response::from_parts(head, RecordedBody::unrecorded(body))
    }

    async fn record_answer<R: Body>(
        self,
        mut head: response::Parts,
        body: R,
    ) -> Response<RecordedBody<R>> {
        let limit = self.rules.largest_body;
        let body = match body.size_hint().exact() {
            Some(length) if length <= limit as u64 => {
                let (kept, body) = self.collected(&head, body, Some(length)).await;
                // If the client gets a part of the answer, the next attempt may run.
                self.keep_answer(kept);
                body
            }
            Some(_) => {
                self.keep(Some(self.cannot_keep(TOO_LARGE)));
                RecordedBody::unrecorded(body)
            }
            None if self.policy.release_at == ReleaseAt::BodyEnd || is_grpc(&head.headers) => {
                head.extensions.insert(UntilBodyEnd);
                // If the client leaves before the end, it is known at least that the request is done.
                self.keep(Some(self.done()));
                let copy = BodyCopy::new(self, &head, limit);
                RecordedBody::copied(body, copy)
            }
            None => {
                self.keep(Some(self.cannot_keep("the body has no known length")));
                RecordedBody::unrecorded(body)
            }
        };
        Response::from_parts(head, body)
    }

    /// Keeps an answer that is whole, or what is kept of one that has failed.
    pub(super) fn keep_answer(&self, answer: Result<Kept, Failed>) {
        self.keep(answer.map_or_else(|failed| failed.kept, Some));
    }

    /// Keeps this for duplicates, in place of what was kept before.
    pub(super) fn keep(&self, kept: Option<Kept>) {
        self.place.0.keep(kept);
    }
}

/// Returns the name of a lock, to which a seal binds its records.
pub(super) fn lock_name(policy: &Policy, key: &str) -> Bytes {
    [policy.locks.namespace(), key].concat().into()
}
