//! The token of a holder, as an operator has seen it in the store.

use std::fmt;
use std::sync::Arc;

use super::token::{Address, Token};

/// The value of a key, or one member of its shares, by which a holder holds it.
///
/// It is compared whole. A value that is no token of this kit is of a client of another library, and may be any bytes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct HolderToken(Arc<[u8]>);

impl HolderToken {
    pub(crate) fn new(value: &[u8]) -> Self {
        Self(value.into())
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns whether this kit wrote it.
    pub(crate) fn is_of_the_kit(&self) -> bool {
        self.token().is_some()
    }

    pub(crate) fn is_share(&self) -> bool {
        self.token().is_some_and(|token| token.share().is_some())
    }

    /// The receiver of pushes to the holder; `None` for a client of another library.
    pub(crate) fn address(&self) -> Option<Address> {
        self.token().map(|token| token.address())
    }

    /// The token of a lease or a share of this kit.
    pub(crate) fn token(&self) -> Option<Token> {
        Token::parse(std::str::from_utf8(&self.0).ok()?)
    }

    /// A name for this very hold, which does not contain the token.
    pub(crate) fn id(&self) -> u64 {
        // FNV-1a.
        self.0.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
    }
}

impl From<Token> for HolderToken {
    fn from(token: Token) -> Self {
        Self::new(token.text().as_bytes())
    }
}

impl PartialEq<Token> for HolderToken {
    fn eq(&self, token: &Token) -> bool {
        *self.0 == *token.text().as_bytes()
    }
}

impl fmt::Debug for HolderToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HolderToken(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::token::TokenSource;

    #[test]
    fn a_lease_a_share_and_a_strangers_value_are_told_apart() {
        let address = Address::random();
        let lease = TokenSource::new(address).fresh();
        let seen = HolderToken::from(lease);
        assert_eq!(seen, lease);
        assert_eq!((seen.address(), seen.is_share()), (Some(address), false));
        let share = HolderToken::new(format!("{lease}00000005").as_bytes());
        assert_ne!(share, lease);
        assert_eq!((share.address(), share.is_share()), (Some(address), true));
        for value in [
            "",
            "stranger",
            "shared",
            &format!("{lease}0"),
            &format!("{lease}0000000g"),
            &format!("cooling/{lease}"),
        ] {
            let stranger = HolderToken::new(value.as_bytes());
            assert!(!stranger.is_of_the_kit() && !stranger.is_share(), "{value}");
            assert_eq!(stranger.address(), None);
        }
        assert!(!HolderToken::new(b"\xff\xfe").is_of_the_kit());
        assert_ne!(seen.id(), share.id());
    }
}
