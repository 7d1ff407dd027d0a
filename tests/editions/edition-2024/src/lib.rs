//! Locked functions in the edition of 2024.

#![deny(warnings)]
// `cargo test --doc` compiles all libraries of the workspace, and nothing uses this one.
#![cfg(any(test, clippy))]

#[path = "../../common/mod.rs"]
pub mod common;
pub mod own;
