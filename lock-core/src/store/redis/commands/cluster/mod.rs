//! Operations on a cluster: each goes to the nodes of its keys, and in parts while a slot is moving.

mod acquire;
pub(in crate::store::redis::commands) mod parts;
mod renewing;
mod share_parts;
