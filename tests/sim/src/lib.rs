//! A deterministic simulation of lock-core: processes, a network and Redis servers in one thread, on a virtual clock.
//!
//! One seed is one history. `README.md` of this package explains it.

#[cfg(not(lock_sim))]
compile_error!(
    "run cargo in the folder tests/sim and without RUSTFLAGS, so that `--cfg lock_sim` is set"
);

pub mod find;
pub mod history;
pub mod ledger;
pub mod linear;
pub mod place;
pub mod plan;
pub mod postgres;
pub mod rng;
pub mod search;
pub mod server;
pub mod shrink;
#[cfg(test)]
mod tests;
pub mod work;
pub mod world;
