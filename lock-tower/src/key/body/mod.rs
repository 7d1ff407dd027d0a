//! The body of a request, read for its key and then by its handler.

mod reader;
mod request_body;
mod tap;

pub(crate) use reader::{BodyLimits, BodyReader};
pub use request_body::RequestBody;
#[cfg(feature = "replay")]
pub(crate) use request_body::{Remainder, as_bytes};
pub(crate) use tap::BodyTap;
