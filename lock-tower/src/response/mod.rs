//! One request on its way: its future, its handler, and the body of its response.

mod body;
mod body_lock;
mod future;
mod handler;
mod running;

#[cfg(feature = "replay")]
pub(crate) use body::ReadyBody;
pub use body::ResponseBody;
pub(crate) use future::ReadyService;
pub use future::ResponseFuture;
#[cfg(feature = "replay")]
pub(crate) use handler::UntilBodyEnd;
