//! A body that follows the script of a test, frame by frame.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body::{Frame, SizeHint};

use Event::{Data, Empty, Error, Late, Pause, Silence, Trailers};

/// Yields the frames of the script, and counts how often it is polled.
#[derive(Clone, Default)]
pub(crate) struct Script {
    frames: VecDeque<Event>,
    length: Option<u64>,
    pub(crate) polls: Arc<AtomicUsize>,
}

#[derive(Clone)]
pub(crate) enum Event {
    Data(&'static [u8]),
    Trailers(&'static str),
    Error,
    /// Stays pending for ever.
    Silence,
    /// Is pending once, and wakes the task.
    Pause,
    /// Is pending until it is polled without a wake-up.
    Late,
    /// Yields empty frames without an end.
    Empty,
}

impl Script {
    pub(crate) fn of(frames: impl IntoIterator<Item = Event>) -> Self {
        Self {
            frames: frames.into_iter().collect(),
            ..Self::default()
        }
    }

    pub(crate) fn announcing(self, length: u64) -> Self {
        Self {
            length: Some(length),
            ..self
        }
    }
}

impl http_body::Body for Script {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.polls.fetch_add(1, Ordering::Relaxed);
        let Some(event) = self.frames.pop_front() else {
            return Poll::Ready(None);
        };
        Poll::Ready(Some(match event {
            Data(bytes) => Ok(Frame::data(Bytes::from_static(bytes))),
            Trailers(value) => {
                let mut trailers = HeaderMap::new();
                trailers.insert("checksum", value.parse().unwrap());
                Ok(Frame::trailers(trailers))
            }
            Error => Err(io::Error::other("the client has gone")),
            Silence => {
                self.frames.push_front(Silence);
                return Poll::Pending;
            }
            Late => return Poll::Pending,
            Empty => {
                let polls = self.polls.load(Ordering::Relaxed);
                assert!(polls < 1_000_000, "it is asked without an end");
                self.frames.push_front(Empty);
                Ok(Frame::data(Bytes::new()))
            }
            Pause => {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.frames.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        match self.length {
            Some(length) => SizeHint::with_exact(length),
            None => SizeHint::default(),
        }
    }
}

pub(crate) fn post(body: Script) -> Request<Script> {
    let request = Request::post("/orders").header("x-user-id", "42");
    request.body(body).unwrap()
}
