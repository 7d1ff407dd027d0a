//! How a layer is told what its keys are made of.

use std::time::Duration;

use http::request::Parts;
use lock_core::{LockKey, LockManager};

use super::kind::{AtOnce, Whole};
use super::parser::{self, Reading};
use super::{HeadOnly, KeyExtractor, KeyTemplate, NoKey, ReadsNoBody, TemplateError, WithBody};
use crate::LockLayer;

impl LockLayer {
    /// A layer whose key is a template: text with `<source>` where a value of the request goes, or a
    /// [`KeyTemplate`].
    ///
    /// [Sources of a template](crate#templates) lists what can be named.
    ///
    /// # Errors
    ///
    /// A template that cannot be parsed, would make one lock for all requests, or names something in
    /// the body, which is for [`body_template`](LockLayer::body_template). The error says where it is
    /// wrong and what to write.
    pub fn template(
        locks: LockManager,
        template: impl Into<KeyTemplate>,
    ) -> Result<Self, TemplateError> {
        let written = template.into();
        let template = parser::parse(&written, Reading::HeadOnly)?;
        let names_route = template.names_route();
        let layer = Self::new(locks, HeadOnly::at_once(template));
        Ok(layer.of_template(&written, names_route))
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

    /// A layer whose key is found by an [extractor](crate::key), or several.
    ///
    /// # Examples
    ///
    /// ```
    /// # let locks = lock_core::LockManager::in_memory();
    /// use std::time::Duration;
    /// use lock_tower::LockLayer;
    /// use lock_tower::key::{self, KeyExtractor};
    ///
    /// let tenant = key::header("x-tenant").lowercase().optional();
    /// let layer = LockLayer::extractor(locks, (key::constant("pay"), tenant, key::bearer(), key::route()))
    ///     .cooldown(Duration::from_secs(2));
    /// # let _ = layer;
    /// ```
    ///
    /// One that reads the body is for [`body_extractor`](LockLayer::body_extractor):
    ///
    /// ```compile_fail
    /// # let locks = lock_core::LockManager::in_memory();
    /// let layer = lock_tower::LockLayer::extractor(locks, lock_tower::key::body());
    /// ```
    pub fn extractor<E>(locks: LockManager, extractor: E) -> Self
    where
        E: KeyExtractor<Reads: ReadsNoBody>,
    {
        Self::new(locks, HeadOnly::waiting(Whole(extractor)))
    }
}

/// # Layers that read the body
///
/// They read it to its end before they ask for the lock, and keep it for the handler, which reads
/// the same bytes and trailers: up to `limit` bytes for every request under way. A request that a
/// method or its head decides is not read.
///
/// The inner service's requests have a [`RequestBody`](crate::RequestBody) in place of `B`. axum's
/// routers take that, and so does whatever takes any body; for a service that wants one certain type
/// put a layer between that maps the body, such as tower-http's `MapRequestBodyLayer`.
///
/// | what | answer |
/// | --- | --- |
/// | a body larger than the limit; one whose `content-length` says so is not read at all | 413 `lock_body_too_large` |
/// | not here within [`body_timeout`](Self::body_timeout) | 408 `lock_body_timeout` |
/// | that ended too early | 400 `lock_body_incomplete` |
/// | no JSON where JSON is read, a member twice, deeper than 64 levels | 400 `lock_body_invalid` |
impl LockLayer<WithBody> {
    /// As [`template`](LockLayer::template), and may name sources in the body, up to `limit` bytes.
    ///
    /// # Errors
    ///
    /// As of [`template`](LockLayer::template).
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), lock_tower::TemplateError> {
    /// # let locks = lock_core::LockManager::in_memory();
    /// use std::time::Duration;
    /// use lock_tower::LockLayer;
    ///
    /// let layer = LockLayer::body_template(locks, "pay:<bearer>:<form.token>", 64 * 1024)?
    ///     .cooldown(Duration::from_secs(60));
    /// # let _ = layer; Ok(()) }
    /// ```
    pub fn body_template(
        locks: LockManager,
        template: impl Into<KeyTemplate>,
        limit: usize,
    ) -> Result<Self, TemplateError> {
        let written = template.into();
        let template = parser::parse(&written, Reading::WithBody)?;
        let names_route = template.names_route();
        let layer = Self::new(locks, WithBody::new(template));
        let layer = layer.with(|policy| policy.body.bytes = limit);
        Ok(layer.of_template(&written, names_route))
    }

    /// As [`extractor`](LockLayer::extractor), for one that reads the body, up to `limit` bytes.
    ///
    /// # Examples
    ///
    /// ```
    /// # let locks = lock_core::LockManager::in_memory();
    /// use std::time::Duration;
    /// use lock_tower::{LockLayer, key};
    ///
    /// let layer = LockLayer::body_extractor(locks, (key::bearer(), key::route(), key::body()), 64 * 1024)
    ///     .cooldown(Duration::from_secs(60));
    /// # let _ = layer;
    /// ```
    pub fn body_extractor(locks: LockManager, extractor: impl KeyExtractor, limit: usize) -> Self {
        let layer = Self::new(locks, WithBody::new(Whole(extractor)));
        layer.with(|policy| policy.body.bytes = limit)
    }

    /// How long the whole body may take to come, if the key is made of it. Zero is
    /// [`Invalid`](Self::checked). Default: 10 s.
    pub fn body_timeout(self, timeout: Duration) -> Self {
        self.with(|policy| policy.body.time = timeout)
    }
}

impl<K> LockLayer<K> {
    fn of_template(self, written: &KeyTemplate, names_route: bool) -> Self {
        self.with(|policy| {
            policy.template = Some(written.text().into());
            policy.names_route = names_route;
        })
    }
}

/// A user's function.
struct Closure<F>(F);

impl<F> AtOnce for Closure<F>
where
    F: Fn(&Parts) -> Option<LockKey> + Send + Sync + 'static,
{
    fn key(&self, request: &mut Parts) -> Result<LockKey, NoKey> {
        let key = (self.0)(request).ok_or(NoKey::missing(None))?;
        // What is wrong with a key that was made from a request is wrong with the request.
        match key.as_str() {
            Some(_) => Ok(key),
            None => Err(NoKey::Invalid(None)),
        }
    }
}
