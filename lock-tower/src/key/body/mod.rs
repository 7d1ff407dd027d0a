//! The body of a request, read for its key and then by its handler.

mod reader;
mod request_body;

pub(crate) use reader::{BodyLimits, BodyReader};
pub use request_body::RequestBody;
