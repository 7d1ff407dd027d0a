//! How a layer is told what its keys are made of.

use http::request::Parts;
use lock_core::{LockKey, LockManager};

use super::{Closure, HeadOnly, Template, TemplateError};
use crate::LockLayer;

impl LockLayer {
    /// A layer whose key is a template: text with `<source>` where a value of the request goes.
    ///
    /// [Sources of a template](crate#templates) lists what can be named.
    ///
    /// # Errors
    ///
    /// A template that cannot be parsed, or would make one lock for all requests. The error says
    /// where it is wrong and what to write.
    pub fn template(locks: LockManager, template: &str) -> Result<Self, TemplateError> {
        let template = Template::parse(template)?;
        let names_route = template.names_route();
        let layer = Self::new(locks, HeadOnly::at_once(template));
        Ok(layer.with(|policy| policy.names_route = names_route))
    }

    /// A layer whose key is made by a closure, from the head of the request: method, URI, headers,
    /// extensions. `None`: the request names nothing to lock, see
    /// [`on_missing_key`](Self::on_missing_key).
    ///
    /// Make the key with `lock_key!`, which encodes the values so that two different ones are never
    /// one key; a key put together by `format!` has no such guarantee. A key that cannot be used
    /// (empty, or longer than 1 024 bytes) is answered with 400 and the code `lock_key_invalid`.
    ///
    /// # Examples
    ///
    /// An authentication layer outside has put the user into the request's extensions:
    ///
    /// ```
    /// # let locks = lock_core::LockManager::in_memory();
    /// use std::time::Duration;
    /// use lock_core::lock_key;
    /// use lock_tower::LockLayer;
    ///
    /// #[derive(Clone)]
    /// struct User { id: u64 }
    ///
    /// let layer = LockLayer::from_fn(locks, |request| {
    ///     let user = request.extensions.get::<User>()?;
    ///     Some(lock_key!("submit:<user.id>"))
    /// })
    /// .cooldown(Duration::from_secs(2));
    /// # let _ = layer;
    /// ```
    pub fn from_fn<F>(locks: LockManager, key: F) -> Self
    where
        F: Fn(&Parts) -> Option<LockKey> + Send + Sync + 'static,
    {
        Self::new(locks, HeadOnly::at_once(Closure(key)))
    }
}
