//! The digest of the arguments that make another call out of a call with the same key.

use std::fmt::{self, Display, Write as _};

use sha2::{Digest, Sha256};

use super::bytes::Digest16;
use crate::base::error::Error;

/// The fingerprint of a call, or the error of a value that could not be written.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Fingerprint(pub(super) Result<Digest16, Error>);

impl Fingerprint {
    /// The fingerprint of a call whose arguments are all in its key, or that compares none.
    pub const NONE: Self = Self(Ok([0; 16]));
}

/// Digests the values of a template. The text between them does not count.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct FingerprintBuilder {
    digest: Sha256,
    failed: Option<&'static str>,
}

impl FingerprintBuilder {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    pub fn value(&mut self, placeholder: &'static str, value: &(impl FingerprintValue + ?Sized)) {
        let mut written = Digested(Sha256::new());
        if write!(written, "{value}").is_err() {
            self.failed.get_or_insert(placeholder);
        }
        // A digest of each value, so that ("a", "bc") and ("ab", "c") differ.
        self.digest.update(written.0.finalize());
    }

    #[must_use]
    pub fn finish(self) -> Fingerprint {
        if let Some(placeholder) = self.failed {
            return Fingerprint(Err(Error::invalid(format!(
                "`<{placeholder}>` of the fingerprint could not be written, because its `Display` fails"
            ))));
        }
        let digest: [u8; 32] = self.digest.finalize().into();
        Fingerprint(Ok(std::array::from_fn(|index| digest[index])))
    }
}

/// A value that a placeholder of a fingerprint accepts: any type with `Display`.
///
/// The trait exists so that the compiler can explain how to fix a type without `Display`.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of a fingerprint because it has no `Display`",
    label = "a value in `<…>` is written with its `Display`",
    note = "name the parts of it that make another call, as in `<order.cents>`, or write `fingerprint = none`"
)]
pub trait FingerprintValue: Display {}

#[diagnostic::do_not_recommend]
impl<T: Display + ?Sized> FingerprintValue for T {}

struct Digested(Sha256);

impl fmt::Write for Digested {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[&str]) -> Digest16 {
        let mut builder = FingerprintBuilder::new();
        for value in values {
            builder.value("value", value);
        }
        builder.finish().0.unwrap()
    }

    #[test]
    fn other_values_and_values_that_are_split_in_another_way_make_other_fingerprints() {
        let all = [
            of(&["a", "bc"]),
            of(&["ab", "c"]),
            of(&["abc"]),
            of(&["bc", "a"]),
            of(&["", ""]),
            of(&[""]),
            of(&[]),
            Fingerprint::NONE.0.unwrap(),
        ];
        let distinct: std::collections::HashSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
        assert_eq!(of(&["a", "bc"]), of(&["a", "bc"]));
    }

    #[test]
    fn a_value_that_cannot_be_written_is_invalid_and_named() {
        struct Fails;
        impl Display for Fails {
            fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
                Err(fmt::Error)
            }
        }
        let mut builder = FingerprintBuilder::new();
        builder.value("cents", &Fails);
        let error = builder.finish().0.unwrap_err();
        assert!(error.is_invalid() && error.to_string().contains("`<cents>`"));
    }
}
