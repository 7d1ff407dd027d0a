//! Collects the body of an answer.

use std::future::poll_fn;
use std::pin::Pin;

use bytes::{Bytes, BytesMut};
use http_body::Body;

use crate::key::{Remainder, as_bytes};

/// The beginning of a body, and what follows it.
pub(super) struct Collected<B: Body> {
    pub(super) data: Bytes,
    pub(super) after: Remainder<B>,
}

/// Reads a body to its end, but not further than `limit`.
///
/// A body of known length is in memory already, or ends soon, so this needs no timer.
pub(super) async fn collect<B: Body>(body: B, limit: usize) -> Collected<B> {
    let mut body = Box::pin(body);
    let mut data = Bytes::new();
    let mut more = BytesMut::new();
    let mut trailers = None;
    let after = loop {
        let frame = match next_frame(body.as_mut()).await {
            None => break Remainder::End(trailers),
            Some(Err(error)) => break Remainder::Failed(Some(error)),
            Some(Ok(frame)) => as_bytes(frame),
        };
        match frame.into_data() {
            // Most bodies have one frame, which is not copied.
            Ok(bytes) if data.is_empty() => data = bytes,
            Ok(bytes) => more.extend_from_slice(&bytes),
            Err(frame) => trailers = frame.into_trailers().ok(),
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

async fn next_frame<B: Body>(
    mut body: Pin<&mut B>,
) -> Option<Result<http_body::Frame<B::Data>, B::Error>> {
    poll_fn(|context| body.as_mut().poll_frame(context)).await
}
