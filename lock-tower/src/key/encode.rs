//! Turns values into the text of a key, by encoding them or by digesting them.

use std::fmt::Write as _;

use lock_core::LockKey;
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use sha2::{Digest, Sha256};

/// The longest key that lock-core accepts, in bytes.
pub(super) const LONGEST: usize = 1024;

/// Stands for an absent optional part.
///
/// No encoded value equals it, because two hexadecimal digits follow each `%` of an encoded value.
pub(super) const ABSENT: &str = "%-";

/// Precedes a value that is not a string, such as a number.
#[cfg(feature = "json")]
pub(super) const NOT_TEXT: &str = "%=";

/// Stands for an optional part that is `null`.
#[cfg(feature = "json")]
pub(super) const NULL: &str = "%=null";

/// Precedes a digest in a place where a string could stand, too.
pub(super) const DIGEST: &str = "%#";

/// Appends an encoded value, which contains no separator.
///
/// The encoding is that of lock-core's templates.
pub(super) fn push(key: &mut String, value: &str) {
    if !value.contains(must_be_encoded) {
        key.push_str(value);
        return;
    }
    for character in value.chars() {
        if must_be_encoded(character) {
            let mut utf8 = [0; 4];
            let bytes = character.encode_utf8(&mut utf8).as_bytes();
            key.extend(percent_encode(bytes, NON_ALPHANUMERIC));
        } else {
            key.push(character);
        }
    }
}

fn must_be_encoded(character: char) -> bool {
    matches!(character, '%' | ':' | '{' | '}' | '<' | '>')
        || character.is_whitespace()
        || character.is_control()
}

/// Returns encoded text in lower case, but keeps encoded bytes and the marks of this file.
pub(super) fn lowercase(encoded: &str) -> String {
    let mut lower = String::with_capacity(encoded.len());
    for (index, piece) in encoded.split('%').enumerate() {
        if index == 0 {
            lower.push_str(&piece.to_lowercase());
            continue;
        }
        let hexadecimal = |end: usize| {
            let digits = piece.as_bytes().get(..end);
            digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
        };
        let kept = if hexadecimal(2) { 2 } else { 0 };
        lower.push('%');
        lower.push_str(&piece[..kept]);
        lower.push_str(&piece[kept..].to_lowercase());
    }
    lower
}

/// Returns the SHA-256 in 64 hexadecimal digits.
pub(super) fn sha256(bytes: impl AsRef<[u8]>) -> String {
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Makes the key from its text, whose first `fixed` bytes are the same for all requests.
///
/// If the text is too long, a digest of it follows those bytes. The result differs from every short
/// key of the same template, because an encoded value follows the fixed bytes there, and such a value
/// never contains `%#`.
pub(super) fn finish(mut text: String, fixed: usize) -> LockKey {
    if text.starts_with('!') {
        // Keys with `!` contain lock-core's own data. No template begins with it, so a value does.
        text.replace_range(..1, "%21");
    }
    if text.len() > LONGEST {
        let digest = sha256(&text);
        // A digest might not fit behind a long fixed text, and is unique without it.
        text.truncate(if fixed <= LONGEST / 2 { fixed } else { 0 });
        text.push_str(DIGEST);
        text.push_str(&digest);
    }
    LockKey::exact(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lock_core::lock_key;

    fn encoded(value: &str) -> String {
        let mut text = String::new();
        push(&mut text, value);
        text
    }

    #[test]
    fn values_are_encoded_as_lock_key_does_it() {
        for character in ('\0'..'\u{3100}').chain(['\u{FEFF}', '\u{E000}', '\u{1F600}']) {
            let value = format!("a{character}b");
            let expected = lock_key!("<value>");
            assert_eq!(Some(encoded(&value).as_str()), expected.as_str());
        }
    }

    #[test]
    fn lower_case_leaves_the_encoding_alone() {
        assert_eq!(encoded("A:B"), "A%3AB");
        assert_eq!(lowercase("A%3AB%3aÄ%-X%=X%#X%"), "a%3Ab%3aä%-x%=x%#x%");
    }

    #[test]
    fn a_digest_is_the_sha256_of_the_standard() {
        assert_eq!(
            sha256("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn a_key_of_1024_bytes_stays_and_a_longer_one_becomes_a_digest() {
        let made = |length: usize, fixed| {
            let text = format!("pay:{}", "x".repeat(length - 4));
            finish(text, fixed).as_str().unwrap().to_owned()
        };
        assert_eq!(made(1024, 4).len(), 1024);
        let (one, other) = (made(1025, 4), made(1026, 4));
        assert!(one.starts_with("pay:%#") && one.len() == 70, "{one}");
        assert_ne!(one, other);
        assert!(made(1025, 1024).starts_with("%#"));
    }

    #[test]
    fn no_value_can_make_a_key_that_lock_core_reserves() {
        assert_eq!(finish("!f".into(), 0).as_str(), Some("%21f"));
        assert_ne!(encoded("%21f"), "%21f");
    }
}
