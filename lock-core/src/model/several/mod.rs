//! A model of locks of several keys: who waits for whom, and which tokens are given back when.
//!
//! A world is some processes, each of which wants some keys once, and the messages between them and the store. Messages
//! arrive at any time and in any order. Time is left out: a key of a dead process may run out at any moment, and a waiter
//! whose queue has forgotten it asks again at some time. The store is a transcription of `all.lua`, of the acquire that
//! queues, and of the release that hands a key over. A process takes the steps of
//! [`engine::several`](crate::engine::several).
//!
//! In every state:
//!
//! * A process that holds its lock has each of its keys in the store, by the token that it knows.
//!
//! From every state, once no new process begins and nothing more fails:
//!
//! * Each process that has begun gets its lock, or gives up. None waits for ever.
//! * No key is left behind.

mod steps;
mod world;
mod worlds;
