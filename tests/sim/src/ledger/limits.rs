//! How many owners a key may have at a time.

use super::Owning;

impl Owning {
    /// A reader has no limit.
    pub const READER: Self = Self::Share(u32::MAX);

    /// Returns whether two owners never have a key together. Readers and permits exclude each other, too.
    pub fn excludes(self, other: Self) -> bool {
        match (self, other) {
            (Self::Share(_), Self::Share(_)) => (self == Self::READER) != (other == Self::READER),
            _ => true,
        }
    }

    pub(super) fn limit(self) -> u32 {
        match self {
            Self::Alone => 1,
            Self::Share(limit) => limit,
        }
    }
}

/// Returns whether an owner has entered beside so many that were inside before it asked.
pub(super) fn is_exceeded(owning: Owning, before: usize) -> bool {
    before as u64 >= u64::from(owning.limit())
}

/// Returns whether owners with these limits can have entered in no order.
///
/// They may have entered in another order than the one in which they saw their grants, because an answer may be late.
pub(super) fn are_exceeded(mut limits: Vec<u32>) -> bool {
    limits.sort_unstable();
    let mut limits = limits.iter().enumerate();
    limits.any(|(before, limit)| before as u64 >= u64::from(*limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_of_several_limits_entered_in_the_best_order() {
        assert!(!are_exceeded(vec![2, 1]));
        assert!(!are_exceeded(vec![3, 1, 3]));
        assert!(are_exceeded(vec![1, 1]));
        assert!(are_exceeded(vec![2, 3, 2, 2]));
    }
}
