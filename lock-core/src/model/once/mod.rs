//! A model of effects that happen once: the effect of a request and its answer in one commit of a database.
//!
//! A world is a lock, a database, and runs of a handler in two processes. Clients repeat their requests for ever, also
//! to both processes at once; only faults are limited. A run takes the lock, looks for a record, claims the key in the
//! handler's transaction, does the handler's work, completes the claim with the answer, commits, and answers. The
//! database executes a COMMIT at any time, also that of a dead process, and notices the end of a connection at any time.
//! A claim on a new connection decides what became of a COMMIT without an answer.
//!
//! The life of a record lasts from its claim until it expires or an operator deletes it. In every state:
//!
//! * One life has at most one committed effect.
//! * An answer is given after its effect is committed, and all answers of a life are equal.
//! * No run commits an effect after its client was told that it failed.
//! * A path without faults leads to an answer for each key.
//!
//! A failover that drops a commit drops the answers about it too. The model leaves out requests that differ under one
//! key, and duplicates that wait for the lock.
//!
//! With `LOCK_MODEL=large`, the tests search about ten million states in some minutes.

mod design;
mod run;
mod search;
mod steps;
mod world;

mod faults_are_found;
mod worlds;
