//! The two kinds of keys: made of the head of a request, or of its body too.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use http::Request;
use http::request::Parts;
use http_body::Body;
use lock_core::LockKey;

use super::part::Key;
use super::{KeyExtractor, KeyRequest, NoKey};
use crate::body_reader::{BodyLimits, BodyReader};
use crate::request_body::RequestBody;

/// Keys are made of the head of a request: method, URI, headers, extensions. Nothing is asked of the
/// type of its body.
#[derive(Clone)]
pub struct HeadOnly(Way);

#[derive(Clone)]
enum Way {
    AtOnce(Arc<dyn AtOnce>),
    Waiting(Arc<dyn Extract>),
}

/// Keys may be made of the body of a request too, which is read before the lock is asked for.
#[derive(Clone)]
pub struct WithBody {
    extractor: Arc<dyn Extract>,
}

/// A request, and its key.
pub(crate) type Keyed<B> = (Request<B>, Result<LockKey, NoKey>);

/// A key that is being made.
pub(crate) type Keying<B> = Pin<Box<dyn Future<Output = Keyed<B>> + Send>>;

/// Most keys need nobody to be waited for.
#[allow(
    clippy::large_enum_variant,
    reason = "taken apart at once; a box would be paid for by every request"
)]
pub(crate) enum Asked<B> {
    Known(Keyed<B>),
    Waiting(Keying<B>),
}

impl HeadOnly {
    pub(super) fn at_once(key: impl AtOnce) -> Self {
        Self(Way::AtOnce(Arc::new(key)))
    }

    pub(super) fn waiting(extractor: impl Extract) -> Self {
        Self(Way::Waiting(Arc::new(extractor)))
    }

    pub(crate) fn ask<B: Send + 'static>(&self, request: Request<B>) -> Asked<B> {
        let (mut parts, body) = request.into_parts();
        match &self.0 {
            Way::AtOnce(source) => {
                let key = source.key(&mut parts);
                Asked::Known((Request::from_parts(parts, body), key))
            }
            Way::Waiting(extractor) => {
                let extractor = Arc::clone(extractor);
                Asked::Waiting(Box::pin(async move {
                    let key = extractor.key(&mut KeyRequest::new(&mut parts, None)).await;
                    (Request::from_parts(parts, body), key)
                }))
            }
        }
    }
}

impl WithBody {
    pub(super) fn new(extractor: impl Extract) -> Self {
        Self {
            extractor: Arc::new(extractor),
        }
    }

    pub(crate) fn ask<B>(&self, request: Request<B>, limits: BodyLimits) -> Asked<RequestBody<B>>
    where
        B: Body<Error: Send> + Send + 'static,
    {
        let (mut parts, body) = request.into_parts();
        let mut body = BodyReader::new(body, limits);
        let extractor = Arc::clone(&self.extractor);
        Asked::Waiting(Box::pin(async move {
            let mut request = KeyRequest::new(&mut parts, Some(&mut body));
            let key = extractor.key(&mut request).await;
            (Request::from_parts(parts, body.into_body()), key)
        }))
    }
}

/// Makes a key without waiting for anybody, as most do.
pub(super) trait AtOnce: Send + Sync + 'static {
    fn key(&self, request: &mut Parts) -> Result<LockKey, NoKey>;
}

/// A [`KeyExtractor`] whose type is forgotten.
pub(super) trait Extract: Send + Sync + 'static {
    fn key<'a>(
        &'a self,
        request: &'a mut KeyRequest<'_>,
    ) -> Pin<Box<dyn Future<Output = Result<LockKey, NoKey>> + Send + 'a>>;
}

/// The key is the extractor's part and nothing else.
pub(super) struct Whole<E>(pub(super) E);

impl<E: KeyExtractor> Extract for Whole<E> {
    fn key<'a>(
        &'a self,
        request: &'a mut KeyRequest<'_>,
    ) -> Pin<Box<dyn Future<Output = Result<LockKey, NoKey>> + Send + 'a>> {
        Box::pin(async move {
            let part = self.0.extract(request).await;
            let mut key = Key::default();
            part.map_err(super::KeyError::into_inner)?.push_to(&mut key);
            key.finish()
        })
    }
}

impl fmt::Debug for HeadOnly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HeadOnly")
    }
}

impl fmt::Debug for WithBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WithBody")
    }
}
