//! The attribute on real functions, over the embedded store.
//!
//! Each test has a manager of its own, in scope by `LockManager::scope` or named by `manager =`, so
//! that the tests of this file run at once without meeting each other.

#![cfg(feature = "macros")]

mod arguments;
mod control_flow;
mod ending;
mod forbidding;
mod keys;
// A store that loses a lock on command.
#[cfg(feature = "test-util")]
mod loss;
mod other_macros;
mod probe;
mod reentry;
mod refusal;
mod send;
mod shapes;
mod size;
mod stack;
