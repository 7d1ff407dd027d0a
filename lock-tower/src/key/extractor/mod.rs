//! Extractors: the trait, its combinators, and the extractors that lock-tower provides.

mod builtin;
mod combinators;
mod reads;

use std::future::Future;

#[cfg(feature = "axum")]
pub use builtin::param;
pub use builtin::{
    Constant, FromBody, FromHead, bearer, body, constant, cookie, extension, form, forwarded,
    header, host, idempotency_key, method, path, peer, query, route, session, x_forwarded_for,
};
#[cfg(feature = "json")]
pub use builtin::{json, json_digest};
pub(crate) use combinators::WholeKey;
pub(super) use combinators::optional;
pub use combinators::{Digested, Lowercase, Optional};
pub use reads::{Reads, ReadsNoBody};

use super::{KeyError, KeyPart, KeyRequest};

/// Finds a part of a request's key.
///
/// lock-tower [provides extractors](super) for the parts of a request. An implementation of this trait
/// may wait for another service (a session store), may fail, and may read the body.
///
/// A tuple of extractors is an extractor, which joins their parts in order. Different sequences of
/// values make different keys. An extractor that refuses cheaply belongs first, and one that reads the
/// body belongs last.
///
/// # Examples
///
/// ```
/// use lock_tower::LockLayer;
/// use lock_tower::key::{self, HeadOnly, KeyError, KeyExtractor, KeyPart, KeyRequest};
///
/// struct Account(Sessions);
///
/// impl KeyExtractor for Account {
///     type Reads = HeadOnly;
///
///     async fn extract(&self, request: &mut KeyRequest<'_>) -> Result<KeyPart, KeyError> {
///         let id = request.headers().get("x-session").ok_or(KeyError::missing("x-session"))?;
///         let found = self.0.account_of(id.as_bytes()).await;
///         let account = found.map_err(|_| KeyError::unavailable())?;
///         KeyPart::new("account", account)
///     }
/// }
/// # struct Sessions;
/// # impl Sessions { async fn account_of(&self, _: &[u8]) -> Result<u64, ()> { Ok(7) } }
/// # let (locks, sessions) = (lock_core::LockManager::in_memory(), Sessions);
///
/// let layer = LockLayer::extractor(locks, (key::constant("pay"), Account(sessions), key::route()));
/// # let _ = layer;
/// ```
pub trait KeyExtractor: Send + Sync + 'static {
    /// Declares which part of the request is read.
    ///
    /// It is [`HeadOnly`](super::HeadOnly), or [`WithBody`](super::WithBody) for an extractor that
    /// calls [`KeyRequest::body`]. The latter needs
    /// [`LockLayer::body_extractor`](crate::LockLayer::body_extractor).
    type Reads: Reads;

    /// Finds the part of this request's key.
    ///
    /// # Errors
    ///
    /// [`KeyError`] determines the response that the client receives.
    ///
    /// # Cancel safety
    ///
    /// The layer drops the future if the request is dropped. An implementation must tolerate that at
    /// every await.
    fn extract(
        &self,
        request: &mut KeyRequest<'_>,
    ) -> impl Future<Output = Result<KeyPart, KeyError>> + Send;

    /// Appends the part of another extractor.
    #[must_use]
    fn and<E: KeyExtractor>(self, next: E) -> (Self, E)
    where
        Self: Sized,
    {
        (self, next)
    }

    /// Makes the part optional.
    ///
    /// A request without the part then has a key, which differs from that of every request with the
    /// part. An empty value differs from an absent one. A request still has no key if *no* part of it
    /// identifies its client, because all such requests would share a lock.
    #[must_use]
    fn optional(self) -> Optional<Self>
    where
        Self: Sized,
    {
        Optional(self)
    }

    /// Replaces the part by its SHA-256, for values that are secret or long.
    ///
    /// It does not protect values that can be guessed. A reader of the key can try all user numbers.
    #[must_use]
    fn digested(self) -> Digested<Self>
    where
        Self: Sized,
    {
        Digested(self)
    }

    /// Converts the part to lower case, so that `Alice` and `alice` make one key.
    #[must_use]
    fn lowercase(self) -> Lowercase<Self>
    where
        Self: Sized,
    {
        Lowercase(self)
    }
}
