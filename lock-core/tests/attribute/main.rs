//! The attribute on real functions, over the embedded store.
//!
//! Each test has a manager of its own, in scope by `LockManager::scope` or named by `manager =`, so
//! that the tests of this file run at once without meeting each other.

mod arguments;
mod control_flow;
mod ending;
mod keys;
mod probe;
mod refusal;
mod send;
mod shapes;
