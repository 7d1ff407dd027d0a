//! A sorted set: members by score, and members of one score by their bytes.

use super::Bytes;

/// Kept in order. Sets are short, so a member is found by looking at all of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SortedSet(Vec<(f64, Bytes)>);

/// A limit of a range of scores.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bound {
    Included(f64),
    Excluded(f64),
}

impl SortedSet {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// All members with their scores, the lowest score first.
    pub fn members(&self) -> &[(f64, Bytes)] {
        &self.0
    }

    pub fn score(&self, member: &[u8]) -> Option<f64> {
        let at = self.place(member)?;
        Some(self.0[at].0)
    }

    /// Sets the score of a member. Answers whether the member is new.
    pub(super) fn insert(&mut self, member: &[u8], score: f64) -> bool {
        // The servers keep no negative zero in a short set.
        let score = score + 0.0;
        let old = self.remove(member);
        let is_before = |(other, text): &(f64, Bytes)| {
            *other < score || *other == score && text.as_slice() < member
        };
        let at = self.0.partition_point(is_before);
        let is_new = old.is_none();
        let text = old.unwrap_or_else(|| member.to_vec());
        self.0.insert(at, (score, text));
        is_new
    }

    /// Removes a member and returns its text.
    pub(super) fn remove(&mut self, member: &[u8]) -> Option<Bytes> {
        let at = self.place(member)?;
        Some(self.0.remove(at).1)
    }

    /// Removes the members with the lowest scores.
    pub(super) fn pop(&mut self, count: usize) -> Vec<(f64, Bytes)> {
        let count = count.min(self.0.len());
        self.0.drain(..count).collect()
    }

    pub(super) fn between(&self, least: Bound, most: Bound) -> &[(f64, Bytes)] {
        let range = self.range(least, most);
        &self.0[range]
    }

    pub(super) fn remove_between(&mut self, least: Bound, most: Bound) -> usize {
        let range = self.range(least, most);
        self.0.drain(range).count()
    }

    fn range(&self, least: Bound, most: Bound) -> std::ops::Range<usize> {
        let start = self.0.partition_point(|(score, _)| match least {
            Bound::Included(least) => *score < least,
            Bound::Excluded(least) => *score <= least,
        });
        let end = self.0.partition_point(|(score, _)| match most {
            Bound::Included(most) => *score <= most,
            Bound::Excluded(most) => *score < most,
        });
        start..end.max(start)
    }

    fn place(&self, member: &[u8]) -> Option<usize> {
        self.0.iter().position(|(_, text)| text == member)
    }
}
