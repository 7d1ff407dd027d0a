//! The template of a key as its user writes it.

use std::fmt::Display;

use super::source::Extension;

/// The text of a template, and what its `<ext.NAME>` mean. Text alone is one too.
///
/// # Examples
///
/// An authentication layer outside has put a `User` into the request's extensions:
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
    /// Of text with `<source>` where a value of the request goes. It is parsed by the layer.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            extensions: Vec::new(),
        }
    }

    /// What `<ext.NAME>` is: of the extension of type `T`, what this displays as. A request without
    /// that extension, or one of which nothing is displayed, lacks it.
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
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn extensions(&self) -> &[Extension] {
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
