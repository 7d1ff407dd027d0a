//! Makes `LockContext` an extractor of axum (feature `axum`).

use std::convert::Infallible;
use std::fmt;

use axum::extract::{FromRequestParts, OptionalFromRequestParts};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::request::Parts;

use super::LockContext;

/// The rejection of a request that no lock layer has handled, which is answered with 500.
///
/// The route is not behind a [`LockLayer`](crate::LockLayer), or its layer locks other methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotLocked;

impl fmt::Display for NotLocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "no lock layer has handled this request; put its route behind a `LockLayer` that locks \
             its method, or extract `Option<LockContext>`",
        )
    }
}

impl std::error::Error for NotLocked {}

impl IntoResponse for NotLocked {
    fn into_response(self) -> Response {
        (StatusCode::INTERNAL_SERVER_ERROR, self.to_string()).into_response()
    }
}

impl<S: Send + Sync> FromRequestParts<S> for LockContext {
    type Rejection = NotLocked;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, NotLocked> {
        parts.extensions.get().cloned().ok_or(NotLocked)
    }
}

/// Extracts `None` as well if the layer let the request pass without a lock.
impl<S: Send + Sync> OptionalFromRequestParts<S> for LockContext {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Option<Self>, Infallible> {
        let context: Option<&Self> = parts.extensions.get();
        Ok(context.filter(|context| context.is_locked()).cloned())
    }
}
