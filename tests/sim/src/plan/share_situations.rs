//! Situations of shares that are rare under random faults.

use super::{Plan, Verb, Weather};
use crate::rng::Rng;
use crate::world::Fault;

/// Separates these draws from all others of the seed.
const OWN: u64 = 0x7368_6172_6573_2121;

impl Plan {
    /// Makes one history of shares in eight about such a situation.
    pub(super) fn draw_situation_of_shares(&mut self) {
        let mut rng = Rng::of(self.seed ^ OWN);
        let is_here = self.topology.is_alone() && self.has_shares();
        if !is_here || self.verbs.contains(&Verb::Crowd) || !rng.one_in(8) {
            return;
        }
        self.faults.clear();
        self.stops_inside = false;
        self.bursts = false;
        self.rests = 0;
        self.downgrade_late(&mut rng);
        self.processes.iter_mut().for_each(|it| it.exits = None);
        self.faults.sort_by_key(|planned| planned.at);
    }

    /// The first request of a lock arrives when the lock has been a reader, and has ended.
    fn downgrade_late(&mut self, rng: &mut Rng) {
        self.weather = Weather::Late;
        self.verbs = vec![Verb::Downgrade, Verb::Downgrade, Verb::Read];
        self.staff(rng, (1, 2), (1, 2));
        self.keys = 3;
        self.ttls = vec![300_000];
        self.habits.holds = vec![0, 5];
        self.habits.share_holds = vec![0, 5];
        for _ in 0..rng.between(2, 6) {
            let process = rng.index(self.processes.len());
            let (at, lasts) = (rng.between(300, 4_000), rng.between(300, 2_000));
            self.add(at, lasts, Fault::Late { process, server: 0 });
        }
    }
}
