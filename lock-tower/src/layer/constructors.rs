//! The constructors of a layer, which determine how its keys are made.

use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use lock_core::{LockKey, LockManager};

use super::LockLayer;
use crate::key::{
    AllowedSources, HeadOnly, KeyExtractor, KeyFailure, KeyTemplate, ReadsNoBody, SyncKey,
    Template, TemplateError, WholeKey, WithBody, parse_template,
};
use crate::telemetry::LongHolds;

impl LockLayer {
    /// Makes a layer whose key is a template, such as `"submit:<header.x-user-id>"`.
    ///
    /// Each `<source>` in the text stands for a value of the request. [Templates](crate#templates)
    /// lists the sources. A [`KeyTemplate`] adds sources in the extensions of the request.
    ///
    /// # Errors
    ///
    /// The template cannot be parsed, would make one lock for all requests, or has a source in the
    /// body, for which [`body_template`](LockLayer::body_template) is needed. The error says where the
    /// template is wrong and what to write.
    pub fn template(
        locks: LockManager,
        template: impl Into<KeyTemplate>,
    ) -> Result<Self, TemplateError> {
        let written = template.into();
        let template = parse_template(&written, AllowedSources::Head)?;
        let names = Names::of(&template);
        let layer = Self::with_key(locks, HeadOnly::sync(template));
        Ok(layer.with_template(&written, names))
    }

    /// Makes a layer whose key is made by a closure from the head of the request.
    ///
    /// The head consists of method, URI, headers and extensions. If the closure returns `None`, the
    /// request has no key, and [`on_missing_key`](Self::on_missing_key) decides what happens to it.
    ///
    /// Make the key with `lock_key!`, which encodes the values so that different values make different
    /// keys. A key made with `format!` has no such guarantee. If the key is empty or longer than 1 024
    /// bytes, the request is refused with 400 `lock_key_invalid`.
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
        Self::with_key(locks, HeadOnly::sync(KeyClosure(key)))
    }

    /// Makes a layer whose key is made by one or several [extractors](crate::key).
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
    /// An extractor that reads the body needs [`body_extractor`](LockLayer::body_extractor):
    ///
    /// ```compile_fail
    /// # let locks = lock_core::LockManager::in_memory();
    /// let layer = lock_tower::LockLayer::extractor(locks, lock_tower::key::body());
    /// ```
    pub fn extractor<E>(locks: LockManager, extractor: E) -> Self
    where
        E: KeyExtractor<Reads: ReadsNoBody>,
    {
        Self::with_key(locks, HeadOnly::waiting(WholeKey(extractor)))
    }
}

/// # Layers that read the body
///
/// Such a layer reads the whole body before it acquires the lock. It keeps the body for the handler,
/// which reads the same bytes and trailers. It keeps up to `limit` bytes for every request in flight.
/// It does not read the body if the method is not locked, or if the head lacks a part of the key.
///
/// Requests reach the inner service with a [`RequestBody`](crate::RequestBody) in place of `B`. axum's
/// routers accept it, as does every service that accepts any body. For a service that requires a
/// certain type, add a layer that maps the body, such as tower-http's `MapRequestBodyLayer`.
///
/// | body | response |
/// | --- | --- |
/// | larger than the limit (not read at all if its `content-length` says so) | 413 `lock_body_too_large` |
/// | incomplete after [`body_timeout`](Self::body_timeout) | 408 `lock_body_timeout` |
/// | ended too early, or failed, also because the limit of an outer layer was reached | 400 `lock_body_incomplete` |
/// | invalid JSON, JSON with a duplicate member, or JSON deeper than 64 levels | 400 `lock_body_invalid` |
impl LockLayer<WithBody> {
    /// Makes a layer whose template may have sources in the body, of up to `limit` bytes.
    ///
    /// # Errors
    ///
    /// The template cannot be parsed, or would make one lock for all requests. The error says where
    /// the template is wrong and what to write.
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
        let template = parse_template(&written, AllowedSources::HeadAndBody)?;
        let names = Names::of(&template);
        let layer = Self::with_key(locks, WithBody::new(template));
        let layer = layer.with(|policy| policy.body.bytes = limit);
        Ok(layer.with_template(&written, names))
    }

    /// Makes a layer whose extractor may read the body, of up to `limit` bytes.
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
        let layer = Self::with_key(locks, WithBody::new(WholeKey(extractor)));
        layer.with(|policy| policy.body.bytes = limit)
    }

    /// Sets how long the whole body may take to arrive, if the key is made from it.
    ///
    /// Zero is [`Invalid`](Self::checked). Default: 10 s.
    pub fn body_timeout(self, timeout: Duration) -> Self {
        self.with(|policy| policy.body.time = timeout)
    }
}

