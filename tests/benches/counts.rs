//! Counts the requests of a server.

use std::ops::{AddAssign, Div, Sub};

use lock_tests::RedisServer;

#[derive(Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) scripts: f64,
    /// The reads from the sockets of the clients.
    pub(crate) trips: f64,
    /// The commands, including those that scripts call.
    pub(crate) commands: f64,
}

impl Counts {
    pub(crate) fn of(server: &RedisServer) -> Self {
        let stats = server.commandstats();
        let called = |name: &str| stats.get(name).copied().unwrap_or(0);
        let own = called("info");
        let reads = &server.info("stats")["total_reads_processed"];
        let reads: u64 = reads.parse().expect("a number");
        Self {
            scripts: (called("evalsha") + called("eval")) as f64,
            // The subtraction removes the reads of this request itself, of which one is counted
            // only after it is over.
            trips: reads as f64 - 2.0 * own as f64,
            commands: (stats.values().sum::<u64>() - own) as f64,
        }
    }
}

impl Sub for Counts {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            scripts: self.scripts - before.scripts,
            trips: self.trips - before.trips,
            commands: self.commands - before.commands,
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, more: Self) {
        self.scripts += more.scripts;
        self.trips += more.trips;
        self.commands += more.commands;
    }
}

impl Div<f64> for Counts {
    type Output = Self;

    fn div(self, by: f64) -> Self {
        Self {
            scripts: self.scripts / by,
            trips: self.trips / by,
            commands: self.commands / by,
        }
    }
}
