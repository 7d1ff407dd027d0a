//! Converts a lock's error into the return value of an annotated function.

use crate::base::error::Error;

/// A return type that can express that the function did not get its lock.
///
/// `#[distributed_lock]` ends a function with `R::from_lock_error(error)` when the lock is busy,
/// unavailable or lost. The trait is implemented for `Result<T, E>` with any `E:
/// From<lock_core::Error>`. These types include aliases of `Result`, `anyhow::Error` and `Box<dyn Error +
/// Send + Sync>`. With the feature `axum`, it is also implemented for axum's `Response`. For any
/// other type, give the attribute `on_error = …`.
///
/// # Examples
///
/// ```
/// use lock_core::FromLockError;
///
/// /// The outcome of a job.
/// #[derive(Debug, PartialEq)]
/// enum Job { Done, Skipped }
///
/// impl FromLockError for Job {
///     fn from_lock_error(_: lock_core::Error) -> Self { Job::Skipped }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot carry the error of a lock",
    label = "this return type cannot express \"busy\" or \"unavailable\"",
    note = "return `Result<T, E>` with `impl From<lock_core::Error> for E`,",
    note = "or say what to return instead, by the argument `on_error = |error| …` of the attribute"
)]
pub trait FromLockError: Sized {
    /// Returns the function's value for `error`.
    fn from_lock_error(error: Error) -> Self;
}

#[diagnostic::do_not_recommend]
impl<T, E: From<Error>> FromLockError for Result<T, E> {
    fn from_lock_error(error: Error) -> Self {
        Err(error.into())
    }
}
