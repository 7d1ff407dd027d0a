//! Tests the harness itself, because other tests rely on its behaviour.

mod browser;
mod child;
mod clock;
mod cluster;
mod fake;
mod http;
mod missing;
mod port;
mod proxy;
mod redis;
mod replicas;
mod sql;
