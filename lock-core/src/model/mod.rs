//! Models: all states of a small world are visited, and each is checked.
//!
//! * [`ticket`]: a lock that an owner passes on to another process by a ticket.
//! * [`once`]: effects that happen once, with a record in the user's database.
//! * `store/quorum/model`: votes of several servers.
//!
//! The random histories of `tests/sim` judge all kinds of locks. They run the real client, and the real scripts or the store on
//! PostgreSQL.
//!
//! With `LOCK_MODEL=large`, the tests search worlds of millions of states (some minutes in
//! release mode).

mod once;
pub(crate) mod seen;
mod ticket;
mod visit;

/// Returns whether the large worlds are to be searched.
pub(crate) fn is_large() -> bool {
    std::env::var("LOCK_MODEL").is_ok_and(|size| size == "large")
}
