//! Compares a duplicate with the first request under its key.

use std::pin::{Pin, pin};
use std::time::Duration;

use http::request::Parts;
use http_body::Body;
use sha2::Digest;
use tokio::time::sleep;

use super::collect::next_frame;
use crate::key::{KeyFailure, RequestBody};
use crate::record::{Fingerprint, Fingerprinted, digest_of_head};

/// The most bytes that are read of a body for its client only.
const LARGEST_REST: u64 = 64 << 20;

/// Returns whether a request equals the first one, as far as the first handler had read that one.
///
/// Only so many bytes are read as the first handler had read, and one more frame if the first body had
/// ended there. The first upload may have taken long, so only a pause is limited, by `idle`.
pub(super) async fn is_same<B: Body>(
    first: Fingerprinted,
    request: &Parts,
    body: RequestBody<B>,
    fingerprint: Fingerprint,
    idle: Duration,
) -> Result<bool, KeyFailure> {
    let mut digest = digest_of_head(request);
    let mut missing = first.read;
    let mut body = pin!(body);
    let mut late = pin!(sleep(idle));
    let complete = loop {
        if missing == 0 && !first.ended {
            break true;
        }
        let frame = next_frame(body.as_mut(), late.as_mut()).await;
        let frame = frame.ok_or(KeyFailure::BodyTimeout)?.transpose();
        let Some(frame) = frame.map_err(|_| KeyFailure::BodyIncomplete)? else {
            break missing == 0;
        };
        late.set(sleep(idle));
        let Some(data) = frame.data_ref() else {
            continue;
        };
        let length = data.len() as u64;
        if length > missing && first.ended {
            break false;
        }
        let counted = length.min(missing);
        digest.update(&data[..counted as usize]);
        missing -= counted;
    };
    let same = complete && first.digest == <[u8; 32]>::from(digest.finalize());
    if fingerprint == Fingerprint::Head || !same {
        read_on(body, idle).await;
    }
    Ok(same)
}

/// Reads the rest of a body, because over HTTP/1.1 a client that still sends cannot read its answer.
pub(super) async fn read_on<B: Body>(mut body: Pin<&mut RequestBody<B>>, idle: Duration) {
    let mut rest = LARGEST_REST;
    while rest > 0 {
        let Some(Some(Ok(frame))) = next_frame(body.as_mut(), pin!(sleep(idle))).await else {
            break;
        };
        let length = frame.data_ref().map_or(0, |data| data.len() as u64);
        rest = rest.saturating_sub(length);
    }
}
