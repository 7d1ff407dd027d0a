//! The template of a key, before the layer parses it.

use std::fmt::Display;

use crate::key::source::Extension;

/// The text of a template, and the extensions that its `<ext.NAME>` stand for.
///
/// A string converts into a template without extensions.
///
/// # Examples
///
/// An outer authentication layer has put a `User` into the extensions of the request:
///
/// ```
/// # fn main() -> Result<(), lock_tower::TemplateError> {
/// # let locks = lock_core::LockManager::in_memory();
/// use std::time::Duration;
/// use lock_tower::{KeyTemplate, LockLayer};
///
/// #[derive(Clone)]
/// struct User { id: u64, tenant: String }
///
/// let key = KeyTemplate::new("pay:<ext.tenant>:<ext.user>:<route>")
///     .extension("tenant", |user: &User| user.tenant.clone())
///     .extension("user", |user: &User| user.id);
/// let layer = LockLayer::template(locks, key)?.cooldown(Duration::from_secs(2));
/// # let _ = layer; Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a template does nothing until a layer is made of it"]
pub struct KeyTemplate {
    text: String,
    extensions: Vec<Extension>,
}

impl KeyTemplate {
    /// Makes a template from its text, which the layer parses later.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            extensions: Vec::new(),
        }
    }

    /// Defines `<ext.NAME>` as a value of the extension of type `T`.
    ///
    /// A request lacks this part of the key if it has no such extension, or if the value displays as an
    /// empty string.
    pub fn extension<T, V>(
        mut self,
        name: &str,
        value: impl Fn(&T) -> V + Send + Sync + 'static,
    ) -> Self
    where
        T: Clone + Send + Sync + 'static,
        V: Display,
    {
        self.extensions.push(Extension::new(name, value));
        self
    }
}

impl KeyTemplate {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn extensions(&self) -> &[Extension] {
        &self.extensions
    }
}

impl From<&str> for KeyTemplate {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for KeyTemplate {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<&String> for KeyTemplate {
    fn from(text: &String) -> Self {
        Self::new(text)
    }
}
