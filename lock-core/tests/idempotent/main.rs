//! `#[idempotent]` on real functions, with the embedded store.
//!
//! Each test has its own manager, so the tests can run in parallel.
#![allow(clippy::disallowed_methods, reason = "tests run on the real machine")]
#![cfg(feature = "idempotent")]

mod arguments;
// These tests need a store that loses a lock on command.
#[cfg(feature = "test-util")]
mod ending;
mod inside;
#[path = "../log/mod.rs"]
mod log;
mod results;
mod shapes;
mod stored;
mod together;
