//! Everything that needs a real server, a second process or a browser.
#![allow(
    clippy::disallowed_methods,
    reason = "tests watch real servers: they read the real clock"
)]

mod audit;
mod browser;
mod conformance;
mod face;
mod harness;
mod layer;
mod redis;
mod replicas;
mod shop;
