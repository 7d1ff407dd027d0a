//! A model of shares: readers and permits beside exclusive owners, on one server.
//!
//! A world is a server with one key, up to five clients that want it once, and messages between them. Messages arrive
//! in any order; some are lost, or arrive twice. Clients crash, give up, or do nothing for a while. A client from
//! outside deletes the key. The server runs [`protocol`](crate::protocol), as the embedded store does.
//!
//! Exclusive owners release by the script of shares, which lets in all readers behind them, or by that of a plain lock,
//! which knows no shares, as owners of older versions and owners that have seen no shares of the key do. There, and in a
//! first attempt, each token is that of a plain lock to the protocol. A share that
//! the script of shares lets in counts at once. A share that was given the key by the other script asks first, which
//! lets in those behind it. An owner goes on as a reader.
//!
//! Time is a small number. A lease that was granted to a question of the time `t` counts for its client before
//! `t + ttl`, and for the server before the time of the grant + ttl.
//!
//! In every state:
//!
//! * An exclusive owner is alone, no reader stands beside a permit, and there are never more owners than the highest limit
//!   among them.
//! * The server keeps the key, and each share, at least as long as its owner believes in it.
//! * A fencing token of an exclusive owner is above all earlier ones. That of a share is above all earlier ones of
//!   exclusive owners.
//! * After each script that admits waiters, no first waiter is left that would fit.
//! * Before any lease could end, no first waiter is left that would fit once all messages have arrived. This is
//!   checked where nothing fails.
//! * No newcomer stands beside others while an exclusive waiter is before it.
//! * No share is renewed that an exclusive owner has overtaken, also after a deletion.
//! * From sampled states, every waiter gets in within a ttl and a grant once nothing fails any more, also beside one
//!   client that stands still.
//!
//! The model leaves out the drift of clocks and the queues within a process, which the model of the plain lock covers.
//! `LOCK_MODEL=large` explores large worlds, some eighty million states. In release mode this takes less than ten
//! minutes, and half a gigabyte of memory.

mod check;
mod client;
mod downgrade;
mod fault;
mod server;
mod steps;
mod world;
mod wrong_server;

mod faults_are_found;
mod worlds;
