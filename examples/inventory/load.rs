//! Lets several sellers sell a stock at the same time, until each finds it sold out.

use std::sync::mpsc::{Sender, channel};
use std::sync::{PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use lock_core::Renew;

use crate::Result;
use crate::market::Market;
use crate::seller::Seller;
use crate::ways::{Outcome, Way};

const TTL: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) sellers: u32,
    pub(crate) stock: u32,
    /// The time between the read and the write of each sale.
    pub(crate) work: Duration,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Sold {
    pub(crate) orders: i64,
    /// The orders for which there was no item.
    pub(crate) oversold: i64,
    /// The attempts that the database refused. The seller began again.
    pub(crate) refused: u64,
    pub(crate) time: Duration,
}

impl Sold {
    pub(crate) fn orders_a_second(&self) -> f64 {
        self.orders as f64 / self.time.as_secs_f64()
    }
}

/// Runs the load on new tables.
///
/// The first sales of all sellers are simultaneous, as at the opening of a sale. Where a way lets several sellers read
/// before one of them writes, each seller has read before the first one writes.
pub(crate) fn run(market: &Market, way: Way, load: &Load) -> Result<Sold> {
    market.database.restock(load.stock.into())?;
    let sellers = (1..=load.sellers).map(|number| market.seller(number.into(), TTL, Renew::Auto));
    let sellers = sellers.collect::<Result<Vec<_>>>()?;

    let gate = RwLock::new(());
    let closed = gate.write().unwrap_or_else(PoisonError::into_inner);
    let (ready, waiting) = channel();
    let (refused, time) = thread::scope(|scope| {
        let sell = |seller| {
            let opening = Opening {
                ready: Some(ready.clone()),
                gate: &gate,
            };
            scope.spawn(move || sell_all(seller, way, load.work, opening))
        };
        let sellers: Vec<_> = sellers.into_iter().map(sell).collect();
        drop(ready);
        // This loop ends when each seller has dropped its sender. A seller that fails drops it too.
        while waiting.recv().is_ok() {}
        let start = Instant::now();
        drop(closed);
        let mut refused = 0;
        for seller in sellers {
            refused += seller.join().map_err(|_| "a seller panicked")??;
        }
        Ok::<_, crate::Error>((refused, start.elapsed()))
    })?;

    let orders = market.seller(0, TTL, Renew::Auto)?.orders()?;
    Ok(Sold {
        orders,
        oversold: orders - i64::from(load.stock),
        refused,
        time,
    })
}

/// The opening of the sale, as one seller sees it.
struct Opening<'run> {
    ready: Option<Sender<()>>,
    gate: &'run RwLock<()>,
}

impl Opening<'_> {
    /// Waits at the first call until all sellers wait.
    fn wait(&mut self) {
        if self.ready.take().is_some() {
            drop(self.gate.read());
        }
    }
}

/// Returns the number of refused attempts.
fn sell_all(mut seller: Seller, way: Way, work: Duration, mut opening: Opening<'_>) -> Result<u64> {
    let mut refused = 0;
    if !way.overlaps() {
        opening.wait();
    }
    loop {
        let outcome = way.sell(&mut seller, &mut || {
            opening.wait();
            if !work.is_zero() {
                thread::sleep(work);
            }
        })?;
        match outcome {
            Outcome::Sold => {}
            Outcome::Refused => refused += 1,
            Outcome::SoldOut => return Ok(refused),
        }
    }
}
