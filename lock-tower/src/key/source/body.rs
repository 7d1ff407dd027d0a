//! Values from the body of a request.

use super::{BodySource, single_value};
use crate::key::canonical::decoded_pairs;
use crate::key::{KeyFailure, KeyPart};

impl BodySource {
    /// Reads the value from the body.
    ///
    /// It ignores `content-type`, because the handler may interpret the body without that header, too.
    pub(crate) fn read(&self, body: &[u8]) -> Result<KeyPart, KeyFailure> {
        match self {
            #[cfg(feature = "json")]
            Self::Json(pointer) => super::json::at(body, pointer, &self.to_string()),
            #[cfg(feature = "json")]
            Self::Document => super::json::digest(body),
            Self::Form(name) => self.field(body, name),
            Self::Bytes if body.is_empty() => Err(KeyFailure::empty(&self.to_string())),
            Self::Bytes => Ok(KeyPart::digest(body)),
        }
    }

    /// Reads a field of a form as browsers send it (`application/x-www-form-urlencoded`).
    fn field(&self, body: &[u8], name: &str) -> Result<KeyPart, KeyFailure> {
        single_value(&self.to_string(), decoded_pairs(body, name))
    }
}
