//! How the error of a lock becomes the return value of an annotated function.

use crate::base::error::Error;

/// A return type that can say "the lock was not to be had".
///
/// `#[distributed_lock]` ends a function with `R::from_lock_error(error)` when the lock is busy,
/// unavailable or lost. It is there for `Result<T, E>` with any `E: From<lock_core::Error>`, which
/// covers aliases of `Result`, `anyhow::Error` and `Box<dyn Error + Send + Sync>`, and, with the
/// feature `axum`, for axum's `Response`. For any other type give the attribute `on_error = …`.
///
/// # Examples
///
/// ```
/// use lock_core::FromLockError;
///
/// /// A job that says whether it ran.
/// #[derive(Debug, PartialEq)]
/// enum Job { Done, Skipped }
///
/// impl FromLockError for Job {
///     fn from_lock_error(_: lock_core::Error) -> Self { Job::Skipped }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot carry the error of a lock",
    label = "this return type has no room for \"busy\" or \"unavailable\"",
    note = "return `Result<T, E>` with `impl From<lock_core::Error> for E`,",
    note = "or say what to return instead: `#[distributed_lock(…, on_error = |error| …)]`"
)]
pub trait FromLockError: Sized {
    /// What the function returns for `error`.
    fn from_lock_error(error: Error) -> Self;
}

#[diagnostic::do_not_recommend]
impl<T, E: From<Error>> FromLockError for Result<T, E> {
    fn from_lock_error(error: Error) -> Self {
        Err(error.into())
    }
}
