//! Fencing tokens.

use std::fmt;
use std::num::NonZeroU64;

/// A number that rises with every grant of a key.
///
/// A lock alone cannot stop an owner that was paused, still believes that it holds its lock, and
/// writes late. A resource can stop it: the resource remembers the highest token that it has seen,
/// and refuses a write with a lower one (`UPDATE … SET fence = ?new WHERE sku = ? AND fence <=
/// ?new`). An owner that reads before it writes runs this statement before it reads. Otherwise the
/// late write of an earlier owner can fall between its read and its write.
///
/// On PostgreSQL tokens count from the number of the write, and no clock takes part. Elsewhere tokens count from the server's
/// clock in microseconds. So they keep rising over a restart that
/// lost the data, as long as the new server's clock is not behind. If a clock is set back, a new
/// token can be lower than the token of an owner that crashed, because the server has not heard
/// which tokens that owner used. Tokens stay below 2⁵³ for 228 years, so they are exact in JSON, in
/// Lua, in JavaScript and in a `BIGINT`.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
/// let locks = lock_core::LockManager::in_memory();
/// let first = locks.lock("order:42").acquire().await?;
/// let older = first.fencing_token();
/// first.release().await?;
/// let second = locks.lock("order:42").acquire().await?;
/// assert!(second.fencing_token() > older);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[doc(alias = "token")]
pub struct FencingToken(NonZeroU64);

impl FencingToken {
    /// One above the highest number that a token may have.
    pub(crate) const LIMIT: u64 = 1 << 53;

    /// One above the highest number from which a store counts tokens.
    ///
    /// A higher number in a store was not written by this kit, which would reach the limit in the
    /// year 2255. Tokens that count from below this limit stay far below [`LIMIT`](Self::LIMIT).
    pub(crate) const HIGH_WATER_LIMIT: u64 = 9_000_000_000_000_000;

    /// Returns `None` for a number that no store may grant: zero, or 2⁵³ and above.
    pub(crate) fn new(number: u64) -> Option<Self> {
        let number = NonZeroU64::new(number)?;
        (number.get() < Self::LIMIT).then_some(Self(number))
    }

    /// Returns the token of the next owner of the same lease.
    pub(crate) fn next(self) -> Option<Self> {
        Self::new(self.0.get() + 1)
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<FencingToken> for u64 {
    fn from(token: FencingToken) -> u64 {
        token.0.get()
    }
}

impl From<FencingToken> for i64 {
    fn from(token: FencingToken) -> i64 {
        // Below 2^53 by construction.
        token.0.get().cast_signed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_exact_in_a_double_and_in_a_bigint() {
        assert!(FencingToken::new(0).is_none());
        assert!(FencingToken::new(FencingToken::LIMIT).is_none());
        let highest = FencingToken::new(FencingToken::LIMIT - 1).unwrap();
        assert_eq!(i64::from(highest), 9_007_199_254_740_991);
        assert_eq!(u64::from(highest) as f64 as u64, u64::from(highest));
    }
}
