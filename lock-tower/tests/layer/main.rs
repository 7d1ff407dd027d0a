//! The layer as its users see it, on the embedded store: at the level of services and, with the
//! feature `axum`, over real sockets on loopback.

mod cancellation;
mod common;
mod cooldown;
mod duplicates;
mod failures;
mod keys;
mod logs;
mod loss;
mod outcomes;
mod public_api;
mod readiness;
mod responses;
#[cfg(feature = "axum")]
mod routes;
mod sockets;
