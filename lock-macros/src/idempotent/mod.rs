//! `#[idempotent]`: the body runs once for a key, and later calls get its result.
//!
//! ```text
//! async fn charge(order: u64, cents: u64) -> R {
//!     let (request, memory, body) = prepare(move || {
//!         let request = installed_request(key).ttl(…).wait(…);
//!         let memory = Memory::<R>::new("shop::charge", lifetime, fingerprint);
//!         let body = body(move |handle| async move { …; { the body } });
//!         (request, memory, body)
//!     });
//!     match remembered(request, memory, body).await { … }
//! }
//! ```
//!
//! With `tx = tx` no lock is taken. The result is in the transaction of the caller:
//!
//! ```text
//!     let (key, wait, memory, body) = prepare(move || {
//!         …
//!         let body = async move |tx: &mut Tx<Db>| { …; { the body } };
//!         (key, wait, memory, body)
//!     });
//!     match remembered_in(&mut *tx, <Tx<Db>>::transaction, key, wait, memory, body).await { … }
//! ```
//!
//! Everything else is that of `#[distributed_lock]`, in `expand`.

mod args;
mod check;
mod result;
mod steps;
mod words;

pub(crate) use args::IdempotentArgs;
