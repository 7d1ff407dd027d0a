//! Records the answer to one request.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, Response, StatusCode, header, request, response};
use http_body::Body;

use super::RecordedBody;
use super::body::BodyCopy;
use super::collect::collect;
use crate::key::{BodyTap, Remainder, RequestBody};
use crate::lock::{Kept, SharedLock, is_grpc_error};
use crate::options::{ReleaseAt, Remember};
use crate::policy::Policy;
use crate::record::{Draft, Fingerprint, Fingerprinted, ReplayRules, Sealing, digest_of_head};
use crate::response::UntilBodyEnd;

/// One request, whose answer is to be recorded.
pub(super) struct Recording {
    policy: Arc<Policy>,
    rules: Arc<ReplayRules>,
    lock: Arc<SharedLock>,
    tap: Arc<BodyTap>,
    method: Method,
}

fn is_grpc(headers: &HeaderMap) -> bool {
    let content = headers.get(header::CONTENT_TYPE);
    content.is_some_and(|content| content.as_bytes().starts_with(b"application/grpc"))
}

impl Recording {
    /// Begins with the head of the request, and digests the body while the handler reads it.
    pub(super) fn begin<B: Body>(
        policy: &Arc<Policy>,
        lock: Arc<SharedLock>,
        request: &request::Parts,
        body: RequestBody<B>,
    ) -> (Self, RequestBody<B>) {
        let rules = policy.replay.clone().expect("a recorder has its rules");
        let tap = Arc::new(BodyTap::new(digest_of_head(request)));
        let body = match rules.fingerprint {
            Fingerprint::Request => body.tapped(Arc::clone(&tap)),
            Fingerprint::Head => body,
        };
        lock.will_be_recorded(rules.lifetime);
        let recording = Self {
            policy: Arc::clone(policy),
            rules,
            lock,
            tap,
            method: request.method.clone(),
        };
        (recording, body)
    }

    /// Tells the lock what its release leaves behind, and returns the response for the client.
    pub(super) async fn record<R: Body>(self, response: Response<R>) -> Response<RecordedBody<R>> {
        let (mut head, body) = response.into_parts();
        if let Some(remember) = head.extensions.get() {
            self.lock.decide(*remember);
        }
        let remember = match self.lock.decided() {
            Some(decided) => {
                // An outer layer that replays must neither keep an answer that is secret nor repeat one.
                head.extensions.insert(decided);
                decided
            }
            None => self.rules.decide(&head),
        };
        match remember {
            Remember::Nothing => {}
            Remember::Done => self.keep_done(),
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
                let collected = collect(body, limit, self.policy.body.time).await;
                match &collected.after {
                    Remainder::End(trailers) if collected.data.len() as u64 == length => {
                        self.keep_answer(&head, &collected.data, trailers.as_ref());
                    }
                    // The client gets a part of the answer, so the next attempt may run.
                    Remainder::Failed(_) => self.keep_nothing(),
                    Remainder::More(_) if collected.data.len() as u64 <= length => {
                        self.cannot_keep("the body takes longer than `body_timeout`");
                    }
                    Remainder::End(_) | Remainder::More(_) => {
                        self.cannot_keep("the body has another length than it announced");
                    }
                }
                RecordedBody::collected(collected)
            }
            Some(_) => {
                self.cannot_keep(TOO_LARGE);
                RecordedBody::unrecorded(body)
            }
            None if self.policy.release_at == ReleaseAt::BodyEnd || is_grpc(&head.headers) => {
                head.extensions.insert(UntilBodyEnd);
                // If the client leaves before the end, it is known at least that the request is done.
                self.keep_done();
                let copy = BodyCopy::new(self, &head, limit);
                RecordedBody::copied(body, copy)
            }
            None => {
                self.cannot_keep("the body has no known length");
                RecordedBody::unrecorded(body)
            }
        };
        Response::from_parts(head, body)
    }

    /// Keeps the whole answer, or that the request is done if the answer is too large.
    pub(super) fn keep_answer(&self, head: &impl Head, body: &[u8], trailers: Option<&HeaderMap>) {
        if trailers.is_some_and(is_grpc_error) {
            return self.keep_nothing();
        }
        let (digest, read, ended) = self.tap.so_far();
        let draft = Draft {
            request: Fingerprinted {
                digest,
                read,
                ended,
            },
            status: head.status(),
            headers: head.headers(),
            body,
            trailers,
        };
        let name = lock_name(&self.policy, self.lock.handle.key());
        let sealing = Sealing::of(&self.rules, &name);
        match draft.encode(&self.rules.more_headers, sealing) {
            Some(record) => {
                let lifetime = self.rules.lifetime;
                self.lock.keep(Some(Kept::Answer(record, lifetime)));
            }
            None => self.cannot_keep("its headers are larger than 8 KiB, or the seal has failed"),
        }
    }

    pub(super) fn keep_nothing(&self) {
        self.lock.keep(None);
    }

    fn keep_done(&self) {
        self.lock.keep(Some(Kept::Done(self.rules.lifetime)));
    }

    /// Keeps that the request is done, because a large answer is no reason to run it twice.
    pub(super) fn cannot_keep(&self, reason: &'static str) {
        self.keep_done();
        let layer = self.policy.telemetry.layer;
        self.rules.warn_not_kept(layer, reason);
    }
}

pub(super) const TOO_LARGE: &str = "the body is larger than `Replay::largest_body`";

/// The head of an answer, whole or as far as it is recorded.
pub(super) trait Head {
    fn status(&self) -> StatusCode;
    fn headers(&self) -> &HeaderMap;
}

impl Head for response::Parts {
    fn status(&self) -> StatusCode {
        self.status
    }

    fn headers(&self) -> &HeaderMap {
        &self.headers
    }
}

impl Head for (StatusCode, HeaderMap) {
    fn status(&self) -> StatusCode {
        self.0
    }

    fn headers(&self) -> &HeaderMap {
        &self.1
    }
}

/// Returns the name of a lock, to which a seal binds its records.
pub(super) fn lock_name(policy: &Policy, key: &str) -> Bytes {
    [policy.locks.namespace(), key].concat().into()
}
