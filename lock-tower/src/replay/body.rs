//! The body of a response whose answer may be recorded.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode, response};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::collect::Collected;
use super::in_key::InKey;
use super::recording::{Recording, TOO_LARGE};
use crate::key::{Remainder, RequestBody};

pin_project! {
    /// The body of a response behind a layer with [replay](crate::LockLayer::replay).
    ///
    /// It yields the data, as [`Bytes`], and the trailers of the inner body.
    pub struct RecordedBody<B: Body> {
        #[pin]
        body: RequestBody<B>,
        copy: Option<Box<BodyCopy>>,
        // The length that a collected body has announced. A server cuts a body that has another one.
        announced: Option<u64>,
    }
}

impl<B: Body> RecordedBody<B> {
    pub(super) fn unrecorded(body: B) -> Self {
        Self::without_copy(RequestBody::untouched(body))
    }

    pub(super) fn ready(text: Bytes) -> Self {
        Self::without_copy(RequestBody::read(text, Remainder::End(None)))
    }

    /// Makes a body whose data and trailers are there.
    #[cfg(feature = "once")]
    pub(super) fn whole(data: Bytes, trailers: Option<HeaderMap>) -> Self {
        Self::without_copy(RequestBody::read(data, Remainder::End(trailers)))
    }

    pub(super) fn collected(collected: Collected<B>, announced: Option<u64>) -> Self {
        let body = RequestBody::read(collected.data, collected.after);
        Self {
            announced,
            ..Self::without_copy(body)
        }
    }

    pub(super) fn copied(body: B, copy: BodyCopy) -> Self {
        let copy = Some(Box::new(copy));
        Self {
            copy,
            ..Self::unrecorded(body)
        }
    }

    fn without_copy(body: RequestBody<B>) -> Self {
        Self {
            body,
            copy: None,
            announced: None,
        }
    }
}

/// Copies a body while it is sent, and records the answer at its end.
///
/// If it is dropped earlier, the request stays done without an answer.
pub(super) struct BodyCopy {
    recording: Recording<InKey>,
    head: (StatusCode, HeaderMap),
    data: BytesMut,
    trailers: Option<HeaderMap>,
    limit: usize,
}

impl BodyCopy {
    pub(super) fn new(recording: Recording<InKey>, head: &response::Parts, limit: usize) -> Self {
        Self {
            recording,
            head: (head.status, head.headers.clone()),
            data: BytesMut::new(),
            trailers: None,
            limit,
        }
    }

    /// Copies a frame, and returns whether the answer can still be recorded.
    fn push(&mut self, frame: &Frame<Bytes>) -> bool {
        if let Some(data) = frame.data_ref() {
            self.data.extend_from_slice(data);
        }
        if let Some(trailers) = frame.trailers_ref() {
            self.trailers = Some(trailers.clone());
        }
        let fits = self.data.len() <= self.limit;
        if !fits {
            let done = self.recording.cannot_keep(TOO_LARGE);
            self.recording.keep(Some(done));
        }
        fits
    }

    fn finish(self) {
        let (status, headers) = &self.head;
        let answer = self
            .recording
            .answer(*status, headers, &self.data, self.trailers.as_ref());
        self.recording.keep_answer(answer);
    }
}

impl<B: Body> Body for RecordedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let mut this = self.project();
        *this.announced = None;
        let frame = ready!(this.body.as_mut().poll_frame(context));
        if let Some(copy) = this.copy {
            let goes_on = match &frame {
                Some(Ok(frame)) => copy.push(frame),
                Some(Err(_)) => {
                    copy.recording.keep(None);
                    false
                }
                None => true,
            };
            // A server does not poll again when it knows that this was the last frame, as trailers are.
            let ended = match &frame {
                Some(Ok(frame)) if frame.is_trailers() => true,
                frame => frame.is_none() || this.body.is_end_stream(),
            };
            if ended || !goes_on {
                let copy = this.copy.take().filter(|_| goes_on);
                copy.into_iter().for_each(|copy| copy.finish());
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match self.announced {
            Some(length) => SizeHint::with_exact(length),
            None => self.body.size_hint(),
        }
    }
}

// Outer layers that respond by themselves need an empty body.
impl<B: Body> Default for RecordedBody<B> {
    fn default() -> Self {
        Self::ready(Bytes::new())
    }
}

impl<B: Body> fmt::Debug for RecordedBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordedBody")
            .field("is_copied", &self.copy.is_some())
            .finish_non_exhaustive()
    }
}
