//! Collects the body of an answer, and reads bodies in limited time.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use http_body::{Body, Frame};
use tokio::time::{Sleep, sleep};

use crate::key::{Remainder, as_bytes};

/// The beginning of a body, and what follows it.
pub(super) struct Collected<B: Body> {
    pub(super) data: Bytes,
    pub(super) after: Remainder<B>,
}

/// Reads a body to its end, but not further than `limit`, and not for longer than `time`.
///
/// A body of known length is in memory already in most cases. That of a proxy can stall, and its client waits for the head.
pub(super) async fn collect<B: Body>(body: B, limit: usize, time: Duration) -> Collected<B> {
    let mut late = pin!(sleep(time));
    let mut body = Box::pin(body);
    let mut data = Bytes::new();
    let mut more = BytesMut::new();
    let after = loop {
        let frame = match next_frame(body.as_mut(), late.as_mut()).await {
            None => break Remainder::More(body),
            Some(None) => break Remainder::End(None),
            Some(Some(Err(error))) => break Remainder::Failed(Some(error)),
            Some(Some(Ok(frame))) => as_bytes(frame),
        };
        match frame.into_data() {
            // Most bodies have one frame, which is not copied.
            Ok(bytes) if data.is_empty() => data = bytes,
            Ok(bytes) => more.extend_from_slice(&bytes),
            Err(frame) => break Remainder::End(frame.into_trailers().ok()),
        }
        if data.len() + more.len() > limit {
            break Remainder::More(body);
        }
    };
    if !more.is_empty() {
        data = [&data[..], &more[..]].concat().into();
    }
    Collected { data, after }
}

type NextFrame<B> = Option<Result<Frame<<B as Body>::Data>, <B as Body>::Error>>;

/// Returns the next frame that is not empty, or `None` if it is late.
pub(super) async fn next_frame<B: Body>(
    mut body: Pin<&mut B>,
    mut late: Pin<&mut Sleep>,
) -> Option<NextFrame<B>> {
    poll_fn(|context| {
        if let Poll::Ready(frame) = body.as_mut().poll_frame(context) {
            let of_data = frame
                .as_ref()
                .and_then(|frame| frame.as_ref().ok()?.data_ref());
            if of_data.is_none_or(Buf::has_remaining) {
                return Poll::Ready(Some(frame));
            }
            // Empty frames may come without an end, and other tasks on this thread have to run.
            context.waker().wake_by_ref();
        }
        late.as_mut().poll(context).map(|()| None)
    })
    .await
}
