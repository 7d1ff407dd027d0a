//! Lets one seller freeze in the middle of a sale, and then write late.
//!
//! A process freezes like that in a long garbage collection, in a paged-out container or while its machine sleeps.

use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use lock_core::Renew;

use crate::Result;
use crate::market::Market;
use crate::seller::Seller;
use crate::ways::{Outcome, Way};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Freeze {
    /// The ttl of the locks. The owner freezes for twice this time.
    pub(crate) ttl: Duration,
    pub(crate) stock: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Thawed {
    /// The outcome of the sale that was frozen.
    pub(crate) late: Outcome,
    /// The time from the freeze to the next order of another seller.
    pub(crate) others_waited: Duration,
    pub(crate) oversold: i64,
}

/// Runs the story on new tables.
///
/// 1. One seller reads the stock and freezes before its write.
/// 2. Another seller sells all that it can.
/// 3. The frozen seller continues.
/// 4. The other seller sells what it finds then.
pub(crate) fn run(market: &Market, way: Way, freeze: &Freeze) -> Result<Thawed> {
    market.database.restock(freeze.stock.into())?;
    // The lease is not renewed, because a frozen process would not renew it either.
    let mut frozen = market.seller(1, freeze.ttl, Renew::Off)?;
    let mut other = market.seller(2, freeze.ttl, Renew::Auto)?;

    let (freezes, has_frozen) = channel();
    let (sells_out, is_sold_out) = channel::<()>();
    let (late, first) = thread::scope(|scope| {
        let late = scope.spawn(move || {
            way.sell(&mut frozen, &mut || {
                let _ = freezes.send(Instant::now());
                thread::sleep(freeze.ttl * 2);
                // Another seller can wait for the row until the frozen one commits. In all other ways it sells out.
                if way != Way::ForUpdate {
                    let _ = is_sold_out.recv();
                }
            })
        });
        let since = has_frozen.recv();
        let first = since.map(|since| -> Result<_> {
            let first = sell_all(&mut other, way)?;
            drop(sells_out);
            Ok(first.map(|first| first - since))
        });
        let late = late.join().map_err(|_| "the frozen seller panicked")??;
        let first = first.map_err(|_| "the seller did not freeze")??;
        Ok::<_, crate::Error>((late, first))
    })?;
    sell_all(&mut other, way)?;

    Ok(Thawed {
        late,
        others_waited: first.ok_or("the other seller sold nothing")?,
        oversold: other.orders()? - i64::from(freeze.stock),
    })
}

/// Sells until nothing is left, and returns the time of the first sale.
fn sell_all(seller: &mut Seller, way: Way) -> Result<Option<Instant>> {
    let mut first = None;
    loop {
        match way.sell(seller, &mut || ())? {
            Outcome::Sold => first = first.or_else(|| Some(Instant::now())),
            Outcome::Refused => {}
            Outcome::SoldOut => return Ok(first),
        }
    }
}
