//! The machine under the kit: clocks, randomness, names, runtimes, tasks, timers, and connections.
//!
//! All other code takes these from here. The shipped build has [`real`], whose functions call the operating system and
//! tokio. With `--cfg lock_sim`, as the package `tests/sim` has it, a simulation takes their place.

#[cfg(not(lock_sim))]
mod real;
#[cfg(lock_sim)]
pub mod simulated;

#[cfg(not(lock_sim))]
pub(crate) use self::real::*;
#[cfg(lock_sim)]
pub(crate) use self::simulated::ambient::*;