/// # Several keys
impl LockLayer {
    /// Locks the key of another template, too: all keys or none.
    ///
    /// A request gets all its keys together, as by [`LockManager::lock_all`]. It is refused if one of them is taken or cools
    /// down. The order of the templates does not matter, and equal keys count once. A request without one of its keys has
    /// no key. A layer has at most 16 keys; more are [`Invalid`](Self::checked).
    ///
    /// A cooldown applies to each key, and rules out a [`wait`](Self::wait). After a cooldown that a
    /// [handler](crate::LockContext::cool_down) or a [disconnect](crate::Disconnect::HoldUntilTtl) requests, requests that
    /// wait run. Handlers get one fencing token for all of the keys.
    ///
    /// # Errors
    ///
    /// As [`template`](Self::template).
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), lock_tower::TemplateError> {
    /// # let locks = lock_core::LockManager::in_memory();
    /// use std::time::Duration;
    /// use lock_tower::LockLayer;
    ///
    /// let layer = LockLayer::template(locks, "account:<query.from>")?
    ///     .and("account:<query.to>")?
    ///     .wait(Duration::from_secs(2));
    /// # let _ = layer; Ok(()) }
    /// ```
    pub fn and(mut self, template: impl Into<KeyTemplate>) -> Result<Self, TemplateError> {
        let written = template.into();
        let template = parse_template(&written, AllowedSources::Head)?;
        let names = Names::of(&template);
        self.key.and(template);
        Ok(self.with_another(&names))
    }
}

/// # Several keys
impl LockLayer<WithBody> {
    /// Locks the key of another template, too: all keys or none.
    ///
    /// As `and` of a layer that reads the head alone, and the template may have sources in the body.
    ///
    /// # Errors
    ///
    /// As [`body_template`](Self::body_template).
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), lock_tower::TemplateError> {
    /// # let locks = lock_core::LockManager::in_memory();
    /// use lock_tower::LockLayer;
    ///
    /// let layer = LockLayer::body_template(locks, "account:<form.from>", 65_536)?.and("account:<form.to>")?;
    /// # let _ = layer; Ok(()) }
    /// ```
    pub fn and(mut self, template: impl Into<KeyTemplate>) -> Result<Self, TemplateError> {
        let written = template.into();
        let template = parse_template(&written, AllowedSources::HeadAndBody)?;
        let names = Names::of(&template);
        self.key.and(template);
        Ok(self.with_another(&names))
    }
}

impl<K> LockLayer<K> {
    fn with_another(self, names: &Names) -> Self {
        self.with(|policy| {
            policy.keys += 1;
            policy.names_route |= names.route;
            // One operation has all keys, so a caller in one of them is a part of it.
            policy.names_caller |= names.caller;
            policy.names_optional |= names.optional;
        })
    }

    fn with_template(self, written: &KeyTemplate, names: Names) -> Self {
        self.with(|policy| {
            policy.long_holds = Arc::new(LongHolds::of_template(written.text()));
            policy.names_route = names.route;
            policy.names_caller = names.caller;
            policy.names_optional = names.optional;
        })
    }
}

/// The parts of a request that a template names and that matter beyond the key.
struct Names {
    route: bool,
    caller: bool,
    optional: bool,
}

impl Names {
    fn of(template: &Template) -> Self {
        Self {
            route: template.names_route(),
            caller: template.names_caller(),
            optional: template.names_optional(),
        }
    }
}

/// A user's function that makes the key.
struct KeyClosure<F>(F);

impl<F> SyncKey for KeyClosure<F>
where
    F: Fn(&Parts) -> Option<LockKey> + Send + Sync + 'static,
{
    fn key(&self, request: &mut Parts) -> Result<LockKey, KeyFailure> {
        let key = (self.0)(request).ok_or(KeyFailure::missing(None))?;
        // The closure makes the key from the request, so an invalid key means an invalid request.
        match key.as_str() {
            Some(_) => Ok(key),
            None => Err(KeyFailure::Invalid(None)),
        }
    }
}
