//! The two kinds of layers: those that read the head of a request, and those that also read its body.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use http::Request;
use http::request::Parts;
use http_body::Body;
use lock_core::LockKey;

use super::body::{BodyLimits, BodyReader, RequestBody};
use super::{KeyFailure, KeyRequest, RequestKeys, Template};

/// Marks a layer whose keys are made from the head of a request.
///
/// The head consists of method, URI, headers and extensions. The body may have any type.
#[derive(Clone)]
pub struct HeadOnly {
    key: HeadKey,
    others: OtherTemplates,
}

/// The templates of the other keys, of a layer that locks several keys.
type OtherTemplates = Option<Arc<[Arc<Template>]>>;

#[derive(Clone)]
enum HeadKey {
    Sync(Arc<dyn SyncKey>),
    Async(Arc<dyn AsyncKey>),
}

/// Marks a layer whose keys may also be made from the body of a request.
///
/// The layer reads the body before it acquires the lock.
#[derive(Clone)]
pub struct WithBody {
    extractor: Arc<dyn AsyncKey>,
    others: OtherTemplates,
}

/// A request and its keys.
type RequestAndKey<B> = (Request<B>, Result<RequestKeys, KeyFailure>);

/// Makes the key of a request.
pub(crate) type KeyFuture<B> = Pin<Box<dyn Future<Output = RequestAndKey<B>> + Send>>;

/// The state of a key. Most keys are made without waiting.
#[allow(
    clippy::large_enum_variant,
    reason = "it is matched at once, and a box would cost every request an allocation"
)]
pub(crate) enum KeyLookup<B> {
    Done(RequestAndKey<B>),
    Pending(KeyFuture<B>),
}

impl HeadOnly {
    pub(crate) fn sync(key: impl SyncKey) -> Self {
        Self {
            key: HeadKey::Sync(Arc::new(key)),
            others: None,
        }
    }

    pub(crate) fn waiting(extractor: impl AsyncKey) -> Self {
        Self {
            key: HeadKey::Async(Arc::new(extractor)),
            others: None,
        }
    }

    /// Adds the template of another key.
    pub(crate) fn and(&mut self, template: Template) {
        and(&mut self.others, template);
    }

    pub(crate) fn lookup<B: Send + 'static>(&self, request: Request<B>) -> KeyLookup<B> {
        let (mut parts, body) = request.into_parts();
        match &self.key {
            HeadKey::Sync(source) => {
                let first = source.key(&mut parts);
                let keys = first.and_then(|first| {
                    let others = self.others.iter().flat_map(|others| others.iter());
                    let others = others.map(|template| SyncKey::key(&**template, &mut parts));
                    Ok(RequestKeys::with(first, others.collect::<Result<_, _>>()?))
                });
                KeyLookup::Done((Request::from_parts(parts, body), keys))
            }
            HeadKey::Async(extractor) => {
                let extractor = Arc::clone(extractor);
                let others = self.others.clone();
                KeyLookup::Pending(Box::pin(async move {
                    let mut request = KeyRequest::new(&mut parts, None);
                    let keys = keys(&*extractor, others, &mut request).await;
                    (Request::from_parts(parts, body), keys)
                }))
            }
        }
    }
}

impl WithBody {
    pub(crate) fn new(extractor: impl AsyncKey) -> Self {
        Self {
            extractor: Arc::new(extractor),
            others: None,
        }
    }

    /// Adds the template of another key.
    pub(crate) fn and(&mut self, template: Template) {
        and(&mut self.others, template);
    }

    pub(crate) fn lookup<B>(
        &self,
        request: Request<B>,
        limits: BodyLimits,
    ) -> KeyLookup<RequestBody<B>>
    where
        B: Body<Error: Send> + Send + 'static,
    {
        let (mut parts, body) = request.into_parts();
        let mut body = BodyReader::new(body, limits);
        let extractor = Arc::clone(&self.extractor);
        let others = self.others.clone();
        KeyLookup::Pending(Box::pin(async move {
            let mut request = KeyRequest::new(&mut parts, Some(&mut body));
            let keys = keys(&*extractor, others, &mut request).await;
            (Request::from_parts(parts, body.into_body()), keys)
        }))
    }
}

fn and(others: &mut OtherTemplates, template: Template) {
    let before = others.iter().flat_map(|others| others.iter()).cloned();
    *others = Some(before.chain([Arc::new(template)]).collect());
}

/// Makes the keys in the order of their templates.
async fn keys(
    first: &dyn AsyncKey,
    others: OtherTemplates,
    request: &mut KeyRequest<'_>,
) -> Result<RequestKeys, KeyFailure> {
    let first = first.key(request).await?;
    let mut more = Vec::new();
    for template in others.iter().flat_map(|others| others.iter()) {
        more.push(AsyncKey::key(&**template, request).await?);
    }
    Ok(RequestKeys::with(first, more))
}

/// Makes a key without waiting.
pub(crate) trait SyncKey: Send + Sync + 'static {
    fn key(&self, request: &mut Parts) -> Result<LockKey, KeyFailure>;
}

/// Makes a key, and may wait for another service or for the body.
pub(crate) trait AsyncKey: Send + Sync + 'static {
    fn key<'a>(
        &'a self,
        request: &'a mut KeyRequest<'_>,
    ) -> Pin<Box<dyn Future<Output = Result<LockKey, KeyFailure>> + Send + 'a>>;
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
