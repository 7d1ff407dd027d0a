//! Compares a duplicate with the first request under its key.

use std::future::poll_fn;
use std::pin::pin;

use http::request::Parts;
use http_body::Body;
use sha2::Digest;
use tokio::time::timeout;

use crate::key::{BodyLimits, KeyFailure, RequestBody};
use crate::record::{Fingerprinted, digest_of_head};

/// Returns whether a request equals the first one, as far as the first handler had read that one.
///
/// Only so many bytes are read as the first handler had read, and one more frame if the first body had
/// ended there.
pub(super) async fn is_same<B: Body>(
    first: Fingerprinted,
    request: &Parts,
    body: RequestBody<B>,
    limits: BodyLimits,
) -> Result<bool, KeyFailure> {
    let mut digest = digest_of_head(request);
    let mut missing = first.read;
    let mut body = pin!(body);
    let read = async {
        while missing > 0 || first.ended {
            let frame = poll_fn(|context| body.as_mut().poll_frame(context)).await;
            let frame = match frame.transpose().map_err(|_| KeyFailure::BodyIncomplete)? {
                Some(frame) => frame,
                None => return Ok(missing == 0),
            };
            let Some(data) = frame.data_ref() else {
                continue;
            };
            let length = data.len() as u64;
            if length > missing && first.ended {
                return Ok(false);
            }
            let counted = length.min(missing);
            digest.update(&data[..counted as usize]);
            missing -= counted;
        }
        Ok(true)
    };
    let complete = timeout(limits.time, read).await;
    let complete = complete.unwrap_or(Err(KeyFailure::BodyTimeout))?;
    Ok(complete && first.digest == <[u8; 32]>::from(digest.finalize()))
}
