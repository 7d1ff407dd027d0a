//! Situations that are rare under random faults: their faults, and the habits of the callers that lead to them.

use super::{Plan, ProcessPlan, Topology, Verb, Weather, lock_name};
use crate::rng::Rng;
use crate::server::Refusal;
use crate::world::{Fault, LAST, MILLI, Planned, SECOND, Ways};

impl Plan {
    /// Draws the situation of the weather. `false`: the weather is a usual one.
    pub(super) fn draw_situation(&mut self, rng: &mut Rng) -> bool {
        match self.weather {
            Weather::Calm if !matches!(self.topology, Topology::Redlock | Topology::Cluster) => {
                // The rules of the other kinds do not know of runtimes that stand still.
                let blocks = rng.pick(&[0, 0, 0, 20]);
                self.habits.blocks = if self.is_plain() { blocks } else { 0 };
                return false;
            }
            Weather::Calm
            | Weather::Deaths
            | Weather::Momentary
            | Weather::Network
            | Weather::Rough
            | Weather::Lossy
            | Weather::Repeats
            | Weather::Strange => return false,
            Weather::Crowd => self.crowd(rng),
            Weather::Rights => self.rights(rng),
            Weather::Clock => self.clock(rng),
            Weather::Losses => self.losses(rng),
            Weather::Scripts => self.scripts(rng),
            Weather::Stops => self.stops(rng),
            Weather::Gone => self.gone(rng),
            Weather::Late => self.late(rng),
            Weather::Marks => self.marks(rng),
        }
        self.verbs = vec![Verb::Acquire];
        self.interop = false;
        self.rests = 0;
        self.stops_inside = false;
        self.faults.sort_by_key(|planned| planned.at);
        true
    }

    fn crowd(&mut self, rng: &mut Rng) {
        let alone = rng.percent(25);
        self.staff(rng, if alone { (1, 1) } else { (2, 3) }, (3, 8));
        for process in &mut self.processes {
            process.exits = None;
            process.ppm = if alone { 0 } else { process.ppm };
        }
        self.keys = 1;
        self.ttls = vec![10_000];
        self.latency = rng.pick(&[100, 300]) * 1_000;
        self.bursts = false;
        self.cancels = rng.pick(&[0, 0, 15]);
        self.work_ends = rng.between(300, 900) * MILLI;
        self.habits.unrenewed = false;
        self.habits.waits = vec![Some(1_500), None];
        self.habits.holds = if alone || rng.percent(30) {
            vec![5]
        } else {
            vec![0, 0, 0, 5]
        };
        self.habits.pauses = if alone { vec![1] } else { vec![0, 1] };
        if rng.percent(40) {
            self.step_clock(rng, 4, self.work_ends);
        }
    }

    fn rights(&mut self, rng: &mut Rng) {
        self.staff(rng, (2, 3), (1, 3));
        self.keys = rng.between(1, 2) as usize;
        self.ttls = vec![3_000, 10_000, 300_000];
        self.habits.waits = vec![Some(0), Some(200), Some(3_000), Some(6_000), None, None];
        self.habits.holds.push(1_500);
        if rng.percent(15) {
            let command = rng.pick(&super::faults::COMMANDS).to_owned();
            let until = rng.between(1_000, 5_000);
            self.add(0, until, Fault::Deny { server: 0, command });
            return;
        }
        for _ in 0..rng.between(2, 6) {
            let (at, lasts) = (rng.between(300, 4_500), rng.between(5, 1_400));
            let refusal = rng.pick(&[
                Refusal::OutOfMemory,
                Refusal::NoReplicas,
                Refusal::ReadOnly,
                Refusal::Misconfigured,
            ]);
            let command = rng.pick(&super::faults::COMMANDS).to_owned();
            let fault = match rng.percent(75) {
                true => Fault::Deny { server: 0, command },
                false => Fault::Refuse { server: 0, refusal },
            };
            self.add(at, lasts, fault);
        }
        if rng.percent(30) {
            self.end_connections(rng);
        }
        if rng.percent(30) {
            self.delete(rng, 2);
        }
    }

