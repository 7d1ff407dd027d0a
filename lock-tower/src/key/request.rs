//! What an extractor can see of a request.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use http::request::Parts;
use http::{Extensions, HeaderMap, Method, Uri};

use super::{KeyError, NoKey, source};

/// A request, as a [`KeyExtractor`](super::KeyExtractor) sees it.
pub struct KeyRequest<'a> {
    parts: &'a mut Parts,
    body: Option<&'a mut dyn ReadBody>,
}

impl KeyRequest<'_> {
    /// Its method.
    #[must_use]
    pub fn method(&self) -> &Method {
        &self.parts.method
    }

    /// Its URI: with the feature `axum` the whole one, in nested routers too.
    #[must_use]
    pub fn uri(&self) -> &Uri {
        source::uri(self.parts)
    }

    /// Its headers.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.parts.headers
    }

    /// Its extensions, where an authentication layer puts what it has found.
    #[must_use]
    pub fn extensions(&self) -> &Extensions {
        &self.parts.extensions
    }

    /// Its whole body. It is read once, however often it is asked for, and the handler reads the same
    /// bytes and trailers again.
    ///
    /// # Errors
    ///
    /// Larger than the layer's limit, too slow, or not whole: handed on, the request is refused with
    /// 413, 408 or 400. A layer that does not read bodies: 500, see
    /// [`KeyExtractor::Reads`](super::KeyExtractor::Reads).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: what was read stays read.
    pub async fn body(&mut self) -> Result<Bytes, KeyError> {
        match &mut self.body {
            Some(body) => Ok(body.read().await?),
            None => Err(NoKey::NoBody.into()),
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

/// A body that can be read before the handler reads it.
pub(crate) trait ReadBody: Send {
    fn read(&mut self) -> Pin<Box<dyn Future<Output = Result<Bytes, NoKey>> + Send + '_>>;
}
