//! The body of a response, which is the inner service's, that of a refusal, or a repeated one.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::body_lock::BodyLock;

pin_project! {
    /// The body of a response of [`LockService`](crate::LockService).
    ///
    /// It is the unchanged body of the inner service, that of a refusal, or a repeated one. With
    /// [`ReleaseAt::BodyEnd`](crate::ReleaseAt::BodyEnd) it holds the lock of its request.
    ///
    /// It implements [`Body`] for every inner body whose data can be made from [`Bytes`]. The
    /// bodies of axum, tonic and hyper consist of `Bytes`.
    pub struct ResponseBody<B> {
        #[pin]
        kind: ResponseBodyKind<B>,
    }
}

pin_project! {
    #[project = ResponseBodyProjection]
    enum ResponseBodyKind<B> {
        // The body stands before its lock, so that it is dropped first.
        Inner { #[pin] body: B, lock: Option<Box<BodyLock>> },
        Ready { body: ReadyBody },
    }
}

/// A body that the layer itself has made.
#[derive(Debug)]
pub(crate) struct ReadyBody {
    data: Option<Bytes>,
    trailers: Option<HeaderMap>,
}

impl ReadyBody {
    pub(crate) fn new(data: Bytes, trailers: Option<HeaderMap>) -> Self {
        let data = (!data.is_empty()).then_some(data);
        Self { data, trailers }
    }
}

impl From<Bytes> for ReadyBody {
    fn from(data: Bytes) -> Self {
        Self::new(data, None)
    }
}

impl<B> ResponseBody<B> {
    pub(crate) fn inner(body: B, lock: Option<BodyLock>) -> Self {
        let lock = lock.map(Box::new);
        Self {
            kind: ResponseBodyKind::Inner { body, lock },
        }
    }

    pub(crate) fn ready(body: impl Into<ReadyBody>) -> Self {
        let body = body.into();
        Self {
            kind: ResponseBodyKind::Ready { body },
        }
    }
}

/// Makes an empty body, which outer layers need that respond by themselves.
impl<B: Default> Default for ResponseBody<B> {
    fn default() -> Self {
        Self::inner(B::default(), None)
    }
}

impl<B> Body for ResponseBody<B>
where
    B: Body,
    B::Data: From<Bytes>,
{
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let (mut body, lock) = match self.project().kind.project() {
            ResponseBodyProjection::Inner { body, lock } => (body, lock),
            ResponseBodyProjection::Ready { body } => {
                let data = body.data.take().map(|data| Frame::data(data.into()));
                let frame = data.or_else(|| body.trailers.take().map(Frame::trailers));
                return Poll::Ready(frame.map(Ok));
            }
        };
        let Some(held) = lock else {
            return body.poll_frame(context);
        };
        if !held.is_releasing() {
            match ready!(held.poll_body(|| body.as_mut().poll_frame(context))) {
                Some(Ok(frame)) => match frame.into_trailers() {
                    Ok(trailers) => held.set_trailers(trailers),
                    Err(frame) => {
                        // A server polls nothing behind the last byte of a body of known length.
                        if body.is_end_stream() && body.size_hint().exact().is_some() {
                            *lock = None;
                        }
                        return Poll::Ready(Some(Ok(frame)));
                    }
                },
                Some(Err(error)) => {
                    held.fail();
                    *lock = None;
                    return Poll::Ready(Some(Err(error)));
                }
                None => {}
            }
        }
        ready!(held.poll_release(context));
        let trailers = held.take_trailers();
        *lock = None;
        Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            // The end of a body that has begun is that of its lock.
            ResponseBodyKind::Inner { body, lock } => {
                body.is_end_stream() && lock.as_ref().is_none_or(|lock| !lock.has_begun())
            }
            ResponseBodyKind::Ready { body } => body.data.is_none() && body.trailers.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            ResponseBodyKind::Inner { body, .. } => body.size_hint(),
            ResponseBodyKind::Ready { body } => {
                SizeHint::with_exact(body.data.as_ref().map_or(0, |data| data.len() as u64))
            }
        }
    }
}

impl<B: fmt::Debug> fmt::Debug for ResponseBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("ResponseBody");
        match &self.kind {
            ResponseBodyKind::Inner { body, lock } => debug
                .field("inner", body)
                .field("holds_lock", &lock.is_some()),
            ResponseBodyKind::Ready { body } => debug.field("ready", body),
        };
        debug.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::{BodyExt, Full};

    #[tokio::test]
    async fn a_refusal_knows_its_length_and_ends() {
        let body = ResponseBody::<Full<Bytes>>::ready(Bytes::from("no"));
        assert_eq!(body.size_hint().exact(), Some(2));
        assert!(!body.is_end_stream());
        assert_eq!(body.collect().await.unwrap().to_bytes(), "no");
        assert!(ResponseBody::<Full<Bytes>>::ready(Bytes::new()).is_end_stream());
    }

    #[tokio::test]
    async fn an_inner_body_is_what_it_was() {
        let body = ResponseBody::inner(Full::new(Bytes::from_static(b"inner")), None);
        assert_eq!(body.size_hint().exact(), Some(5));
        assert_eq!(body.collect().await.unwrap().to_bytes(), "inner");
        let empty = ResponseBody::inner(Full::<Bytes>::default(), None);
        assert!(empty.is_end_stream());
    }
}