    fn clock(&mut self, rng: &mut Rng) {
        let is_crowded = rng.percent(40);
        self.staff(rng, (2, 3), if is_crowded { (3, 5) } else { (1, 4) });
        self.keys = if is_crowded {
            1
        } else {
            rng.between(1, 3) as usize
        };
        self.ttls = rng.pick(&[vec![300], vec![300, 1_000], vec![1_000, 2_000]]);
        self.bursts = rng.percent(60);
        self.cancels = rng.pick(&[0, 15, 50]);
        self.habits.holds = vec![0, 5, 40, 200, 1_200];
        self.step_clock(rng, 9, LAST);
        let process = rng.index(self.processes.len());
        let (at, lasts) = (rng.between(500, 3_000), rng.between(300, 3_000));
        let server = 0;
        match rng.below(8) {
            0..3 => self.add(at, 1, Fault::Kill { process }),
            3 => {
                let ways = Ways::Replies;
                self.add(
                    at,
                    lasts,
                    Fault::Hold {
                        process,
                        server,
                        ways,
                    },
                );
            }
            _ => {}
        }
    }

    fn losses(&mut self, rng: &mut Rng) {
        self.staff(rng, (2, 3), (1, 3));
        self.keys = rng.between(1, 2) as usize;
        self.ttls = rng.pick(&[
            vec![1_000, 3_000],
            vec![3_000, 10_000],
            vec![10_000, 300_000],
        ]);
        self.habits.unrenewed = false;
        self.habits.holds = vec![40, 200, 700, 2_000, 4_000];
        self.habits.lingers = vec![0, 0, 300, 6_000];
        let most = rng.pick(&[3, 12]);
        self.delete(rng, most);
        if rng.percent(40) {
            self.end_connections(rng);
            self.delete_later(rng);
        }
        if rng.percent(40) {
            self.strike(rng);
        }
    }

    /// A stranger deletes a key right behind its renewals.
    fn strike(&mut self, rng: &mut Rng) {
        for _ in 0..rng.between(1, 4) {
            let (at, lasts) = (rng.between(500, 4_000), rng.between(300, 1_500));
            let key = lock_name(rng.index(self.keys)).into_bytes();
            self.add(at, lasts, Fault::Strike { server: 0, key });
        }
    }

    /// Deletes a key when its owner has had the time to watch it on a new connection, and not yet to renew it in any case.
    fn delete_later(&mut self, rng: &mut Rng) {
        let ends = |it: &&Planned| matches!(it.fault, Fault::EndConnections { .. });
        let Some(last) = self.faults.iter().filter(ends).map(|it| it.at).max() else {
            return;
        };
        let at = last / MILLI + rng.between(2_050, 3_000);
        if at < 5_500 {
            let key = lock_name(rng.index(self.keys)).into_bytes();
            self.add(at, 1, Fault::Delete { server: 0, key });
        }
    }

    fn scripts(&mut self, rng: &mut Rng) {
        self.staff(rng, (1, 3), (3, 6));
        self.ttls = vec![10_000, 300_000];
        self.bursts = rng.percent(75);
        self.cancels = rng.pick(&[15, 50, 80]);
        self.habits.holds = vec![0, 0, 5, 40];
        self.habits.pauses = vec![1, 20];
        self.work_ends = 4 * SECOND;
        let (mut at, between) = (rng.between(300, 1_000), rng.pick(&[10, 40, 130]));
        while at < 3_500 && self.faults.len() < 100 {
            self.add(at, 1, Fault::ForgetScripts { server: 0 });
            at += rng.between(1, between);
        }
    }

    fn stops(&mut self, rng: &mut Rng) {
        self.staff(rng, (3, 3), (1, 2));
        self.keys = 1;
        self.ttls = vec![rng.pick(&[3_000, 10_000, 300_000])];
        self.habits.waits = vec![Some(1_500), Some(6_000), None, None];
        self.habits.holds = vec![40, 200, 700, 1_500];
        let process = rng.index(3);
        let mut at = rng.between(300, 2_000);
        while at < 4_000 {
            let lasts = rng.between(100, 4_500).min(LAST / MILLI - at);
            let fault = match rng.percent(75) {
                true => Fault::Stop { process },
                false => Fault::Block { process },
            };
            self.add(at, lasts, fault);
            at += lasts + rng.between(300, 1_500);
        }
        let another = (process + 1) % 3;
        match rng.below(100) {
            0..40 => {
                let fault = Fault::Kill { process: another };
                self.add(rng.between(800, 4_000), 1, fault);
            }
            40..60 => {
                let fault = Fault::Halt { process: another };
                self.add(rng.between(800, 4_000), 1, fault);
            }
            _ => {}
        }
    }

