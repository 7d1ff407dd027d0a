//! The return types whose values can be kept.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Result as Json;

use super::bytes::Draft;
use super::fingerprint::Fingerprint;
use super::memory::Memory;

/// A result that a function with `#[idempotent]` can keep and return again.
///
/// The trait is sealed. It is implemented for `Result<T, E>` whose `T` implements serde's `Serialize` and
/// `DeserializeOwned`. `E` needs neither, because errors are not kept, except with the attribute's argument `errors`.
///
/// A type parameter of the function has these bounds in its own `where`:
///
/// ```
/// # #[cfg(feature = "idempotent")] mod example {
/// use lock_core::{Error, idempotent};
/// use serde::{Serialize, de::DeserializeOwned};
///
/// #[idempotent(key = "job:<id>", ttl = "10s", remember = "24h", fingerprint = none)]
/// async fn once<T>(id: u64, result: T) -> Result<T, Error>
/// where
///     T: Serialize + DeserializeOwned,
/// {
///     Ok(result)
/// }
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "the result of an `#[idempotent]` function is kept by serde: return `Result<T, E>` whose `T` implements \
               `Serialize` and `DeserializeOwned`",
    label = "this result cannot be kept"
)]
pub trait Remember: sealed::Sealed + Sized {
    /// Writes an `Ok`.
    #[doc(hidden)]
    fn write_value(&self, draft: &mut Draft) -> Option<Json<()>>;

    #[doc(hidden)]
    fn read_value(json: &[u8]) -> Json<Self>;

    /// Makes the memory of a call, which needs the bounds of this trait nowhere else.
    #[doc(hidden)]
    #[must_use]
    fn memory(
        function: &'static str,
        lifetime: Duration,
        fingerprint: Fingerprint,
    ) -> Memory<Self> {
        Memory::new(function, lifetime, fingerprint)
    }
}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned, E> Remember for Result<T, E> {
    fn write_value(&self, draft: &mut Draft) -> Option<Json<()>> {
        let value = self.as_ref().ok()?;
        Some(serde_json::to_writer(draft, value))
    }

    fn read_value(json: &[u8]) -> Json<Self> {
        serde_json::from_slice(json).map(Ok)
    }
}

/// A result whose errors can be kept too.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "the error type of `errors = …` must be `Serialize + DeserializeOwned`, because such errors are kept by serde",
    label = "the error of this result cannot be kept"
)]
pub trait RememberErrors: sealed::Sealed + Sized {
    /// Writes an `Err`.
    fn write_error(&self, draft: &mut Draft) -> Option<Json<()>>;

    fn read_error(json: &[u8]) -> Json<Self>;

    /// Remembers the errors that `are_remembered` accepts.
    #[must_use]
    fn remember_errors(memory: Memory<Self>, are_remembered: fn(&Self) -> bool) -> Memory<Self> {
        memory.with_errors(are_remembered)
    }
}

#[diagnostic::do_not_recommend]
impl<T, E: Serialize + DeserializeOwned> RememberErrors for Result<T, E> {
    fn write_error(&self, draft: &mut Draft) -> Option<Json<()>> {
        let error = self.as_ref().err()?;
        Some(serde_json::to_writer(draft, error))
    }

    fn read_error(json: &[u8]) -> Json<Self> {
        serde_json::from_slice(json).map(Err)
    }
}

/// Returns whether a result is kept: a value always, and an error if `errors` says so.
#[doc(hidden)]
pub fn is_remembered<T, E>(result: &Result<T, E>, errors: impl FnOnce(&E) -> bool) -> bool {
    match result {
        Ok(_) => true,
        Err(error) => errors(error),
    }
}

mod sealed {
    pub trait Sealed {}

    impl<T, E> Sealed for Result<T, E> {}
}
