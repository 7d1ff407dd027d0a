//! Runs all tests that need a real server, a second process or a browser.
#![allow(
    clippy::disallowed_methods,
    reason = "tests watch real servers and therefore read the real clock"
)]

mod audit;
mod browser;
mod cluster;
mod compared;
mod conformance;
mod console;
mod consumer;
mod covered;
mod credentials;
mod dice;
mod face;
mod failover;
mod faults;
mod guide;
mod harness;
mod inventory;
mod kinds;
mod layer;
mod layers;
mod nightly;
mod once;
mod opentelemetry;
mod payments;
mod postgres;
mod redis;
mod redlock;
mod replicas;
mod rooms;
mod sentinel;
mod shop;
mod signatures;
mod steps;
mod tickets;
mod tls;
mod waiting;
