//! Shares: how many owners may have a key at the same time.

use std::num::NonZeroU32;

use crate::base::error::Error;

/// The most permits of a key.
const MOST_PERMITS: u32 = 10_000;

/// The limit of a share: it enters while fewer owners than that are inside.
///
/// The limit is the asking caller's own, and no store keeps it. A reader has no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ShareLimit(NonZeroU32);

impl ShareLimit {
    /// The limit of a reader.
    pub(crate) const READERS: Self = Self(NonZeroU32::MAX);

    /// # Errors
    ///
    /// `Invalid` if there are no permits or too many.
    pub(crate) fn permits(count: u32) -> Result<Self, Error> {
        let count = NonZeroU32::new(count).filter(|count| count.get() <= MOST_PERMITS);
        count.map(Self).ok_or_else(|| {
            Error::invalid(format!(
                "a lock has 1 to {MOST_PERMITS} permits; a plain lock admits one owner"
            ))
        })
    }

    /// Reads a limit from 8 lower-case hex digits.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let digits = text
            .bytes()
            .all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'));
        let count = u32::from_str_radix(text, 16).ok()?;
        let count = NonZeroU32::new(count).filter(|_| digits && text.len() == 8);
        count.map(Self)
    }

    /// Returns the limit of this number; `None` for 0.
    #[cfg(feature = "postgres")]
    pub(crate) fn of(count: u32) -> Option<Self> {
        NonZeroU32::new(count).map(Self)
    }

    pub(crate) fn count(self) -> u32 {
        self.0.get()
    }

    pub(crate) fn is_reader(self) -> bool {
        self == Self::READERS
    }

    /// Returns whether a share with this limit may always stand beside one with the limit `other`, which comes later:
    /// readers and permits exclude each other.
    pub(crate) fn admits_beside(self, other: Self) -> bool {
        self.is_reader() == other.is_reader() && self <= other
    }
}
