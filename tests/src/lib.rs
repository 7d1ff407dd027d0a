//! The harness of the workspace's tests.
//!
//! It has real servers, a network that fails on command, real processes and a real browser.
//!
//! - [`RedisServer`]: a redis-server with a folder of its own. A test can stop it, kill it and start
//!   it again on the same port.
//! - [`ReplicaSet`], [`Sentinels`] and [`RedisCluster`]: several servers, of which one can replace
//!   another.
//! - [`Tls`]: certificates, for servers that speak TLS.
//! - [`ServerClock`]: a clock for servers, which steps on command.
//! - [`SplitCluster`]: a cluster that a test can part in two.
//! - [`Proxy`]: a TCP proxy that holds, delays, replaces and cuts what passes through it.
//! - [`FakeServer`]: a peer that speaks the protocol badly, or not at all.
//! - [`SqlServer`]: a PostgreSQL or a MariaDB with an empty database. A PostgreSQL may have standbys, and a [`Pooler`].
//! - [`ChildProcess`] and [`ShopProcess`]: processes that always end with the test.
//! - [`Browser`]: a headless browser with real pointer events.
//! - [`needs!`]: reports that a test could not run, and why.
//!
//! Everything listens and connects on loopback only.
//!
//! # Panics
//!
//! A harness that cannot do what a test asks for panics with the reason. A test could not handle the
//! failure, and the panic names the line of the test.
#![allow(
    clippy::disallowed_methods,
    reason = "tests watch real servers and therefore read the real clock"
)]
#![allow(
    clippy::exhaustive_enums,
    clippy::exhaustive_structs,
    clippy::must_use_candidate,
    reason = "not a published interface: its only users are the tests next door"
)]

pub mod browser;
mod child;
pub mod compared;
mod empty_postgres;
mod example;
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
mod sql;
mod thread;
pub mod wait;
mod watchdog;

pub use browser::Browser;
pub use child::ChildProcess;
pub use example::example;
pub use fake::{Answer, FakeServer};
pub use port::Port;
pub use proxy::{Direction, Flow, Proxy};
pub use redis::ServerClock;
pub use redis::{Authority, Certificate, Tls};
pub use redis::{RedisCluster, RedisOptions, RedisServer, ReplicaSet, Sentinels, SplitCluster};
pub use shop::{ShopOptions, ShopProcess};
pub use sql::{Pooler, SqlServer};
