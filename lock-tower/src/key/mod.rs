//! Where the key of a request comes from.

mod canonical;
mod error;
mod source;
mod template;

use http::request::Parts;
use lock_core::LockKey;

pub use error::TemplateError;
pub(crate) use template::Template;

/// Makes the key of a request from its head.
pub(crate) trait KeySource: Send + Sync {
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
pub(crate) struct Closure<F>(pub(crate) F);

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
