//! Writes a report at the end of each day of the shop, in one of all processes.

use std::time::Duration;

use lock_core::{Tick, once};

use crate::app::Shop;

/// Takes part in the reports until the locks are drained.
pub(crate) async fn take_part(shop: Shop, port: u16, day: Duration) {
    if let Err(error) = shop.write_reports(port, day).await {
        eprintln!("shop: no more nightly reports from this process: {error}");
    }
}

impl Shop {
    // page: begin night
    async fn write_reports(&self, port: u16, day: Duration) -> Result<(), lock_core::Error> {
        let nightly = self.locks.every("job:report", day).from_next_tick();
        let nightly = nightly.ttl(Duration::from_secs(10)).max_hold(day);
        nightly.run(|tick| self.report(tick, port)).await
    }

    async fn report(&self, tick: Tick, port: u16) {
        // The end of the tick is the primary key, so that a repeated run writes no second report.
        let ends = tick.ends_unix_micros() / 1_000; // the page shows milliseconds
        if let Err(error) = self.db.report(ends, port).await {
            eprintln!("shop: the nightly report failed: {error}");
        }
        // Deletes the records of charges whose life, 24 hours, is over.
        if let Err(error) = once::sweep(&self.once).await {
            eprintln!("shop: the nightly sweep failed: {error}");
        }
    }
    // page: end night
}
