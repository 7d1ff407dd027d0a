//! The lock of one request: its acquisition, its owner, its cooldown, and the handler's view of it.

mod acquiring;
mod check;
mod context;
mod cooldown;
#[cfg(feature = "replay")]
mod decision;
#[cfg(feature = "axum")]
mod extract;
mod kept;
#[cfg(feature = "replay")]
mod memory;
pub(crate) mod operation;
mod request_lock;
mod waiters;

use std::future::Future;
use std::pin::Pin;

pub(crate) use acquiring::{Acquiring, GrantedLocks, acquire_both};
pub use context::LockContext;
pub(crate) use cooldown::{Cooldown, CooldownRule, is_grpc_error};
#[cfg(feature = "replay")]
pub(crate) use cooldown::{has_succeeded, is_by_inner_layer};
#[cfg(feature = "once")]
pub(crate) use decision::Decision;
#[cfg(feature = "axum")]
pub use extract::NotLocked;
pub use kept::KeptContext;
#[cfg(feature = "replay")]
pub(crate) use memory::Kept;
#[cfg(feature = "replay")]
pub use memory::Replayed;
pub(crate) use request_lock::{RequestLock, SharedLock};

pub(crate) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;
