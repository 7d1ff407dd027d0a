//! One way through the model, drawn by lot: farther, with more of everything, than all ways can be
//! looked at.

use super::world::{Limits, Step, World, Wrong};

/// `SplitMix64`: the same seed, the same way.
struct Lot(u64);

impl Lot {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        usize::try_from(mixed % limit as u64).expect("it is below a usize")
    }
}

/// Takes `length` steps by lot, then sees to it that everybody who waits gets the lock. Answers how
/// long that took, or the way to what went wrong.
pub(super) fn simulate(
    limits: &Limits,
    seed: u64,
    length: usize,
) -> Result<u64, (Wrong, Vec<Step>)> {
    let mut lot = Lot(seed);
    let mut world = World::new(limits);
    let mut way = Vec::with_capacity(length);
    for _ in 0..length {
        let mut steps = world.steps(limits);
        let harm = |step: &Step| {
            matches!(
                step,
                Step::Kill(_)
                    | Step::QueueLost
                    | Step::Stranger
                    | Step::Double(_)
                    | Step::Refuse(_)
            )
        };
        if lot.below(16) > 0 {
            steps.retain(|step| !harm(step));
        }
        // Time goes on slowly enough for something to happen in it.
        if lot.below(6) > 0 && steps.iter().any(|step| !matches!(step, Step::Tick(_))) {
            steps.retain(|step| !matches!(step, Step::Tick(_)));
        }
        if steps.is_empty() {
            break;
        }
        let step = steps[lot.below(steps.len())];
        way.push(step);
        match world.after(step, limits) {
            Ok(after) => world = after,
            Err(wrong) => return Err((wrong, way)),
        }
    }
    world.longest_wait(limits).map_err(|wrong| (wrong, way))
}
