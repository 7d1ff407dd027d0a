//! Where the key of a request comes from.

mod canonical;
mod error;
mod layer;
mod source;
mod template;

use std::fmt;
use std::sync::Arc;

use http::request::Parts;
use lock_core::LockKey;

pub use error::TemplateError;
use template::Template;

/// Keys are made of the head of a request: method, URI, headers, extensions. Nothing is asked of the
/// type of its body.
#[derive(Clone)]
pub struct HeadOnly(Arc<dyn KeySource>);

impl HeadOnly {
    fn at_once(source: impl KeySource + 'static) -> Self {
        Self(Arc::new(source))
    }

    pub(crate) fn key(&self, request: &Parts) -> Result<LockKey, NoKey> {
        self.0.key(request)
    }
}

impl fmt::Debug for HeadOnly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HeadOnly")
    }
}

/// Makes the key of a request from its head.
trait KeySource: Send + Sync {
    fn key(&self, request: &Parts) -> Result<LockKey, NoKey>;
}

/// Why a request has no key. What is named is the part of the request, never its value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoKey {
    Missing(Option<String>),
    Ambiguous(String),
    Invalid,
}

/// A user's function.
struct Closure<F>(F);

impl<F> KeySource for Closure<F>
where
    F: Fn(&Parts) -> Option<LockKey> + Send + Sync,
{
    fn key(&self, request: &Parts) -> Result<LockKey, NoKey> {
        usable((self.0)(request).ok_or(NoKey::Missing(None))?)
    }
}

/// What is wrong with a key that was made from a request is wrong with the request.
fn usable(key: LockKey) -> Result<LockKey, NoKey> {
    if key.as_str().is_some() {
        Ok(key)
    } else {
        Err(NoKey::Invalid)
    }
}
