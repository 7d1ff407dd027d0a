//! Records the answer to one request, in whatever place.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header, request, response};
use http_body::Body;

use super::RecordedBody;
use super::collect::collect;
use crate::key::{BodyTap, Remainder, RequestBody};
use crate::lock::{Kept, is_grpc_error};
use crate::options::Remember;
use crate::policy::Policy;
use crate::record::{Draft, Fingerprint, Fingerprinted, ReplayRules, Sealing, digest_of_head};

/// One request, whose answer is to be recorded.
pub(super) struct Recording<P> {
    pub(super) policy: Arc<Policy>,
    pub(super) rules: Arc<ReplayRules>,
    pub(super) place: P,
    pub(super) method: Method,
    tap: Arc<BodyTap>,
}

/// The place of a record: the key of a lock, or a database.
pub(super) trait Place {
    /// Decides what is remembered of the request.
    fn decide(&self, remember: Remember);

    /// Returns the decision of the handler.
    fn decided(&self) -> Option<Remember>;

    /// Returns the name of the record, to which a seal binds it.
    fn name(&self, policy: &Policy) -> Bytes;
}

/// The reason for which a response that seemed to be a success is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// A gRPC call has failed, as its trailers say.
    Call,
    /// The body has broken off.
    Body,
}

/// A response that has failed behind its head, and what is kept of it nevertheless.
pub(super) struct Failed {
    /// Only a transaction ends in another way after a failure.
    #[cfg_attr(not(feature = "once"), allow(dead_code))]
    pub(super) failure: Failure,
    pub(super) kept: Option<Kept>,
}

impl Failure {
    pub(super) fn keeping(self, kept: Option<Kept>) -> Failed {
        let failure = self;
        Failed { failure, kept }
    }
}

pub(super) const TOO_LARGE: &str = "the body is larger than `Replay::largest_body`";

pub(super) fn is_grpc(headers: &HeaderMap) -> bool {
    let content = headers.get(header::CONTENT_TYPE);
    content.is_some_and(|content| content.as_bytes().starts_with(b"application/grpc"))
}

impl<P: Place> Recording<P> {
    /// Begins with the head of the request, and digests the body while the handler reads it.
    pub(super) fn begin<B: Body>(
        policy: &Arc<Policy>,
        place: P,
        request: &request::Parts,
        body: RequestBody<B>,
    ) -> (Self, RequestBody<B>) {
        let rules = policy.replay.clone().expect("a recorder has its rules");
        let tap = Arc::new(BodyTap::new(digest_of_head(request)));
        let body = match rules.fingerprint {
            Fingerprint::Request => body.tapped(Arc::clone(&tap)),
            Fingerprint::Head => body,
        };
        let recording = Self {
            policy: Arc::clone(policy),
            rules,
            place,
            method: request.method.clone(),
            tap,
        };
        (recording, body)
    }

    /// Decides what is remembered of a response.
    pub(super) fn remember(&self, head: &mut response::Parts) -> Remember {
        if let Some(remember) = head.extensions.get() {
            self.place.decide(*remember);
        }
        match self.place.decided() {
            Some(decided) => {
                // An outer layer that replays must neither keep an answer that is secret nor repeat one.
                head.extensions.insert(decided);
                decided
            }
            None => self.rules.decide(head),
        }
    }

    /// Reads a body to its end, and returns what is kept of the answer, and the body for the client.
    ///
    /// `length` is the one that the body has announced.
    pub(super) async fn collected<R: Body>(
        &self,
        head: &response::Parts,
        body: R,
        length: Option<u64>,
    ) -> (Result<Kept, Failed>, RecordedBody<R>) {
        let limit = self.rules.largest_body;
        let collected = collect(body, limit, self.policy.body.time).await;
        let read = collected.data.len() as u64;
        let (status, headers) = (head.status, &head.headers);
        let kept = match &collected.after {
            Remainder::End(trailers) if length.is_none_or(|length| length == read) => {
                self.answer(status, headers, &collected.data, trailers.as_ref())
            }
            Remainder::Failed(_) => Err(Failure::Body.keeping(None)),
            Remainder::More(_) if length.is_none() && read > limit as u64 => {
                Ok(self.cannot_keep(TOO_LARGE))
            }
            Remainder::More(_) if length.is_none_or(|length| read <= length) => {
                Ok(self.cannot_keep("the body takes longer than `body_timeout`"))
            }
            Remainder::End(_) | Remainder::More(_) => {
                Ok(self.cannot_keep("the body has another length than it announced"))
            }
        };
        (kept, RecordedBody::collected(collected, length))
    }

    /// Encodes the whole answer. If it is too large, the request is done.
    ///
    /// A gRPC call that has failed is kept only if the handler has decided so. Others decide by the head alone.
    pub(super) fn answer(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
        trailers: Option<&HeaderMap>,
    ) -> Result<Kept, Failed> {
        let failed = trailers.is_some_and(is_grpc_error);
        if failed && self.place.decided() != Some(Remember::Answer) {
            return Err(Failure::Call.keeping(None));
        }
        let draft = Draft {
            request: self.fingerprint(),
            status,
            headers,
            body,
            trailers,
        };
        let name = self.place.name(&self.policy);
        let sealing = Sealing::of(&self.rules, &name);
        let kept = match draft.encode(&self.rules.more_headers, sealing) {
            Some(record) => Kept::Answer(record, self.rules.lifetime),
            None => self.cannot_keep("its headers are larger than 8 KiB, or the seal has failed"),
        };
        match failed {
            false => Ok(kept),
            true => Err(Failure::Call.keeping(Some(kept))),
        }
    }

    /// Returns the fingerprint of the request, as far as the handler has read it.
    pub(super) fn fingerprint(&self) -> Fingerprinted {
        let (digest, read, ended) = self.tap.so_far();
        Fingerprinted {
            digest,
            read,
            ended,
        }
    }

    pub(super) fn done(&self) -> Kept {
        Kept::Done(self.rules.lifetime)
    }

    /// Keeps that the request is done, because a large answer is no reason to run it twice.
    pub(super) fn cannot_keep(&self, reason: &'static str) -> Kept {
        let layer = self.policy.telemetry.layer;
        self.rules.warn_not_kept(layer, reason);
        self.done()
    }
}
