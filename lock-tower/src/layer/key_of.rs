//! Returns the key of a request to the operator of a service.

use http::Request;
use http_body::Body;
use lock_core::LockKey;

use super::LockLayer;
use crate::key::{HeadOnly, KeyError, KeyLookup, RequestKeys, WithBody};
#[cfg(feature = "replay")]
use crate::service::Replaying;

impl LockLayer<HeadOnly> {
    /// Returns the key that this layer makes from a request.
    ///
    /// With it, an operator can release a key that cools down, by
    /// [`LockManager::forget`](lock_core::LockManager::forget). The request needs all parts that the key
    /// is made from. The store is not asked. Of a layer with [several keys](Self::and), it is the key of the first template.
    ///
    /// # Errors
    ///
    /// The request lacks a part of its key, or the part is ambiguous or malformed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = lock_core::LockManager::in_memory();
    /// # let layer = lock_tower::LockLayer::template(locks.clone(), "pay:<header.x-user-id>:<idempotency-key>")?;
    /// use http::Request;
    ///
    /// let request = Request::post("/payments")
    ///     .header("x-user-id", "42")
    ///     .header("idempotency-key", "8e03978e")
    ///     .body(())?;
    /// let key = layer.key_of(request).await?;
    /// assert_eq!(key.as_str(), Some("pay:42:8e03978e"));
    /// locks.forget(key).await?; // the next request with this key runs
    /// # Ok(()) }
    /// ```
    pub async fn key_of<B: Send + 'static>(
        &self,
        request: Request<B>,
    ) -> Result<LockKey, KeyError> {
        key(self.key.lookup(request)).await
    }
}

impl LockLayer<WithBody> {
    /// Returns the key that this layer makes from a request and its body.
    ///
    /// It is `key_of` of a layer that reads the head alone, except that it reads the body, too.
    ///
    /// # Errors
    ///
    /// The request lacks a part of its key, the part is ambiguous or malformed, or the body is.
    pub async fn key_of<B>(&self, request: Request<B>) -> Result<LockKey, KeyError>
    where
        B: Body<Error: Send> + Send + 'static,
    {
        key(self.key.lookup(request, self.policy.body)).await
    }
}

#[cfg(feature = "replay")]
impl LockLayer<Replaying> {
    /// Returns the key that this layer makes from a request, under which its answer is recorded.
    ///
    /// [`LockManager::forget`](lock_core::LockManager::forget) removes the record, so the next request
    /// runs.
    ///
    /// # Errors
    ///
    /// The request lacks a part of its key, or the part is ambiguous or malformed.
    pub async fn key_of<B>(&self, request: Request<B>) -> Result<LockKey, KeyError>
    where
        B: Body<Error: Send> + Send + 'static,
    {
        key(self.key.lookup(request, self.policy.body)).await
    }
}

async fn key<B>(lookup: KeyLookup<B>) -> Result<LockKey, KeyError> {
    let (_, key) = match lookup {
        KeyLookup::Done(made) => made,
        KeyLookup::Pending(making) => making.await,
    };
    key.map(RequestKeys::into_first).map_err(KeyError::from)
}
