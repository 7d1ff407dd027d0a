//! Reads the body of a request before its handler does, within limits.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::HeaderMap;
use http_body::Body;
use tokio::time::{Sleep, sleep};

use super::request_body::{Remainder, RequestBody};
use crate::key::KeyFailure;
use crate::key::request::ReadBody;

/// Limits how much of a body is read for a key, and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyLimits {
    pub(crate) bytes: usize,
    pub(crate) time: Duration,
}

impl Default for BodyLimits {
    fn default() -> Self {
        Self {
            bytes: usize::MAX,
            time: Duration::from_secs(10),
        }
    }
}

/// Reads a body once, when an extractor asks for it.
///
/// Nothing of the body is lost, whatever happens. If the layer lets the request pass, the handler
/// receives all of it.
pub(crate) struct BodyReader<B: Body> {
    limits: BodyLimits,
    state: ReaderState<B>,
}

enum ReaderState<B: Body> {
    Untouched(B),
    Reading(BodyInProgress<B>),
    /// Reading has succeeded or failed. Later calls get the same outcome.
    Ended {
        outcome: Result<(), KeyFailure>,
        data: Bytes,
        after: Remainder<B>,
    },
    /// The state between two others.
    Changing,
}

struct BodyInProgress<B> {
    body: Pin<Box<B>>,
    /// The deadline of the whole body, even if reading is cancelled and resumed.
    deadline: Pin<Box<Sleep>>,
    data: BytesMut,
    trailers: Option<HeaderMap>,
}

impl<B: Body> BodyReader<B> {
    pub(crate) fn new(body: B, limits: BodyLimits) -> Self {
        Self {
            limits,
            state: ReaderState::Untouched(body),
        }
    }

    /// Returns the body for the handler, from its first byte.
    pub(crate) fn into_body(self) -> RequestBody<B> {
        match self.state {
            ReaderState::Untouched(body) => RequestBody::untouched(body),
            ReaderState::Reading(reading) => {
                RequestBody::read(reading.data.freeze(), Remainder::More(reading.body))
            }
            ReaderState::Ended { data, after, .. } => RequestBody::read(data, after),
            ReaderState::Changing => RequestBody::read(Bytes::new(), Remainder::End(None)),
        }
    }

    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<Result<Bytes, KeyFailure>> {
        loop {
            match &mut self.state {
                ReaderState::Untouched(body) => {
                    // The client need not send a body whose declared length exceeds the limit.
                    if body.size_hint().lower() > self.limits.bytes as u64 {
                        return Poll::Ready(Err(KeyFailure::BodyTooLarge));
                    }
                    self.begin();
                }
                ReaderState::Reading(reading) => {
                    let end = ready!(reading.poll_end(self.limits.bytes, context));
                    self.end(end);
                }
                ReaderState::Ended { outcome, data, .. } => {
                    let data = data.clone();
                    return Poll::Ready(outcome.clone().map(|()| data));
                }
                ReaderState::Changing => return Poll::Ready(Err(KeyFailure::BodyIncomplete)),
            }
        }
    }

    fn begin(&mut self) {
        self.state = match std::mem::replace(&mut self.state, ReaderState::Changing) {
            ReaderState::Untouched(body) => ReaderState::Reading(BodyInProgress {
                body: Box::pin(body),
                deadline: Box::pin(sleep(self.limits.time)),
                data: BytesMut::new(),
                trailers: None,
            }),
            begun => begun,
        };
    }

    fn end(&mut self, end: ReadEnd<B::Error>) {
        self.state = match std::mem::replace(&mut self.state, ReaderState::Changing) {
            ReaderState::Reading(reading) => {
                let more = Remainder::More(reading.body);
                let (outcome, after) = match end {
                    ReadEnd::Reached => (Ok(()), Remainder::End(reading.trailers)),
                    ReadEnd::Failed(error) => (
                        Err(KeyFailure::BodyIncomplete),
                        Remainder::Failed(Some(error)),
                    ),
                    ReadEnd::TooLarge => (Err(KeyFailure::BodyTooLarge), more),
                    ReadEnd::TooSlow => (Err(KeyFailure::BodyTimeout), more),
                };
                ReaderState::Ended {
                    outcome,
                    data: reading.data.freeze(),
                    after,
                }
            }
            other => other,
        };
    }
}

/// The point at which reading ended.
enum ReadEnd<E> {
    Reached,
    Failed(E),
    TooLarge,
    TooSlow,
}

impl<B: Body> BodyInProgress<B> {
    fn poll_end(&mut self, limit: usize, context: &mut Context<'_>) -> Poll<ReadEnd<B::Error>> {
        loop {
            let frame = match self.body.as_mut().poll_frame(context) {
                Poll::Ready(None) => return Poll::Ready(ReadEnd::Reached),
                Poll::Ready(Some(Err(error))) => return Poll::Ready(ReadEnd::Failed(error)),
                Poll::Ready(Some(Ok(frame))) => frame,
                Poll::Pending => {
                    ready!(self.deadline.as_mut().poll(context));
                    return Poll::Ready(ReadEnd::TooSlow);
                }
            };
            match frame.into_data() {
                // Empty frames may come without an end, and never reach the limit. The task yields
                // after each of them, so that other tasks on this thread can run.
                Ok(data) if !data.has_remaining() => {
                    context.waker().wake_by_ref();
                    ready!(self.deadline.as_mut().poll(context));
                    return Poll::Ready(ReadEnd::TooSlow);
                }
                Ok(data) => {
                    self.data.put(data);
                    if self.data.len() > limit {
                        return Poll::Ready(ReadEnd::TooLarge);
                    }
                }
                Err(frame) => {
                    let more = frame.into_trailers().unwrap_or_default();
                    self.trailers.get_or_insert_default().extend(more);
                }
            }
        }
    }
}

impl<B> ReadBody for BodyReader<B>
where
    B: Body<Error: Send> + Send + 'static,
{
    fn read(&mut self) -> Pin<Box<dyn Future<Output = Result<Bytes, KeyFailure>> + Send + '_>> {
        Box::pin(poll_fn(|context| self.poll_read(context)))
    }
}
