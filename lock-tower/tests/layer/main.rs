//! Tests of the layer on the embedded store: at the level of services and, with the
//! feature `axum`, over real sockets on loopback.

mod bodies;
mod body_end;
#[cfg(feature = "axum")]
mod body_sockets;
mod cancellation;
mod common;
mod cooldown;
mod cooldown_waits;
mod disconnects;
mod duplicates;
mod extractors;
mod extremes;
mod failures;
mod handler_controls;
#[cfg(feature = "axum")]
mod hosts;
#[cfg(feature = "axum")]
mod http2;
#[cfg(feature = "axum")]
mod http2_bodies;
#[cfg(feature = "json")]
mod json_bodies;
mod kept;
mod keys;
mod log;
mod logs;
mod loss;
#[cfg(feature = "metrics")]
mod metrics;
mod nested;
mod on_sockets;
mod outages;
mod outcomes;
mod panics;
mod placement;
mod public_api;
mod readiness;
mod refusals;
#[cfg(feature = "replay")]
mod replay;
mod responses;
#[cfg(feature = "axum")]
mod routes;
mod script;
mod settings;
mod several_keys;
mod shadow;
mod shares;
mod shutdown;
mod sockets;
mod stack;
mod stacks;
mod stored_keys;
mod tickets;
#[cfg(feature = "axum")]
mod unlocked;
#[cfg(feature = "axum")]
mod wire;
