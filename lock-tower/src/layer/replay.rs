//! Makes a layer that repeats the first answer to duplicates.

use std::sync::Arc;

use lock_core::Error;

use super::LockLayer;
use crate::record::Replay;
use crate::service::Replaying;

impl<K: Into<Replaying>> LockLayer<K> {
    /// Answers duplicates with the answer of the first request, as the header `Idempotency-Key` promises.
    ///
    /// The release of a request that succeeded stores its answer under the key, in the same step. A
    /// duplicate gets the same status, body and [kept headers](Replay::headers), with the header
    /// `Idempotency-Replayed: true`. The page [idempotency](crate::idempotency) describes the rules and
    /// the failures.
    ///
    /// | request | response |
    /// | --- | --- |
    /// | while the first is in flight | 409 `lock_busy`; with [`wait`](Self::wait) it waits for the answer |
    /// | after the first succeeded | the same answer |
    /// | after the first succeeded, if its answer [is not kept](crate::Remember::Done) | 409 `lock_done`, without `Retry-After` |
    /// | another request with the same key | 422 `lock_key_reused` |
    /// | after the first failed | runs |
    ///
    /// With `Replay::in_database` (feature `once`) the answer is stored in the application's database, in one commit with the
    /// effect of the handler.
    ///
    /// The layer repeats answers of all [`methods`](Self::methods) that it locks, and refuses one of them without a key
    /// with 400. `methods([Method::POST, Method::PATCH])` lets PUT and DELETE pass, which HTTP defines as idempotent. A
    /// [`cooldown`](Self::cooldown) counts for requests that are not remembered.
    ///
    /// # Errors
    ///
    /// [`Invalid`](lock_core::ErrorKind::Invalid):
    ///
    /// * The key contains no authenticated caller: the template lacks `<ext.…>`, `<bearer>` and
    ///   `<session.…>`, or they are optional, or the key is made by a closure or an extractor.
    ///   [`Replay::caller_is_in_key`] states that the key contains it nevertheless.
    /// * A part of a template is optional, such as `<idempotency-key?>`: all requests without it would share one record.
    ///   The layer cannot see into closures and extractors, which must not make a key without such a part either.
    /// * The layer has [several keys](LockLayer::and), and its records are not in a database.
    /// * The layer has [`shadow`](LockLayer::shadow), and its records are in a database.
    /// * The lifetime exceeds the manager's [`max_ttl`](lock_core::ManagerBuilder::max_ttl).
    /// * A named header must not be replayed, or the largest body exceeds what a store keeps.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = lock_core::LockManager::in_memory();
    /// use lock_tower::{KeyTemplate, LockLayer, Replay};
    ///
    /// #[derive(Clone)]
    /// struct User { id: u64 }
    ///
    /// let key = KeyTemplate::new("pay:<ext.user>:<idempotency-key>")
    ///     .extension("user", |user: &User| user.id);
    /// let layer = LockLayer::template(locks, key)?
    ///     .replay(Replay::default())?
    ///     .documentation("https://api.example.com/idempotency");
    /// # let _ = layer; Ok(()) }
    /// ```
    pub fn replay(self, replay: Replay) -> Result<LockLayer<Replaying>, Error> {
        let Replay {
            rules,
            caller_is_in_key,
        } = replay;
        if self.policy.keys > 1 && !rules.is_in_database() {
            return Err(Error::invalid(
                "a layer with several keys replays no answer, because an answer is recorded under one key; make one key \
                 of the parts, lock the other keys in the handler, or keep the records in your database by \
                 `Replay::in_database`",
            ));
        }
        if !(caller_is_in_key || self.policy.names_caller) {
            return Err(Error::invalid(
                "the key of a replay must contain the caller, or two callers with one key would get each \
                 other's answers: put `<ext.…>`, `<bearer>` or `<session.…>` into the template, without \
                 `?`; if an outer layer vouches for another part of the key, state it by \
                 `Replay::caller_is_in_key`",
            ));
        }
        if self.policy.names_optional {
            return Err(Error::invalid(
                "the key of a replay must have no optional part, or all requests without that part would get the answer \
                 of one; remove the `?`, so that such a request is refused with 400, or runs \
                 without a record by `MissingKey::Pass`",
            ));
        }
        let Self { policy, key } = self.with(|policy| policy.replay = Some(Arc::new(rules)));
        let key = key.into();
        LockLayer { policy, key }.checked()
    }
}

impl LockLayer<Replaying> {
    /// Sets how long the layer waits for a body that it reads itself.
    ///
    /// | body | limit | behind it |
    /// | --- | --- | --- |
    /// | of a request, for a key | of the whole body | 408 `lock_body_timeout` |
    /// | of a duplicate, to compare it | of a pause, because the first upload may have taken long | 408 `lock_body_timeout` |
    /// | of an answer of known length | of the whole body | it is sent as it comes, and the request is [done](crate::Remember::Done) |
    ///
    /// Zero is [`Invalid`](Self::checked). Default: 10 s.
    pub fn body_timeout(self, timeout: std::time::Duration) -> Self {
        self.with(|policy| policy.body.time = timeout)
    }
}
