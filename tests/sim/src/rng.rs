//! The random numbers of a seed: SplitMix64, by Sebastiano Vigna (<https://prng.di.unimi.it/splitmix64.c>).

/// A source of random numbers, which is equal for equal seeds.
#[derive(Clone, Debug, Default)]
pub struct Rng(u64);

impl Rng {
    pub fn of(seed: u64) -> Self {
        Self(seed)
    }

    /// A source of its own for a part of the history, so that a change of one part leaves the others alone.
    pub fn split(&mut self) -> Self {
        Self(self.next())
    }

    #[allow(
        clippy::should_implement_trait,
        reason = "it never ends, so it is no iterator that callers loop over"
    )]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    /// A number from `from` to `to`, both included.
    pub fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    pub fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.index(of.len())].clone()
    }
}
