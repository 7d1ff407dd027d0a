//! Reads the body of a request before its handler does, within limits.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::HeaderMap;
use http_body::Body;
use tokio::time::{Sleep, sleep};

use crate::key::{NoKey, ReadBody};
use crate::request_body::{After, RequestBody};

/// How much of a body is read for a key, and for how long.
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

/// A body that is read when somebody asks for it, once. Whatever happens on the way, nothing of it is
/// lost: a layer that lets its request pass all the same lets all of it pass.
pub(crate) struct BodyReader<B: Body> {
    limits: BodyLimits,
    state: State<B>,
}

enum State<B: Body> {
    Untouched(B),
    Reading(Reading<B>),
    /// Read, or not: for whoever asks again.
    Ended {
        outcome: Result<(), NoKey>,
        data: Bytes,
        after: After<B>,
    },
    /// While one state becomes another.
    Changing,
}

struct Reading<B> {
    body: Pin<Box<B>>,
    /// Of the whole body, however often its reading is given up and begun again.
    deadline: Pin<Box<Sleep>>,
    data: BytesMut,
    trailers: Option<HeaderMap>,
}

impl<B: Body> BodyReader<B> {
    pub(crate) fn new(body: B, limits: BodyLimits) -> Self {
        Self {
            limits,
            state: State::Untouched(body),
        }
    }

    /// For the handler, from its first byte.
    pub(crate) fn into_body(self) -> RequestBody<B> {
        match self.state {
            State::Untouched(body) => RequestBody::untouched(body),
            State::Reading(reading) => {
                RequestBody::read(reading.data.freeze(), After::More(reading.body))
            }
            State::Ended { data, after, .. } => RequestBody::read(data, after),
            State::Changing => RequestBody::read(Bytes::new(), After::End(None)),
        }
    }

    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<Result<Bytes, NoKey>> {
        loop {
            match &mut self.state {
                State::Untouched(body) => {
                    // What says beforehand that it is too large need not be sent.
                    if body.size_hint().lower() > self.limits.bytes as u64 {
                        return Poll::Ready(Err(NoKey::BodyTooLarge));
                    }
                    self.begin();
                }
                State::Reading(reading) => {
                    let end = ready!(reading.poll_end(self.limits.bytes, context));
                    self.end(end);
                }
                State::Ended { outcome, data, .. } => {
                    let data = data.clone();
                    return Poll::Ready(outcome.clone().map(|()| data));
                }
                State::Changing => return Poll::Ready(Err(NoKey::BodyIncomplete)),
            }
        }
    }

    fn begin(&mut self) {
        self.state = match std::mem::replace(&mut self.state, State::Changing) {
            State::Untouched(body) => State::Reading(Reading {
                body: Box::pin(body),
                deadline: Box::pin(sleep(self.limits.time)),
                data: BytesMut::new(),
                trailers: None,
            }),
            begun => begun,
        };
    }

    fn end(&mut self, end: End<B::Error>) {
        self.state = match std::mem::replace(&mut self.state, State::Changing) {
            State::Reading(reading) => {
                let more = After::More(reading.body);
                let (outcome, after) = match end {
                    End::Reached => (Ok(()), After::End(reading.trailers)),
                    End::Failed(error) => (Err(NoKey::BodyIncomplete), After::Failed(Some(error))),
                    End::TooLarge => (Err(NoKey::BodyTooLarge), more),
                    End::TooSlow => (Err(NoKey::BodyTimeout), more),
                };
                State::Ended {
                    outcome,
                    data: reading.data.freeze(),
                    after,
                }
            }
            other => other,
        };
    }
}

/// Where reading has ended.
enum End<E> {
    Reached,
    Failed(E),
    TooLarge,
    TooSlow,
}

impl<B: Body> Reading<B> {
    fn poll_end(&mut self, limit: usize, context: &mut Context<'_>) -> Poll<End<B::Error>> {
        loop {
            let frame = match self.body.as_mut().poll_frame(context) {
                Poll::Ready(None) => return Poll::Ready(End::Reached),
                Poll::Ready(Some(Err(error))) => return Poll::Ready(End::Failed(error)),
                Poll::Ready(Some(Ok(frame))) => frame,
                Poll::Pending => {
                    ready!(self.deadline.as_mut().poll(context));
                    return Poll::Ready(End::TooSlow);
                }
            };
            match frame.into_data() {
                // A body of nothing but empty frames has neither a limit nor an end: one for each
                // time that the others on this thread have had their turn.
                Ok(data) if !data.has_remaining() => {
                    context.waker().wake_by_ref();
                    ready!(self.deadline.as_mut().poll(context));
                    return Poll::Ready(End::TooSlow);
                }
                Ok(data) => {
                    self.data.put(data);
                    if self.data.len() > limit {
                        return Poll::Ready(End::TooLarge);
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
    fn read(&mut self) -> Pin<Box<dyn Future<Output = Result<Bytes, NoKey>> + Send + '_>> {
        Box::pin(poll_fn(|context| self.poll_read(context)))
    }
}
