//! What the tests of the workspace stand on: real servers, a network that fails on command, real
//! processes and a real browser.
//!
//! - [`RedisServer`]: a redis-server of its own, in a folder of its own, that can be stopped, killed
//!   and brought back on the same port.
//! - [`ReplicaSet`], [`Sentinels`] and [`RedisCluster`]: several of them, one taking another's place.
//! - [`Tls`]: certificates, for servers that speak it.
//! - [`ServerClock`]: a time of day for servers, that steps on command.
//! - [`SplitCluster`]: a cluster that can be parted in two.
//! - [`Proxy`]: a TCP proxy that holds, delays, replaces and cuts what passes through it.
//! - [`FakeServer`]: a peer that speaks the protocol badly, or not at all.
//! - [`ChildProcess`] and [`ShopProcess`]: processes that end with the test, however the test ends.
//! - [`Browser`]: a headless browser with real pointer events.
//! - [`needs!`]: how a test says that it could not run, and why.
//!
//! Everything listens and connects on loopback only.
//!
//! # Panics
//!
//! A harness that cannot do what a test asks for panics with the reason: there is nothing a test
//! could do about it, and the panic names the line in the test.
#![allow(
    clippy::disallowed_methods,
    reason = "tests watch real servers: they read the real clock"
)]
#![allow(
    clippy::exhaustive_enums,
    clippy::exhaustive_structs,
    clippy::must_use_candidate,
    reason = "not a published interface: its only users are the tests next door"
)]

pub mod browser;
mod child;
mod fake;
pub mod faults;
mod folder;
pub mod http;
pub mod http2;
mod junction;
pub mod missing;
mod port;
mod proxy;
mod redis;
mod resp;
mod shop;
mod thread;
pub mod wait;
mod watchdog;

pub use browser::Browser;
pub use child::ChildProcess;
pub use fake::{Answer, FakeServer};
pub use port::Port;
pub use proxy::{Direction, Flow, Proxy};
pub use redis::ServerClock;
pub use redis::{Authority, Certificate, Tls};
pub use redis::{RedisCluster, RedisOptions, RedisServer, ReplicaSet, Sentinels, SplitCluster};
pub use shop::{ShopOptions, ShopProcess};
