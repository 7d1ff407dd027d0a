//! Lock keys, and the builder that fills in key templates.

use std::fmt::{self, Display, Write as _};
use std::sync::Arc;

use crate::base::error::Error;

/// The longest key, in bytes of UTF-8 after encoding.
const MAX_BYTES: usize = 1024;

/// Names the thing that a lock protects.
///
/// A key is made from text (`"order:42"`), by the template macro [`lock_key!`](crate::lock_key), or
/// by [`exact`](LockKey::exact). Making a key never fails. The method that uses an unusable key
/// returns [`Invalid`](crate::ErrorKind::Invalid). A key is unusable if it is:
///
/// * empty or longer than 1 024 bytes,
/// * text with `<` or `>`, because it looks like an unfilled template and would silently be one
///   global lock,
/// * text that begins with `!`, because the kit stores its own data under such names.
///
/// # Examples
///
/// ```
/// use lock_core::LockKey;
///
/// let plain: LockKey = "order:42".into();
/// assert_eq!(plain.as_str(), Some("order:42"));
/// let unfilled: LockKey = "order:<uid>".into();
/// assert_eq!(unfilled.as_str(), None);
/// assert_eq!(LockKey::exact("a<b").as_str(), Some("a<b"));
/// ```
#[derive(Clone)]
pub struct LockKey(Result<Arc<str>, Error>);

impl LockKey {
    /// Makes a key from text as it is, `<` and `>` included.
    ///
    /// A key that is empty, too long or begins with `!` is still invalid.
    #[must_use]
    pub fn exact(key: impl Into<String>) -> Self {
        Self(checked(key.into()))
    }

    /// Returns the text if the key is valid.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        self.0.as_deref().ok()
    }

    pub(crate) fn into_result(self) -> Result<Arc<str>, Error> {
        self.0
    }
}

impl From<&str> for LockKey {
    fn from(key: &str) -> Self {
        Self::from(key.to_owned())
    }
}

impl From<String> for LockKey {
    fn from(key: String) -> Self {
        if key.contains(['<', '>']) {
            return Self(Err(Error::invalid(
                "the key looks like a template that was not filled in; write `lock_key!(\"…\")`, \
                 or `LockKey::exact(…)` if it is meant literally",
            )));
        }
        Self(checked(key))
    }
}

impl From<&String> for LockKey {
    fn from(key: &String) -> Self {
        Self::from(key.clone())
    }
}

impl From<&LockKey> for LockKey {
    fn from(key: &LockKey) -> Self {
        key.clone()
    }
}

impl fmt::Debug for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_ok() {
            "LockKey(..)"
        } else {
            "LockKey(invalid)"
        })
    }
}

fn checked(key: String) -> Result<Arc<str>, Error> {
    if key.is_empty() {
        return Err(Error::invalid(
            "the key is empty; name what is to be locked, such as `order:42`",
        ));
    }
    if key.len() > MAX_BYTES {
        return Err(Error::invalid(format!(
            "the key is {} bytes long; the longest is {MAX_BYTES} (lock a digest of it instead)",
            key.len()
        )));
    }
    if key.starts_with('!') {
        return Err(Error::invalid(
            "the key begins with `!`, where the kit keeps its own data; begin it with a letter",
        ));
    }
    Ok(key.into())
}

/// Fills in a template with literal text and percent-encoded values.
///
/// Different values always make different keys, because a value cannot hold an unencoded separator
/// (`:`, `{` or `}`) and the placeholders of a template are separated by at least one of them.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct KeyBuilder {
    key: String,
    empty: Option<&'static str>,
    too_long: bool,
}

impl KeyBuilder {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    pub fn text(&mut self, text: &str) {
        self.key.push_str(text);
    }

    /// Appends `value`. An empty value makes the key invalid, and the error names `placeholder`.
    pub fn value(&mut self, placeholder: &'static str, value: &(impl KeyValue + ?Sized)) {
        let before = self.key.len();
        let mut encoder = Encoder(&mut self.key);
        // The encoder fails beyond the length that any key may have, and the key is refused as too
        // long. A `Display` that fails by itself is refused in the same way.
        self.too_long |= write!(encoder, "{value}").is_err();
        if self.key.len() == before && !self.too_long {
            self.empty.get_or_insert(placeholder);
        }
    }