    fn gone(&mut self, rng: &mut Rng) {
        self.staff(rng, (1, 3), (1, 4));
        self.keys = rng.between(1, 2) as usize;
        self.ttls = vec![rng.pick(&[3_000, 10_000, 300_000])];
        self.habits.waits = vec![Some(1_500), Some(6_000), None];
        self.work_ends = 5 * SECOND;
        for _ in 0..rng.between(1, 2) {
            let key = self.topology.queue_name(rng.index(self.keys)).into_bytes();
            let count = rng.pick(&[3, 40, 1_100, 2_300]);
            let at = rng.between(300, 3_500);
            self.add(
                at,
                1,
                Fault::Gone {
                    server: 0,
                    key,
                    count,
                },
            );
        }
        if rng.percent(40) {
            let process = rng.index(self.processes.len());
            self.add(rng.between(800, 4_000), 1, Fault::Kill { process });
        }
    }

    fn late(&mut self, rng: &mut Rng) {
        self.ttls = vec![10_000, 300_000];
        self.cancels = rng.pick(&[0, 15, 50]);
        self.keys = rng.between(1, 3) as usize;
        self.processes.iter_mut().for_each(|it| it.exits = None);
        for _ in 0..rng.between(2, 6) {
            let process = rng.index(self.processes.len());
            let (at, lasts) = (rng.between(300, 4_000), rng.between(5, 2_000));
            self.add(at, lasts, Fault::Late { process, server: 0 });
        }
        if rng.percent(30) {
            self.delete(rng, 3);
        }
    }

    fn marks(&mut self, rng: &mut Rng) {
        self.keys = rng.between(1, 2) as usize;
        let mut at = rng.between(100, 2_000);
        while at < 4_000 {
            let lasts = rng.between(50, 1_500);
            let is_number = rng.percent(60);
            self.add(
                at,
                lasts,
                Fault::SpoilMark {
                    server: 0,
                    is_number,
                },
            );
            at += lasts + rng.between(300, 2_000);
        }
    }

    pub(super) fn add(&mut self, at: u64, lasts: u64, fault: Fault) {
        let (at, lasts) = (at * MILLI, lasts * MILLI);
        let planned = Planned { at, lasts, fault };
        // Of two equal ones the first end would end both. A server refuses for one reason.
        let overlaps = |it: &Planned| {
            let both_refuse = matches!(
                (&it.fault, &planned.fault),
                (Fault::Refuse { .. }, Fault::Refuse { .. })
            );
            let are_alike = it.fault == planned.fault || both_refuse;
            are_alike && it.at <= planned.end() && at <= it.end()
        };
        if !self.faults.iter().any(overlaps) {
            self.faults.push(planned);
        }
    }

    pub(super) fn step_clock(&mut self, rng: &mut Rng, most: u64, last: u64) {
        for _ in 0..rng.between(1, most) {
            let longest = rng.pick(&[60, 1_000, 2_000, 4_000]);
            let by = rng.between(5, longest) as i64 * -1_000;
            let at = rng.between(50, last / MILLI);
            self.add(at, 1, Fault::StepClock { server: 0, by });
        }
    }

    fn end_connections(&mut self, rng: &mut Rng) {
        for _ in 0..rng.between(1, 3) {
            let at = rng.between(300, 4_500);
            self.add(at, 1, Fault::EndConnections { server: 0 });
        }
    }

    fn delete(&mut self, rng: &mut Rng, most: u64) {
        for _ in 0..rng.between(1, most) {
            let key = lock_name(rng.index(self.keys)).into_bytes();
            let fault = match rng.percent(65) {
                true => Fault::Delete { server: 0, key },
                false => Fault::Flush { server: 0 },
            };
            let at = rng.between(300, 5_500);
            self.add(at, 1, fault);
        }
    }

    /// Draws the processes anew: so many, with so many tasks each.
    pub(super) fn staff(&mut self, rng: &mut Rng, processes: (u64, u64), tasks: (u64, u64)) {
        let count = rng.between(processes.0, processes.1) as usize;
        self.processes.truncate(count);
        while self.processes.len() < count {
            self.processes.push(ProcessPlan {
                ppm: rng.pick(&[0, -5_000, 5_000, 1_000]),
                operation_timeout: rng.pick(&[200, 500, 1_000]) * MILLI,
                tasks: Vec::new(),
                exits: rng.percent(15).then(|| rng.between(500, 7_500) * MILLI),
                leaves: None,
            });
        }
        for process in &mut self.processes {
            process.tasks = (0..rng.between(tasks.0, tasks.1))
                .map(|_| rng.next())
                .collect();
        }
    }
}
