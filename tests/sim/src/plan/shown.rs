//! A plan as text.

use std::fmt;

use super::Plan;
use crate::world::MILLI;

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "seed {} on {:?} {}: {:?}, {:?}, latency {} µs, {} keys, ttls {:?} ms, replicas {:?}, {} acks, clocks {:?} µs, \
             {} sentinels, the last {} ms away, {:?} (permits {:?}){}{}{}{}{}{}",
            self.seed,
            self.topology,
            self.servers,
            self.weather,
            self.order,
            self.latency / 1_000,
            self.keys,
            self.ttls,
            self.replicas,
            self.acks,
            self.clocks,
            self.sentinels,
            self.far / MILLI,
            self.verbs,
            self.permits,
            if self.are_recent { ", Redis 8" } else { "" },
            if self.exact_rights {
                ", exact rights"
            } else {
                ""
            },
            if self.interop { ", gaps" } else { "" },
            if self.bursts { ", bursts" } else { "" },
            if self.stops_inside {
                ", stops inside steps"
            } else {
                ""
            },
            if self.stops_amid_a_release {
                ", stops amid releases"
            } else {
                ""
            },
        )?;
        writeln!(f, "  {:?}, {:?}", self.version.redis, self.habits)?;
        for (number, process) in self.processes.iter().enumerate() {
            let tasks = process.tasks.len();
            let timeout = process.operation_timeout / MILLI;
            write!(
                f,
                "  p{number}: {tasks} tasks, {} ppm, timeout {timeout} ms",
                process.ppm
            )?;
            if let Some(exits) = process.exits {
                write!(f, ", drains at {} ms and exits", exits / MILLI)?;
            }
            if let Some(leaves) = process.leaves {
                write!(f, ", drops its manager at {} ms", leaves / MILLI)?;
            }
            writeln!(f)?;
        }
        for planned in &self.faults {
            let (at, lasts) = (planned.at / MILLI, planned.lasts / MILLI);
            writeln!(f, "  at {at} ms for {lasts} ms: {:?}", planned.fault)?;
        }
        Ok(())
    }
}
