//! Locked functions in the edition of 2024.

#![deny(warnings)]

#[path = "../../common/mod.rs"]
pub mod common;
pub mod own;
