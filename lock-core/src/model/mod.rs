//! Models: all states of a small world are visited, and each is checked.
//!
//! * [`ticket`]: the hand-over of a lock from process to process by a ticket.
//! * [`once`]: effects that happen once, with a record in the user's database.
//! * `store/quorum/model`: votes of several servers.
//!
//! All other kinds of locks are judged by the random histories of `tests/sim`, which run the real client and the real scripts.
//!
//! With `LOCK_MODEL=large`, the tests search worlds of several million states (some minutes in
//! release mode).

mod once;
pub(crate) mod seen;
mod ticket;
mod visit;

/// Returns whether the large worlds are to be searched.
pub(crate) fn is_large() -> bool {
    std::env::var("LOCK_MODEL").is_ok_and(|size| size == "large")
}
