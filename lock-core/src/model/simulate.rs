//! A random path through the model, which goes farther than a complete search can.

use super::world::{Limits, Step, World, Wrong};

/// `SplitMix64`, so that the same seed gives the same path.
struct RandomNumbers(u64);

impl RandomNumbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        usize::try_from(mixed % limit as u64).expect("the value is below a `usize`")
    }
}

/// Takes `length` random steps, and then checks that every waiter gets the lock.
///
/// Returns the ticks that this took, or the path to a violation.
pub(super) fn simulate(
    limits: &Limits,
    seed: u64,
    length: usize,
) -> Result<u64, (Wrong, Vec<Step>)> {
    let mut random = RandomNumbers(seed);
    let mut world = World::new(limits);
    let mut path = Vec::with_capacity(length);
    for _ in 0..length {
        let mut steps = world.steps(limits);
        let harm = |step: &Step| {
            matches!(
                step,
                Step::Kill(_)
                    | Step::QueueLost
                    | Step::ForeignOwner
                    | Step::Double(_)
                    | Step::Refuse(_)
            )
        };
        if random.below(16) > 0 {
            steps.retain(|step| !harm(step));
        }
        // Time moves slowly, so that enough happens in between.
        if random.below(6) > 0 && steps.iter().any(|step| !matches!(step, Step::Tick(_))) {
            steps.retain(|step| !matches!(step, Step::Tick(_)));
        }
        if steps.is_empty() {
            break;
        }
        let step = steps[random.below(steps.len())];
        path.push(step);
        match world.after(step, limits) {
            Ok(after) => world = after,
            Err(wrong) => return Err((wrong, path)),
        }
    }
    world.longest_wait(limits).map_err(|wrong| (wrong, path))
}
