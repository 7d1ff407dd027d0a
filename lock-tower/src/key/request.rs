//! The view of a request that an extractor receives.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use http::request::Parts;
use http::{Extensions, HeaderMap, Method, Uri};

use super::{KeyError, KeyFailure, source};

/// A request, as a [`KeyExtractor`](super::KeyExtractor) sees it.
pub struct KeyRequest<'a> {
    parts: &'a mut Parts,
    body: Option<&'a mut dyn ReadBody>,
}

impl KeyRequest<'_> {
    /// Returns the method.
    #[must_use]
    pub fn method(&self) -> &Method {
        &self.parts.method
    }

    /// Returns the URI. With the feature `axum` it is the whole one, even in nested routers.
    #[must_use]
    pub fn uri(&self) -> &Uri {
        source::uri(self.parts)
    }

    /// Returns the headers.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.parts.headers
    }

    /// Returns the extensions, into which an authentication layer may put the user.
    #[must_use]
    pub fn extensions(&self) -> &Extensions {
        &self.parts.extensions
    }

    /// Reads the whole body.
    ///
    /// The layer reads it once, however often this method is called. The handler reads the same bytes
    /// and trailers again.
    ///
    /// # Errors
    ///
    /// An extractor that returns the error refuses the request:
    ///
    /// * 413: the body exceeds the layer's limit.
    /// * 408: the body did not arrive in time.
    /// * 400: the body is incomplete.
    /// * 500: the layer does not read bodies, see [`KeyExtractor::Reads`](super::KeyExtractor::Reads).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing. The next call continues where this one stopped.
    pub async fn body(&mut self) -> Result<Bytes, KeyError> {
        match &mut self.body {
            Some(body) => Ok(body.read().await?),
            None => Err(KeyFailure::BodyNotRead.into()),
        }
    }
}

impl<'a> KeyRequest<'a> {
    pub(super) fn new(parts: &'a mut Parts, body: Option<&'a mut dyn ReadBody>) -> Self {
        Self { parts, body }
    }

    pub(super) fn parts(&mut self) -> &mut Parts {
        self.parts
    }
}

impl fmt::Debug for KeyRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyRequest(..)")
    }
}

/// Reads the body before the handler does.
pub(crate) trait ReadBody: Send {
    fn read(&mut self) -> Pin<Box<dyn Future<Output = Result<Bytes, KeyFailure>> + Send + '_>>;
}
