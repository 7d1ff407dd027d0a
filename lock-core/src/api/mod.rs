//! The public API: the manager, requests, guards and handles.

pub(crate) mod acquire;
pub(crate) mod body;
pub(crate) mod builder;
mod check_sql;
mod connect;
mod constructors;
pub(crate) mod downgrade;
pub(crate) mod every;
#[cfg(all(test, feature = "test-util"))]
mod every_tests;
pub(crate) mod guard;
pub(crate) mod handle;
pub(crate) mod held_lock;
#[cfg(feature = "axum")]
mod http;
pub(crate) mod installed;
pub(crate) mod keep;
pub(crate) mod leader;
pub(crate) mod manager;
pub mod middleware;
pub mod operator;
pub(crate) mod ownership;
#[doc(hidden)]
pub mod private;
#[cfg(feature = "redis")]
mod redis1;
#[cfg(feature = "redis")]
pub(crate) mod redis_client;
mod remember;
#[cfg(feature = "idempotent")]
pub(crate) mod remembered;
pub(crate) mod request;
pub(crate) mod requested_keys;
pub(crate) mod run;
#[cfg(all(test, feature = "test-util"))]
mod run_tests;
mod settings;
#[cfg(feature = "test-util")]
pub mod test_util;
mod ticket;
mod url;
