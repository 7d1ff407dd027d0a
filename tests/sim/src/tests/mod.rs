//! The tests of `cargo test`. They are a part of the library, which is compiled once for all of them.

mod differential;
mod embedded;
mod histories;
mod linearizable;
mod protocol;
mod same;
