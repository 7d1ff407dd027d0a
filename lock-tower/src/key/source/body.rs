//! Values from the body of a request.

use super::BodySource;
use crate::key::canonical::{decoded_pairs, text};
use crate::key::{KeyPart, NoKey};

impl BodySource {
    /// The type of the content is not asked for: what the body is, the handler will decide the same
    /// way whatever a header says.
    pub(crate) fn read(&self, body: &[u8]) -> Result<KeyPart, NoKey> {
        match self {
            #[cfg(feature = "json")]
            Self::Json(pointer) => super::json::at(body, pointer, &self.to_string()),
            #[cfg(feature = "json")]
            Self::Document => super::json::digest(body),
            Self::Form(name) => self.field(body, name),
            Self::Bytes if body.is_empty() => Err(NoKey::empty(&self.to_string())),
            Self::Bytes => Ok(KeyPart::digest(body)),
        }
    }

    /// Of a form as browsers send it: `application/x-www-form-urlencoded`.
    fn field(&self, body: &[u8], name: &str) -> Result<KeyPart, NoKey> {
        let mut values = decoded_pairs(body, name);
        let first = values
            .next()
            .ok_or_else(|| NoKey::missing(Some(&self.to_string())))?;
        if values.any(|value| value != first) {
            return Err(NoKey::Ambiguous(self.to_string()));
        }
        KeyPart::value(&self.to_string(), &text(first))
    }
}
