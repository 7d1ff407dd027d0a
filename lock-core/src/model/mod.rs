//! A model of queue, hand-over, high-water mark and cohort.
//!
//! The tests search small worlds completely. `tests/sim` covers larger ones by random histories of the real code.
//!
//! A world is a server, some processes, and messages between them. Messages arrive at any time, in
//! any order, or not at all. A process that does nothing for a while represents a stopped process.
//! The server runs [`protocol`](crate::protocol), as the embedded store does; `tests/sim` compares that with the scripts.
//! The real [`Lease`](crate::lease::Lease) and the real [`Anchor`](crate::lease::deadline::Anchor) decide when and for how
//! long a lease counts. The server's clock runs faster or slower than the processes' clock by 1 %.
//!
//! In every state:
//!
//! * At most one owner believes that it holds the lock, and the server's key is that owner's.
//! * Fencing tokens rise from owner to owner.
//! * No command touches the key of another token, and no command shortens or lengthens a cooldown.
//! * No lease passes on, or is superseded, whose record is on its way. A record comes back by no late message, and no
//!   waiter stands behind it.
//! * A release that leaves a gap hands the key to no waiter.
//! * No lease stays in its process for more than a count while another process waits, and the next
//!   lease of that process does not supersede it then.
//! * Each token in the store has an owner or a waiter, or will be undone.
//! * No waiter waits forever.
//!
//! The model does not cover a clock that goes back after a lease has expired without a release.
//! Only the progress of the clock guarantees its fencing token, so the kit promises nothing there.
//!
//! With `LOCK_MODEL=large`, the tests search worlds of several million states (some minutes in
//! release mode).

mod check;
mod explore;
mod fault;
mod message;
mod once;
mod process;
pub(crate) mod seen;
mod server;
mod shares;
mod ticket;
mod visit;
mod world;
mod wrong_server;

mod faults_are_found;
mod record_worlds;
mod worlds;
