//! Layers that repeat the first answer to duplicates (feature `replay`).

mod answers;
mod bodies;
mod callers;
mod clients;
mod encodings;
mod fingerprints;
mod forgotten;
mod grpc;
mod handlers;
mod headers;
#[cfg(feature = "metrics")]
mod metrics;
mod nested;
mod outages;
mod settings;
mod steps;
mod tickets;
mod unreadable;
mod waiting;
