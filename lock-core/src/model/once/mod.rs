//! A model of effects that happen once: the effect of a request and its answer in one commit of a database.
//!
//! A world is a lock, a database, and runs of a handler in two processes. Clients send the same request again and again,
//! also late and to both processes at once. A run takes the lock, looks for a record, begins a transaction with a claim,
//! does the handler's work, completes the claim with its answer, commits, and answers. The database executes a COMMIT
//! that is on its way at some time, also after the process that sent it has died. It notices the end of a connection at
//! some time. A run whose COMMIT gets no answer is decided by a claim on a new connection.
//!
//! Only faults are limited: processes die, locks are lost, connections break, handlers fail, records expire or are
//! forgotten by an operator, and the database fails over to a replica that lacks the last commit. Numbers of runs are used
//! again, so the clients never stop.
//!
//! The life of a record lasts from its claim until it expires or is forgotten. In every state:
//!
//! * One life has at most one committed effect.
//! * An answer is given after its effect is committed, and all answers of a life are equal.
//! * No run commits an effect after its client was told that it failed.
//! * A path without faults leads to an answer.
//!
//! A design is a list of changes of the decided one. The model leaves out the time that a record lives, requests that
//! differ under one key, and the difference between a duplicate that is refused and one that waits.
//!
//! With `LOCK_MODEL=large`, the tests search about ten million states, in some minutes in release mode.

mod design;
mod run;
mod search;
mod steps;
mod world;

mod faults_are_found;
mod worlds;
