//! The functions that the expansion of the macros calls. They are not part of the public API.

use std::future::Future;
use std::time::Duration;

use crate::api::handle::LockHandle;
use crate::api::manager::LockManager;
use crate::api::request::LockRequest;
use crate::api::requested_keys::RequestedKeys;
use crate::api::run::Run;
use crate::base::error::Error;
use crate::base::key::LockKey;
use crate::base::options::Wait;

pub use crate::api::body::Body;
#[cfg(feature = "idempotent")]
pub use crate::api::remembered::{Remembered, remembered};
pub use crate::base::key::KeyBuilder;
#[cfg(all(feature = "idempotent", feature = "once"))]
pub use crate::once::remembered::{REMEMBERED_FOREVER, Transaction, remembered_in};
#[cfg(feature = "idempotent")]
pub use crate::remembered::{
    Fingerprint, FingerprintBuilder, FingerprintValue, Memory, RememberErrors, is_remembered,
};

pub fn installed_request(key: LockKey) -> LockRequest {
    let manager = LockManager::installed();
    let key = RequestedKeys::One(key);
    LockRequest::new(manager.as_ref().map_err(Clone::clone), key)
}

pub fn installed_request_of_all(keys: Vec<LockKey>) -> LockRequest {
    let manager = LockManager::installed();
    let keys = RequestedKeys::All(keys);
    LockRequest::new(manager.as_ref().map_err(Clone::clone), keys)
}

/// `Into<LockKey>`, with a compile error of its own.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a lock key",
    label = "`key = …` takes a template, a `String`, a `&str` or a `LockKey`",
    note = "write a template, as in `key = \"order:<id>\"`: it takes any value that has a `Display`"
)]
pub trait IntoKey {
    fn into_key(self) -> LockKey;
}

#[diagnostic::do_not_recommend]
impl<T: Into<LockKey>> IntoKey for T {
    fn into_key(self) -> LockKey {
        self.into()
    }
}

/// Is a constant, because compilers say more about a wrong path through an enum.
pub const NO_WAIT: Wait = Wait::None;
pub const FOREVER: Wait = Wait::Forever;

/// `Into<Wait>`, with a compile error of its own.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a time to wait",
    label = "`wait = …` takes a text such as `\"2s\"`, `none`, `forever`, a `Duration` or a `Wait`"
)]
pub trait IntoWait {
    fn into_wait(self) -> Wait;
}

#[diagnostic::do_not_recommend]
impl<T: Into<Wait>> IntoWait for T {
    fn into_wait(self) -> Wait {
        self.into()
    }
}

/// Fixes the types of the closure of `on_error`.
pub fn on_error<R, F: FnOnce(Error) -> R>(on_error: F) -> F {
    on_error
}

pub fn answer<R>(error: Error, on_error: impl FnOnce(Error) -> R) -> R {
    on_error(error)
}

/// Calls `arguments`.
///
/// The attribute's arguments borrow inside this closure. So the function around it does not keep
/// the borrows while the body runs.
pub fn prepare<T>(arguments: impl FnOnce() -> T) -> T {
    arguments()
}

/// Puts the body with its arguments on the heap.
pub fn body<C, F>(body: C) -> Body<C, F>
where
    C: FnOnce(LockHandle) -> F,
    F: Future,
{
    Body::new(body)
}

pub fn run<C, F>(request: LockRequest, body: Body<C, F>) -> Run<C, F>
where
    C: FnOnce(LockHandle) -> F,
    F: Future,
{
    request.run_body(body, |_| true)
}

/// Runs the body as [`run`] does, with a cooldown after success.
pub fn run_cooling<C, F>(
    request: LockRequest,
    body: Body<C, F>,
    cooldown: Duration,
    succeeded: fn(&F::Output) -> bool,
) -> Run<C, F>
where
    C: FnOnce(LockHandle) -> F,
    F: Future,
{
    request.cooldown(cooldown).run_body(body, succeeded)
}

/// Decides whether a return value means success, after which a `cooldown` applies.
///
/// Method resolution decides, not a trait bound, so any return type works. axum's `Response` decides by its status, also
/// inside of `Ok`, every other `Result` by itself, and every other value counts as success. The expansion calls the
/// method on `&&ReturnValue`, for which the compiler tries `&ReturnValue` first, then `&&ReturnValue`, and then
/// `ReturnValue`. The method has a name that no trait of the user has.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "the expansion makes it")]
pub struct ReturnValue<'a, T>(pub &'a T);

/// Without the feature `axum` there is no response, and the expansion names the trait all the same.
pub trait SuccessOfResponse {
    fn __lock_succeeded(&self) -> bool;
}

