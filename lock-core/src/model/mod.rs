//! Queue, hand-over, mark and cohort on a model: all that can happen, in small worlds, and much that
//! can happen in larger ones.
//!
//! A world is a server, some processes, and messages between them that arrive at any time, in any
//! order, or not at all. A process that does nothing for a while is one that was stopped. The server
//! is the scripts, transcribed; when and for how long a lease counts is decided by the real
//! [`Lease`](crate::lease::Lease) and the real [`Anchor`](crate::lease::deadline::Anchor). Its clock runs
//! faster or slower than the processes' by 1 %.
//!
//! In every state: at most one tenure has an open window, and the server's key is that tenure's;
//! fencing tokens rise from tenure to tenure; no command touches a key of another token, nor cuts or
//! lengthens a cooldown; a key that its owner leaves free for a while is given to no waiter by that; no
//! lease stays in its process for more than a count while another process waits, nor does the next
//! lease of that process step over it then; whatever stands in the store is looked after by somebody;
//! and nobody who waits does so for ever.
//!
//! Not looked at: a clock that goes back after a lease has run out that nobody gave back. Only the
//! clock's going on vouches for its fencing token, so that is no promise.
//!
//! `LOCK_MODEL=large` looks at worlds of several million states (in release mode, some minutes).

mod check;
mod explore;
mod fault;
mod process;
mod queue;
pub(crate) mod seen;
mod server;
mod simulate;
mod world;

mod faults_are_found;
mod worlds;
