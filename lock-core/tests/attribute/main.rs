//! The attribute on real functions, with the embedded store. `tests/editions` has functions of every shape.
//!
//! Each test has its own manager, in scope by `LockManager::scope` or named by `manager =`. So the
//! tests of this file can run in parallel.
#![allow(clippy::disallowed_methods, reason = "tests run on the real machine")]
#![cfg(feature = "macros")]

mod arguments;
mod ending;
mod forbidding;
mod keys;
// These tests need a store that loses a lock on command.
#[cfg(feature = "test-util")]
mod loss;
mod other_macros;
mod probe;
mod reentry;
mod refusal;
mod send;
mod size;
mod stack;
