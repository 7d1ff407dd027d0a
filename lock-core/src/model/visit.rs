//! A search through all states of a small model, whose steps have no names.

use std::hash::Hash;

use super::seen::{ByHash, print};

/// Visits every state that follows from `start`. Returns how many there are, or what is wrong, and after how many steps.
pub(super) fn visit<World: Hash, Wrong>(
    start: World,
    next: impl Fn(&World) -> Result<Vec<World>, Wrong>,
) -> Result<usize, (Wrong, usize)> {
    let mut seen: ByHash<()> = ByHash::default();
    seen.insert(print(&start), ());
    let mut layer = vec![start];
    let mut steps = 0;
    while !layer.is_empty() {
        steps += 1;
        let mut found = Vec::new();
        for world in &layer {
            for after in next(world).map_err(|wrong| (wrong, steps))? {
                if seen.insert(print(&after), ()).is_none() {
                    found.push(after);
                }
            }
        }
        layer = found;
    }
    Ok(seen.len())
}
