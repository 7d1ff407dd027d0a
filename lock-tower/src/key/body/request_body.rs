//! The body of a request as its handler receives it, after a key may have been made from it.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::BodyTap;

pin_project! {
    /// The body of a request behind a layer [that reads bodies](crate::key::WithBody).
    ///
    /// It yields the bytes and trailers that the client sent, as [`Bytes`]. The bytes that were read
    /// for the key come first. The end or the error of the body follows. If the body exceeds the
    /// layer's limit and the layer lets the request pass, the rest of the body follows. A body that the
    /// layer did not read streams as usual.
    pub struct RequestBody<B: Body> {
        #[pin]
        kind: RequestBodyKind<B>,
        tap: Option<Arc<BodyTap>>,
    }
}

pin_project! {
    #[project = RequestBodyProjection]
    enum RequestBodyKind<B: Body> {
        Untouched { #[pin] body: B },
        Read { data: Bytes, after: Remainder<B> },
    }
}

/// The rest of a body after the bytes that were read.
pub(crate) enum Remainder<B: Body> {
    End(Option<HeaderMap>),
    Failed(Option<B::Error>),
    More(Pin<Box<B>>),
}

impl<B: Body> RequestBody<B> {
    pub(crate) fn untouched(body: B) -> Self {
        Self {
            kind: RequestBodyKind::Untouched { body },
            tap: None,
        }
    }

    pub(crate) fn read(data: Bytes, after: Remainder<B>) -> Self {
        Self {
            kind: RequestBodyKind::Read { data, after },
            tap: None,
        }
    }

    /// Digests the bytes that the handler reads.
    ///
    /// A handler need not read a body that has ended already: it knows that there is none.
    #[cfg(feature = "replay")]
    pub(crate) fn tapped(self, tap: Arc<BodyTap>) -> Self {
        if self.is_end_stream() {
            tap.end();
        }
        let tap = Some(tap);
        Self { tap, ..self }
    }
}

impl<B: Body> Body for RequestBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = ready!(self.as_mut().project().kind.poll_frame(context));
        if let Some(tap) = &self.tap {
            match &frame {
                Some(Ok(frame)) => {
                    if let Some(data) = frame.data_ref() {
                        tap.data(data);
                    }
                    // A reader need not poll again when it knows that this was the last frame.
                    if self.is_end_stream() {
                        tap.end();
                    }
                }
                Some(Err(_)) => {}
                None => tap.end(),
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            RequestBodyKind::Untouched { body } => body.is_end_stream(),
            RequestBodyKind::Read { data, after } => {
                data.is_empty()
                    && match after {
                        Remainder::End(trailers) => trailers.is_none(),
                        Remainder::Failed(error) => error.is_none(),
                        Remainder::More(body) => body.is_end_stream(),
                    }
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            RequestBodyKind::Untouched { body } => body.size_hint(),
            RequestBodyKind::Read { data, after } => {
                let read = data.len() as u64;
                match after {
                    Remainder::End(_) => SizeHint::with_exact(read),
                    Remainder::Failed(_) => SizeHint::default(),
                    Remainder::More(body) => more(read, &body.size_hint()),
                }
            }
        }
    }
}

impl<B: Body> RequestBodyKind<B> {
    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.project() {
            RequestBodyProjection::Untouched { body } => body.poll_frame(context).map_ok(as_bytes),
            RequestBodyProjection::Read { data, .. } if !data.is_empty() => {
                Poll::Ready(Some(Ok(Frame::data(std::mem::take(data)))))
            }
            RequestBodyProjection::Read { after, .. } => match after {
                Remainder::End(trailers) => {
                    Poll::Ready(trailers.take().map(Frame::trailers).map(Ok))
                }
                Remainder::Failed(error) => Poll::Ready(error.take().map(Err)),
                Remainder::More(body) => body.as_mut().poll_frame(context).map_ok(as_bytes),
            },
        }
    }
}

/// Converts the data of a frame. It does not copy data that is `Bytes` already.
pub(crate) fn as_bytes<D: Buf>(frame: Frame<D>) -> Frame<Bytes> {
    frame.map_data(|mut data| data.copy_to_bytes(data.remaining()))
}

fn more(read: u64, rest: &SizeHint) -> SizeHint {
    let mut hint = SizeHint::new();
    hint.set_lower(rest.lower().saturating_add(read));
    if let Some(upper) = rest.upper().and_then(|upper| upper.checked_add(read)) {
        hint.set_upper(upper);
    }
    hint
}

// `Debug` shows nothing that a client has sent.
impl<B: Body> fmt::Debug for RequestBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.kind {
            RequestBodyKind::Untouched { .. } => "untouched",
            RequestBodyKind::Read { .. } => "read",
        };
        f.debug_tuple("RequestBody").field(&kind).finish()
    }
}
