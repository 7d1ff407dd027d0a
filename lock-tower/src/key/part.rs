//! What an extractor has found.

use std::fmt::{self, Display};

use lock_core::LockKey;

use super::encode::{self, ABSENT};
#[cfg(feature = "json")]
use super::encode::{DIGEST, NO_TEXT};
use super::{KeyError, NoKey};

/// A part of a key, encoded, so that parts that are put together can be told apart.
///
/// `Debug` does not show it.
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
    /// Put together from several, by separators.
    composite: bool,
    /// It tells one caller, or one thing, from another.
    names: bool,
    /// Something optional in it is not there, or is empty.
    gap: bool,
}

impl KeyPart {
    /// A value. `name` is what a refusal calls it if it is missing; the value itself is never shown.
    ///
    /// # Errors
    ///
    /// The value displays as nothing, or as nothing but white space: [missing](KeyError::missing).
    pub fn new(name: &str, value: impl Display) -> Result<Self, KeyError> {
        Ok(Self::value(name, &value.to_string())?)
    }

    /// This and then another one. `("a:b", "c")` and `("a", "b:c")` are different.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.text.push(':');
        self.text.push_str(&other.text);
        Self {
            text: self.text,
            composite: true,
            names: self.names || other.names,
            gap: self.gap || other.gap,
        }
    }
}

impl KeyPart {
    /// Blanks are nobody's name: all who send them would share a lock.
    pub(super) fn value(name: &str, value: &str) -> Result<Self, NoKey> {
        if value.trim().is_empty() {
            return Err(NoKey::empty(name));
        }
        Ok(Self::text(value))
    }

    pub(super) fn text(value: &str) -> Self {
        let mut text = String::with_capacity(value.len());
        encode::push(&mut text, value);
        Self::encoded(text)
    }

    /// Of a document: something that is no text, as it is written.
    #[cfg(feature = "json")]
    pub(super) fn no_text(written: &str) -> Self {
        let mut text = NO_TEXT.to_owned();
        encode::push(&mut text, written);
        Self::encoded(text)
    }

    /// Of a document: a digest where a text could stand.
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
            names: true,
            gap: false,
        }
    }

    /// That many callers have in common.
    pub(super) fn common(mut self) -> Self {
        self.names = false;
        self
    }

    pub(super) fn stand_in(text: &str) -> Self {
        Self {
            gap: true,
            ..Self::encoded(text.to_owned()).common()
        }
    }

    /// In brackets if it is put together: otherwise its separators could be taken for those around
    /// it when it is not there.
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

    pub(super) fn push_to(&self, key: &mut Key) {
        key.text.push_str(&self.text);
        key.names |= self.names;
        key.gap |= self.gap;
    }
}

impl fmt::Debug for KeyPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyPart(..)")
    }
}

/// A key that is being put together.
#[derive(Default)]
pub(super) struct Key {
    text: String,
    names: bool,
    gap: bool,
    /// How much of its beginning is the same for all requests.
    fixed: usize,
}

impl Key {
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

    /// Whoever leaves out all that is optional shares no lock with all the others who do.
    pub(super) fn finish(self) -> Result<LockKey, NoKey> {
        if self.gap && !self.names {
            return Err(NoKey::missing(None));
        }
        Ok(encode::finish(self.text, self.fixed))
    }
}
