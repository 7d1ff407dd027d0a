//! One connection to one server: requests, batches of them, pushes and replies.

pub(super) mod batch;
mod batch_flush;
pub(super) mod card;
pub(super) mod connection;
mod health;
pub(super) mod keyspace;
pub(super) mod login;
pub(super) mod operator_reply;
pub(super) mod probe;
pub(super) mod push;
pub(super) mod reply;
pub(super) mod scripts;
pub(super) mod send_error;
pub(super) mod server;
pub(super) mod slots;
pub(super) mod spans;
pub(super) mod tls;
pub(super) mod version;
pub(super) mod wait;
