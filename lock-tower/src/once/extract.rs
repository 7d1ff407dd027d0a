//! Makes `Once` an extractor of axum, and its refusal a response (feature `axum`).

use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use lock_core::once::Database;

use super::handle::Once;
use super::refusal::Refused;

/// Does no I/O, so that the body of the request is read before a transaction begins.
impl<D: Database, S: Send + Sync> FromRequestParts<S> for Once<D> {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refused> {
        Self::of(&parts.extensions)
    }
}

/// Responds with the refusal's [`problem`](crate::Rejection::problem).
impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let rejection = self.rejection().clone();
        let mut response = rejection.problem().into_response();
        // Outer lock layers see that the handler has done nothing.
        response.extensions_mut().insert(rejection);
        response
    }
}
