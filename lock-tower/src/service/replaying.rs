//! The service of a layer with replay, which records answers and repeats them.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use super::{LockService, continue_with, pass_method};
use crate::key::{BodyLimits, HeadOnly, KeyLookup, RequestBody, WithBody};
use crate::replay::{RecordedBody, Recorder, answer_duplicate, unrecorded};
use crate::response::{ReadyService, ResponseBody, ResponseFuture};

/// Marks a layer that [repeats answers](crate::LockLayer::replay).
///
/// Its keys are made as before. Requests reach the inner service with a [`RequestBody`], and the inner
/// service answers with a `Body`.
#[derive(Clone)]
pub struct Replaying(KeySource);

#[derive(Clone)]
enum KeySource {
    Head(HeadOnly),
    Body(WithBody),
}

impl From<HeadOnly> for Replaying {
    fn from(key: HeadOnly) -> Self {
        Self(KeySource::Head(key))
    }
}

impl From<WithBody> for Replaying {
    fn from(key: WithBody) -> Self {
        Self(KeySource::Body(key))
    }
}

impl Replaying {
    pub(crate) fn lookup<B>(
        &self,
        request: Request<B>,
        limits: BodyLimits,
    ) -> KeyLookup<RequestBody<B>>
    where
        B: Body<Error: Send> + Send + 'static,
    {
        match &self.0 {
            KeySource::Head(key) => key.lookup(request.map(RequestBody::untouched)),
            KeySource::Body(key) => key.lookup(request, limits),
        }
    }
}

/// Records the first answer to each request, and repeats it to duplicates.
///
/// # Panics
///
/// The future panics in the same cases as that of a layer without replay.
impl<S, B, R> Service<Request<B>> for LockService<S, Replaying>
where
    S: Service<Request<RequestBody<B>>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Body<Error: Send> + Send + 'static,
    R: Body<Error: Send> + Send + 'static,
{
    type Response = Response<ResponseBody<RecordedBody<R>>>;
    type Error = S::Error;
    type Future = ResponseFuture<Recorder<S>, RequestBody<B>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if !self.policy.locks_method(request.method()) {
            let request = request.map(RequestBody::untouched);
            return pass_method(request, |request| unrecorded(self.inner.call(request)));
        }
        let key = self.key.lookup(request, self.policy.body);
        let ready = ReadyService {
            inner: Recorder::new(self.take_ready(), Arc::clone(&self.policy)),
            policy: Arc::clone(&self.policy),
            answer_duplicate: Some(answer_duplicate),
        };
        continue_with(ready, key)
    }
}

impl fmt::Debug for Replaying {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Replaying")
    }
}