#[cfg(feature = "axum")]
impl SuccessOfResponse for &ReturnValue<'_, axum_core::response::Response> {
    fn __lock_succeeded(&self) -> bool {
        has_succeeded(self.0)
    }
}

#[cfg(feature = "axum")]
impl<E> SuccessOfResponse for &ReturnValue<'_, Result<axum_core::response::Response, E>> {
    fn __lock_succeeded(&self) -> bool {
        self.0.as_ref().is_ok_and(has_succeeded)
    }
}

/// As the layer decides: a form's handler responds with 303 after success, to redirect to the result, and a failed gRPC
/// call has the status 200 and an error in a header.
#[cfg(feature = "axum")]
fn has_succeeded(response: &axum_core::response::Response) -> bool {
    let by_status =
        response.status().is_success() || response.status() == http::StatusCode::SEE_OTHER;
    let grpc_status = response.headers().get("grpc-status");
    by_status && grpc_status.is_none_or(|code| code == "0")
}

pub trait SuccessOfResult {
    fn __lock_succeeded(&self) -> bool;
}

impl<T, E> SuccessOfResult for &&ReturnValue<'_, Result<T, E>> {
    fn __lock_succeeded(&self) -> bool {
        self.0.is_ok()
    }
}

pub trait SuccessOfAny {
    fn __lock_succeeded(&self) -> bool;
}

impl<T> SuccessOfAny for ReturnValue<'_, T> {
    fn __lock_succeeded(&self) -> bool {
        true
    }
}

/// Shows the attribute's arguments a parameter that the body takes apart.
///
/// A `Copy` value is seen as itself, like a plain parameter. Any other value is seen by reference.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "the expansion makes it")]
pub struct View<'a, T: ?Sized>(pub &'a T);

pub trait ViewByValue {
    type Seen;

    fn __lock_view(&self) -> Self::Seen;
}

impl<T: Copy> ViewByValue for View<'_, T> {
    type Seen = T;

    fn __lock_view(&self) -> T {
        *self.0
    }
}

pub trait ViewByReference {
    type Seen;

    fn __lock_view(&self) -> Self::Seen;
}

impl<'a, T: ?Sized> ViewByReference for &View<'a, T> {
    type Seen = &'a T;

    fn __lock_view(&self) -> &'a T {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(
        clippy::needless_borrow,
        reason = "the borrow is what the expansion writes"
    )]
    fn a_failed_result_is_no_success_and_every_other_value_is() {
        assert!((&&ReturnValue(&Ok::<_, ()>(1))).__lock_succeeded());
        assert!(!(&&ReturnValue(&Err::<(), _>(1))).__lock_succeeded());
        assert!((&&ReturnValue(&false)).__lock_succeeded());
        assert!((&&ReturnValue(&None::<u8>)).__lock_succeeded());
        assert!((&&ReturnValue(&())).__lock_succeeded());
    }

    #[cfg(feature = "axum")]
    #[test]
    fn a_response_is_a_success_by_its_status_and_its_grpc_status_also_inside_of_ok() {
        use axum_core::response::Response;
        let response = |status: u16, grpc: Option<&str>| {
            let builder = Response::builder().status(status);
            let builder = grpc
                .into_iter()
                .fold(builder, |builder, code| builder.header("grpc-status", code));
            builder.body(axum_core::body::Body::empty()).unwrap()
        };
        for (status, grpc, succeeded) in [
            (200, None, true),
            (303, None, true),
            (302, None, false),
            (402, None, false),
            (500, None, false),
            (200, Some("0"), true),
            (200, Some("5"), false),
        ] {
            let (bare, inside) = (response(status, grpc), Ok::<_, ()>(response(status, grpc)));
            assert_eq!(
                (&&ReturnValue(&bare)).__lock_succeeded(),
                succeeded,
                "{status}"
            );
            assert_eq!(
                (&&ReturnValue(&inside)).__lock_succeeded(),
                succeeded,
                "{status}"
            );
        }
        let failed = Err::<Response, _>(());
        assert!(!(&&ReturnValue(&failed)).__lock_succeeded());
    }

    #[test]
    #[expect(
        clippy::needless_borrow,
        reason = "the borrow is what the expansion writes"
    )]
    fn copy_values_are_seen_by_value_and_others_by_reference() {
        let number: u64 = (&View(&7_u64)).__lock_view();
        let owned = String::from("a");
        let text: &String = (&View(&owned)).__lock_view();
        let slice: &[u64] = (&View(&[1_u64, 2][..])).__lock_view();
        assert_eq!((number, text.as_str(), slice.len()), (7, "a", 2));
    }
}
