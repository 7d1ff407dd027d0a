//! A deterministic simulation of lock-core: processes, a network and Redis servers in one thread, on a virtual clock.

#[cfg(not(lock_sim))]
compile_error!("run cargo in the folder tests/sim and without RUSTFLAGS, so that `--cfg lock_sim` is set");

pub mod server;
