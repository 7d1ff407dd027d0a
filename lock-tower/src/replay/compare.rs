//! Compares a duplicate with the first request under its key.

use std::pin::pin;
use std::time::Duration;

use http::request::Parts;
use http_body::Body;
use sha2::Digest;
use tokio::time::sleep;

use super::collect::next_frame;
use crate::key::{KeyFailure, RequestBody};
use crate::record::{Fingerprint, Fingerprinted, digest_of_head};

/// The most bytes that are read of a body that need not be the same.
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
    while missing > 0 || first.ended {
        let frame = next_frame(body.as_mut(), late.as_mut()).await;
        let frame = frame.ok_or(KeyFailure::BodyTimeout)?.transpose();
        let Some(frame) = frame.map_err(|_| KeyFailure::BodyIncomplete)? else {
            break;
        };
        late.set(sleep(idle));
        let length = frame.data_ref().map_or(0, |data| data.len() as u64);
        if length > missing && first.ended {
            return Ok(false);
        }
        let counted = length.min(missing);
        if let Some(data) = frame.data_ref() {
            digest.update(&data[..counted as usize]);
        }
        missing -= counted;
    }
    let mut rest = LARGEST_REST;
    // A client that still sends cannot read its answer over HTTP/1.1, where the server would close the connection.
    while fingerprint == Fingerprint::Head && rest > 0 {
        let Some(Some(Ok(frame))) = next_frame(body.as_mut(), late.as_mut()).await else {
            break;
        };
        late.set(sleep(idle));
        let length = frame.data_ref().map_or(0, |data| data.len() as u64);
        rest = rest.saturating_sub(length);
    }
    Ok(missing == 0 && first.digest == <[u8; 32]>::from(digest.finalize()))
}
