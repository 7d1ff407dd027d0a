//! Replay: the first answer to a request is recorded, and its duplicates get the same answer.
//!
//! # Why the recorder is an inner service
//!
//! It runs inside the lock, in the box of the handler. So it goes on after a disconnect, and the layer
//! releases the lock when the record is complete. The release stores the record in the same step.

mod body;
mod collect;
mod compare;
mod duplicate;
#[cfg(feature = "once")]
mod in_database;
mod in_key;
mod recorder;
mod recording;

pub use body::RecordedBody;
pub(crate) use duplicate::answer_duplicate;
pub use recorder::Recorder;
pub(crate) use recorder::unrecorded;