    #[must_use]
    pub fn finish(self) -> LockKey {
        if let Some(placeholder) = self.empty {
            return LockKey(Err(Error::invalid(format!(
                "the placeholder `<{placeholder}>` of the key is empty; every placeholder needs a value"
            ))));
        }
        if self.too_long {
            return LockKey(Err(Error::invalid(format!(
                "a value of the key could not be written within {MAX_BYTES} bytes; lock a digest of it instead"
            ))));
        }
        LockKey(checked(self.key))
    }
}

/// A value that a placeholder of a key template accepts: any type with `Display`.
///
/// The trait exists so that the compiler can explain how to fix a type without `Display`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of a lock key because it has no `Display`",
    label = "a value in `<…>` is written with its `Display`",
    note = "name a part of it that has one, as in `<order.id>`, or write `impl Display`"
)]
pub trait KeyValue: Display {}

#[diagnostic::do_not_recommend]
impl<T: Display + ?Sized> KeyValue for T {}

/// Percent-encodes text and appends it to a key.
struct Encoder<'a>(&'a mut String);

impl fmt::Write for Encoder<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            if must_be_encoded(character) {
                let mut utf8 = [0; 4];
                for byte in character.encode_utf8(&mut utf8).bytes() {
                    write!(self.0, "%{byte:02X}")?;
                }
            } else {
                self.0.push(character);
            }
            if self.0.len() > MAX_BYTES {
                return Err(fmt::Error);
            }
        }
        Ok(())
    }
}

fn must_be_encoded(character: char) -> bool {
    matches!(character, '%' | ':' | '{' | '}' | '<' | '>')
        || character.is_whitespace()
        || character.is_control()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(values: &[&str]) -> LockKey {
        let mut builder = KeyBuilder::new();
        for (index, value) in values.iter().enumerate() {
            builder.text(if index == 0 { "k:" } else { ":" });
            builder.value("value", value);
        }
        builder.finish()
    }

    #[test]
    fn values_that_hold_the_separator_cannot_collide() {
        let shifted = [
            filled(&["a:b", "c"]),
            filled(&["a", "b:c"]),
            filled(&["a%3Ab", "c"]),
        ];
        let texts: std::collections::HashSet<_> =
            shifted.iter().map(|key| key.as_str().unwrap()).collect();
        assert_eq!(texts.len(), 3);
    }

    #[test]
    fn a_value_cannot_set_the_cluster_slot_or_break_a_line() {
        assert_eq!(
            filled(&["{tag}\r\n <x>"]).as_str(),
            Some("k:%7Btag%7D%0D%0A%20%3Cx%3E")
        );
    }

    #[test]
    fn an_empty_value_names_its_placeholder() {
        let error = filled(&["a", ""]).into_result().unwrap_err();
        assert!(error.to_string().contains("`<value>`"), "{error}");
    }

    #[test]
    fn unusable_keys_say_what_to_write() {
        for (key, hint) in [
            (LockKey::from(""), "empty"),
            (LockKey::from("x".repeat(10_000)), "1024"),
            (LockKey::from("order:<uid>"), "lock_key!"),
            (LockKey::from("!f"), "`!`"),
            (filled(&[&"x".repeat(10_000)]), "digest"),
        ] {
            let error = key.into_result().unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::Invalid);
            assert!(error.to_string().contains(hint), "{error}");
        }
    }

    #[test]
    fn the_longest_key_is_1024_bytes() {
        assert!(LockKey::from("x".repeat(1024)).as_str().is_some());
        assert!(LockKey::from("x".repeat(1025)).as_str().is_none());
    }

    #[test]
    fn debug_does_not_show_the_key() {
        assert_eq!(format!("{:?}", LockKey::from("alice")), "LockKey(..)");
    }
}
