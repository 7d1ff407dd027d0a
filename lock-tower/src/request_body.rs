//! The body of a request, of which a key may have been made, as its handler reads it.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

pin_project! {
    /// The body of a request behind a layer [with keys of bodies](crate::key::WithBody): the bytes
    /// and trailers that the client sent, as [`Bytes`].
    ///
    /// What was read for the key comes first, and then whatever the body would have given next: its
    /// end, its error, or, where more came than may be read for a key and the layer lets the
    /// request pass, the rest of it. A body that no key was made of streams as it did.
    pub struct RequestBody<B: Body> {
        #[pin]
        kind: Kind<B>,
    }
}

pin_project! {
    #[project = KindProjection]
    enum Kind<B: Body> {
        Untouched { #[pin] body: B },
        Read { data: Bytes, after: After<B> },
    }
}

/// What comes after that which was read.
pub(crate) enum After<B: Body> {
    End(Option<HeaderMap>),
    Failed(Option<B::Error>),
    More(Pin<Box<B>>),
}

impl<B: Body> RequestBody<B> {
    pub(crate) fn untouched(body: B) -> Self {
        Self {
            kind: Kind::Untouched { body },
        }
    }

    pub(crate) fn read(data: Bytes, after: After<B>) -> Self {
        Self {
            kind: Kind::Read { data, after },
        }
    }
}

impl<B: Body> Body for RequestBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.project().kind.project() {
            KindProjection::Untouched { body } => body.poll_frame(context).map_ok(as_bytes),
            KindProjection::Read { data, .. } if !data.is_empty() => {
                Poll::Ready(Some(Ok(Frame::data(std::mem::take(data)))))
            }
            KindProjection::Read { after, .. } => match after {
                After::End(trailers) => Poll::Ready(trailers.take().map(Frame::trailers).map(Ok)),
                After::Failed(error) => Poll::Ready(error.take().map(Err)),
                After::More(body) => body.as_mut().poll_frame(context).map_ok(as_bytes),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Untouched { body } => body.is_end_stream(),
            Kind::Read { data, after } => {
                data.is_empty()
                    && match after {
                        After::End(trailers) => trailers.is_none(),
                        After::Failed(error) => error.is_none(),
                        After::More(body) => body.is_end_stream(),
                    }
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Untouched { body } => body.size_hint(),
            Kind::Read { data, after } => {
                let read = data.len() as u64;
                match after {
                    After::End(_) => SizeHint::with_exact(read),
                    After::Failed(_) => SizeHint::default(),
                    After::More(body) => more(read, &body.size_hint()),
                }
            }
        }
    }
}

/// Of `Bytes` this is no copy.
fn as_bytes<D: Buf>(frame: Frame<D>) -> Frame<Bytes> {
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

// Never what a client has sent.
impl<B: Body> fmt::Debug for RequestBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.kind {
            Kind::Untouched { .. } => "untouched",
            Kind::Read { .. } => "read",
        };
        f.debug_tuple("RequestBody").field(&kind).finish()
    }
}
