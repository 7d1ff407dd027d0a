//! Situations of shares that are rare under random faults.

use super::{Plan, Verb, Weather};
use crate::rng::Rng;
use crate::world::{Fault, LAST, MILLI};

/// Separates these draws from all others of the seed.
const OWN: u64 = 0x7368_6172_6573_2121;

impl Plan {
    /// Makes one history of shares in six about such a situation.
    pub(super) fn draw_situation_of_shares(&mut self) {
        let mut rng = Rng::of(self.seed ^ OWN);
        let is_here = self.topology.is_alone() && self.has_shares();
        if !is_here || self.verbs.contains(&Verb::Crowd) || !rng.one_in(6) {
            return;
        }
        self.faults.clear();
        self.stops_inside = false;
        self.bursts = false;
        self.rests = 0;
        match rng.below(7) {
            0 => self.downgrade_late(&mut rng),
            1 => self.kill_a_writer(&mut rng),
            2 => self.halt_permits(&mut rng),
            3 => self.rest_in_line(&mut rng),
            4 => self.downgrade_before_a_reader(&mut rng),
            _ => self.set_the_clock_back(&mut rng),
        }
        self.processes.iter_mut().for_each(|it| it.exits = None);
        self.faults.sort_by_key(|planned| planned.at);
    }

    /// The first request of a lock arrives after the lock was downgraded and the share was released.
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

    /// A process dies whose writer waits for readers of the other process, and further ones wait behind it.
    fn kill_a_writer(&mut self, rng: &mut Rng) {
        self.weather = Weather::Deaths;
        self.verbs = vec![Verb::Acquire, Verb::Read];
        self.staff(rng, (2, 2), (2, 3));
        self.keys = 1;
        self.ttls = vec![rng.pick(&[3_000, 10_000])];
        self.latency = self.latency.min(MILLI);
        self.cancels = 0;
        self.habits.waits = vec![None];
        self.habits.holds = vec![5, 40];
        self.habits.share_holds = vec![40, 12_000];
        self.habits.reads_only = Some(0);
        let fault = self.death(rng);
        self.add(rng.between(300, 3_000), 1, fault);
    }

    /// A process stands still whose tasks wait for permits, each with its own place in the queue.
    fn halt_permits(&mut self, rng: &mut Rng) {
        self.weather = Weather::Deaths;
        self.verbs = vec![Verb::Permits];
        self.staff(rng, (2, 3), (3, 6));
        self.keys = 1;
        self.ttls = vec![rng.pick(&[3_000, 10_000])];
        self.latency = self.latency.min(MILLI);
        self.cancels = 0;
        self.permits = vec![rng.pick(&[1, 1, 2])];
        self.habits.waits = vec![None];
        self.habits.share_holds = vec![40, 200, 700];
        let process = rng.between(1, self.processes.len() as u64 - 1) as usize;
        self.add(rng.between(500, 4_500), 1, Fault::Halt { process });
    }

    /// Waiters of permits are not polled for longer than the others of their process wait for them.
    fn rest_in_line(&mut self, rng: &mut Rng) {
        self.weather = Weather::Calm;
        self.verbs = vec![Verb::Permits];
        self.staff(rng, (1, 2), (3, 5));
        self.keys = 1;
        self.latency = self.latency.min(MILLI);
        self.cancels = 0;
        self.rests = 30;
        self.permits = vec![rng.pick(&[1, 2])];
        self.habits.waits = vec![None];
        self.habits.share_holds = vec![5, 40, 200];
    }

    /// Has an owner become a reader while readers of another process wait.
    fn downgrade_before_a_reader(&mut self, rng: &mut Rng) {
        self.weather = Weather::Calm;
        self.verbs = vec![Verb::Downgrade];
        self.staff(rng, (2, 2), (1, 1));
        self.keys = 1;
        self.ttls = vec![10_000];
        self.latency = self.latency.min(MILLI);
        self.cancels = 0;
        self.habits.waits = vec![None];
        self.habits.holds = vec![40, 200];
        self.habits.share_holds = vec![2_500];
        self.habits.reads_only = Some(1);
    }

    /// Sets the server's clock back while shares enter and leave beside others.
    fn set_the_clock_back(&mut self, rng: &mut Rng) {
        self.weather = Weather::Clock;
        self.verbs = vec![Verb::Read];
        self.staff(rng, (2, 2), (2, 3));
        self.keys = 1;
        self.ttls = vec![rng.pick(&[1_000, 3_000])];
        self.habits.share_holds = vec![5, 40, 200];
        self.step_clock(rng, 20, LAST);
    }
}
