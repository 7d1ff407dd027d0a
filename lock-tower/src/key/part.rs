//! The part of a key that an extractor found.

use std::fmt::{self, Display};

use lock_core::LockKey;

use super::encode::{self, ABSENT};
#[cfg(feature = "json")]
use super::encode::{DIGEST, NOT_TEXT};
use super::{KeyError, KeyFailure};

/// An encoded part of a key.
///
/// Different sequences of parts make different keys, because an encoded part contains no separator.
/// `Debug` does not show the part.
///
/// # Examples
///
/// ```
/// use lock_tower::key::{KeyError, KeyPart};
///
/// # struct Order { tenant: String, number: u64 }
/// fn part_of(order: &Order) -> Result<KeyPart, KeyError> {
///     Ok(KeyPart::new("tenant", &order.tenant)?.and(KeyPart::new("number", order.number)?))
/// }
/// # part_of(&Order { tenant: "t".into(), number: 7 }).unwrap();
/// ```
#[derive(Clone)]
pub struct KeyPart {
    text: String,
    /// It consists of several parts with separators between them.
    composite: bool,
    /// It distinguishes one client, or one resource, from another.
    identifies: bool,
    /// An optional part in it is absent or empty.
    has_gap: bool,
}

impl KeyPart {
    /// Makes a part from a value. A refusal contains its `name`, and never the value.
    ///
    /// # Errors
    ///
    /// [Missing](KeyError::missing): the value displays as an empty string or as white space.
    pub fn new(name: &str, value: impl Display) -> Result<Self, KeyError> {
        Ok(Self::value(name, &value.to_string())?)
    }

    /// Appends another part. `("a:b", "c")` and `("a", "b:c")` make different keys.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.text.push(':');
        self.text.push_str(&other.text);
        Self {
            text: self.text,
            composite: true,
            identifies: self.identifies || other.identifies,
            has_gap: self.has_gap || other.has_gap,
        }
    }
}

impl KeyPart {
    /// Refuses a blank value, because all clients that send one would share a lock.
    pub(super) fn value(name: &str, value: &str) -> Result<Self, KeyFailure> {
        if value.trim().is_empty() {
            return Err(KeyFailure::empty(name));
        }
        Ok(Self::text(value))
    }

    pub(super) fn text(value: &str) -> Self {
        let mut text = String::with_capacity(value.len());
        encode::push(&mut text, value);
        Self::encoded(text)
    }

    /// Makes a part from a JSON value that is not a string, in its canonical spelling.
    #[cfg(feature = "json")]
    pub(super) fn not_text(written: &str) -> Self {
        let mut text = NOT_TEXT.to_owned();
        encode::push(&mut text, written);
        Self::encoded(text)
    }

    /// Makes a digest of a JSON value, in a place where a string could stand.
    #[cfg(feature = "json")]
    pub(super) fn marked_digest(of: &str) -> Self {
        Self::encoded(format!("{DIGEST}{}", encode::sha256(of)))
    }

    pub(super) fn digest(of: impl AsRef<[u8]>) -> Self {
        Self::encoded(encode::sha256(of))
    }

    fn encoded(text: String) -> Self {
        Self {
            text,
            composite: false,
            identifies: true,
            has_gap: false,
        }
    }

    /// Marks a part that many clients have in common.
    pub(super) fn common(mut self) -> Self {
        self.identifies = false;
        self
    }

    pub(super) fn substitute(text: &str) -> Self {
        Self {
            has_gap: true,
            ..Self::encoded(text.to_owned()).common()
        }
    }

    /// Encloses a composite part in brackets.
    ///
    /// Without them, its separators could be confused with those around it, because an optional part
    /// may be absent.
    pub(super) fn present(mut self) -> Self {
        if self.composite {
            self.text = format!("%({}%)", self.text);
            self.composite = false;
        }
        self
    }

    pub(super) fn lowercase(mut self) -> Self {
        self.text = encode::lowercase(&self.text);
        self
    }

    pub(super) fn digested(mut self) -> Self {
        if self.text != ABSENT {
            self.text = encode::sha256(&self.text);
            self.composite = false;
        }
        self
    }

    pub(super) fn push_to(&self, key: &mut KeyText) {
        key.text.push_str(&self.text);
        key.identifies |= self.identifies;
        key.has_gap |= self.has_gap;
    }
}

impl fmt::Debug for KeyPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyPart(..)")
    }
}

/// The text of a key while its parts are appended.
#[derive(Default)]
pub(super) struct KeyText {
    text: String,
    identifies: bool,
    has_gap: bool,
    /// The length of its beginning that is the same for all requests, in bytes.
    fixed: usize,
}

impl KeyText {
    pub(super) fn beginning_with(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            fixed: text.len(),
            ..Self::default()
        }
    }

    pub(super) fn push_text(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Makes the key, and refuses one in which no part identifies the client.
    ///
    /// Otherwise all clients that omit every optional part would share a lock.
    pub(super) fn finish(self) -> Result<LockKey, KeyFailure> {
        if self.has_gap && !self.identifies {
            return Err(KeyFailure::missing(None));
        }
        Ok(encode::finish(self.text, self.fixed))
    }
}
