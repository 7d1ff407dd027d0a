//! Holds the tests that every edition compiles: one module for each property of functions.

pub mod arguments;
pub mod async_traits;
pub mod attributes;
pub mod bodies;
pub mod errors;
pub mod futures;
pub mod generics;
pub mod handlers;
pub mod made;
pub mod patterns;
pub mod receivers;
pub mod remembered;
pub mod returns;
pub mod shadowed;
pub mod traced;
pub mod traits;
pub mod witness;
