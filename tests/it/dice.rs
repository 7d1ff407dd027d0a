//! Makes numbers that look random and are a pure function of a seed.

/// The SplitMix64 generator, which is small and gives the same numbers on every machine.
pub(crate) struct Dice(u64);

impl Dice {
    /// Makes dice that always give the same numbers for the same seed.
    pub(crate) fn of(numbers: &[u64]) -> Dice {
        let mut dice = Dice(0);
        for number in numbers {
            dice.0 ^= *number;
            dice.0 = dice.next();
        }
        dice
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Draws a number below the number of sides.
    pub(crate) fn throw(&mut self, sides: u64) -> u64 {
        self.next() % sides
    }

    /// Draws a number from `least` to `most`, both included.
    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.throw(most - least + 1)
    }

    /// Draws an index of a list that has `count` elements.
    pub(crate) fn index(&mut self, count: usize) -> usize {
        usize::try_from(self.throw(count as u64)).expect("an index")
    }

    pub(crate) fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.index(all.len())]
    }

    /// Draws true in this many cases of a hundred.
    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.throw(100) < percent
    }
}
