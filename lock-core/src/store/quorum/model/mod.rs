//! The fencing tokens and the locks of many nodes on a model, all of whose states are looked at.
//!
//! A world is three nodes, two or three clients, and one message at a time between each two of them. A
//! message arrives at any time, in any order, or never; an answer comes late; a question is sent twice
//! because its connection broke; a question of a lease that is over arrives after all. A client stops
//! at any moment, for a while or for ever. A key runs out at any time after its owner's deadline, and
//! before it where as many other nodes have it as it takes. A server comes back without its data, and
//! stays out until the longest ttl has passed.
//! An attempt that is contested gives back what it has, and goes on with another round. A lease that is
//! held is proposed to a node that is without it, where a majority has it.
//!
//! In every state: nobody is granted a lock that another still counts on; the tokens of a grant, those
//! that its tasks may use included, are above all that any grant before it may have used.
//!
//! The client decides by the kit's own code: [`decide`](super::tally::decide) counts the ballots,
//! [`next`](super::proposal_number::next) makes the numbers, [`accepts`](super::proposal_number::accepts) is a node's
//! rule. The node is the embedded store's, told in fewer words; `node_tests.rs` holds the two against
//! each other, operation by operation.
//!
//! What is left out: queues and pushes, which grant nothing here; durations, of which only the order
//! counts; cooldowns, which are keys that nobody owns; keys that share a register, which only makes
//! their numbers higher. Of the questions of a client that nobody waits for any more, one at a time
//! may still arrive. What a client takes for the time is one of a few numbers; it is only believed to
//! be above all earlier ones where a server has lost its data ([`watch`](super::node_monitor)). Nodes are
//! alike, and so are clients that want the lock as often: worlds that differ in their names are one.
//!
//! The same explorer is shown the naive rule, the highest of what a majority of the nodes have counted:
//! it finds a token that is given twice. And what the model is made to do wrong, it finds.
//!
//! `LOCK_MODEL=large` looks at worlds of several million states (in release mode, some minutes).

mod explore;
mod fault;
mod node;
mod steps;
mod take;
mod world;

mod faults_are_found;
mod node_tests;
mod worlds;
