//! The harness itself: what other tests conclude from it must be so.

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
