//! Locked functions in the edition of 2018.

#![deny(warnings)]

#[path = "../../common/mod.rs"]
pub mod common;
pub mod own;
