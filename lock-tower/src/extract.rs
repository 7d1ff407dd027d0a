//! `LockContext` as an argument of an axum handler (feature `axum`).

use std::convert::Infallible;
use std::fmt;

use axum::extract::{FromRequestParts, OptionalFromRequestParts};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::request::Parts;

use crate::LockContext;

/// The handler is not behind a [`LockLayer`](crate::LockLayer), or its layer locks other methods: 500.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotLocked;

impl fmt::Display for NotLocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the request has passed no lock layer that locks its method; put its route behind a `LockLayer`, or take `Option<LockContext>`")
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

/// `None` also where the layer let the request pass without a lock.
impl<S: Send + Sync> OptionalFromRequestParts<S> for LockContext {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Option<Self>, Infallible> {
        let context: Option<&Self> = parts.extensions.get();
        Ok(context.filter(|context| context.is_locked()).cloned())
    }
}
