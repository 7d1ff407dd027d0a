//! A model of the fencing tokens and locks of a quorum, all of whose states are explored.
//!
//! A world is three nodes, two or three clients, and one message at a time between each client and node. A
//! message arrives at any time, in any order, or never. An answer arrives late. A question is sent twice
//! because its connection broke. A question of a lease that is over arrives after all. A client stops at any
//! moment, for a while or for ever. A key expires at any time after its owner's deadline, and before it where a
//! majority of other nodes has it. A server comes back without its data, and does not vote until the longest
//! ttl has passed. A contested attempt withdraws its votes and goes on with another round. A held lease is
//! proposed to a node that is without it, where a majority has it. A held lease takes a fencing token of another key.
//!
//! In every state no client is granted a lock on which another client still counts, but for a reader beside
//! readers. The tokens of a grant, including those that its tasks may use, are above all tokens that any earlier
//! grant may have used. Those of a reader are above the ones of all earlier locks.
//!
//! The client decides by the kit's own code: [`decide`](super::tally::decide) counts the ballots,
//! [`next`](super::proposal_number::next) makes the numbers, and [`accepts`](crate::store::vote::accepts) is a
//! node's rule. The node is a short form of the embedded store's node. `node_tests.rs` compares the two,
//! operation by operation.
//!
//! The model leaves out queues and pushes, which grant nothing here. It leaves out durations, of which only the
//! order counts. It leaves out cooldowns, which are keys without an owner, and keys that share a register,
//! which only raises their numbers. Of the abandoned questions of a client, one at a time may still arrive. A
//! client's time is one of a few numbers. It is believed to be above all earlier ones only where a server has
//! lost its data ([`node_monitor`](super::node_monitor)). Nodes are alike, and so are clients that want the
//! lock as often, so worlds that differ only in their names are one.
//!
//! The same explorer checks the naive rule, the highest count of a majority of the nodes. It finds a token that
//! is given twice. It also finds each of the model's faults.
//!
//! `LOCK_MODEL=large` explores worlds of several million states (in release mode, some minutes).

mod explore;
mod fault;
mod inside;
mod node;
mod steps;
mod take;
mod world;

mod faults_are_found;
mod node_tests;
mod worlds;
