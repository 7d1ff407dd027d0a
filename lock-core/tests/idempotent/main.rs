//! `#[idempotent]` on real functions, with the embedded store.
//!
//! Each test has its own manager, so the tests can run in parallel. A test in which the kit logs collects the lines, because
//! a place that logs for the first time without a collector is silent for all tests.
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
mod size;
mod stored;
mod together;
