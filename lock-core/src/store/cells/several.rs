//! Several keys at once: all of them, or none.

use std::sync::Arc;

use super::codec::Change;
use super::driver::{CHECKED, CellStore, PATIENCE, guess_of, pause};
use super::guesses::Guess;
use super::work::swap_of;
use super::{Cells, Read, Swap, Swapped};
use crate::base::clock::ServerTime;
use crate::protocol::{Around, Document, Reply, acquire_all};
use crate::store::steps::{granted, lasts, refusal};
use crate::store::{AcquireAll, Failure, Outcome};

impl<C: Cells> CellStore<C> {
    pub(super) async fn acquire_all(&self, all: &AcquireAll) -> Result<Outcome, Failure> {
        let keys: Vec<Arc<str>> = all.leases.iter().map(|(key, _)| Arc::clone(key)).collect();
        let guess = |key: &Arc<str>| self.guess(key);
        let mut guesses: Vec<Guess> = keys.iter().map(guess).collect();
        let mut fact = None;
        let mut misses = 0;
        loop {
            let now = fact.unwrap_or_else(|| self.cells.clock());
            let mut documents: Vec<Document> = guesses
                .iter()
                .map(|guess| guess.cell.document.clone())
                .collect();
            let reply = {
                let mut around = Around::new(now, 0, &|_| true);
                acquire_all(&mut documents, &all.leases, lasts(all.ttl), &mut around)
            };
            match (reply, fact) {
                (Reply::Granted(_), _) => {
                    let swaps = swaps(all, &guesses, documents, now);
                    let bytes: Vec<_> = swaps.iter().map(|it| Arc::clone(&it.bytes)).collect();
                    if let Swapped::Done(written) = self.cells.swap(swaps).await? {
                        let mut fence = None;
                        for ((key, token), bytes) in all.leases.iter().zip(&bytes) {
                            let reply = Reply::Granted(0);
                            let done = self.written(key, bytes, written, reply)?;
                            fence = fence.max(done.cell.fence_of(*token));
                        }
                        return Ok(granted(fence.unwrap_or(0)));
                    }
                    misses += 1;
                }
                (Reply::BusyAt(index, refused), Some(now)) => {
                    let token = all.leases[index].1;
                    let refusal = refusal(&documents[index], &refused, token, now);
                    return Ok(Outcome::BusyAt(index, refusal));
                }
                (Reply::BusyAt(..), None) => {}
                _ => return Err(Failure::not_understood()),
            }
            if misses > 0 {
                pause(misses).await;
            }
            let Read { stored, now } = self.cells.read(&keys).await?;
            let before = std::mem::take(&mut guesses);
            guesses = stored.into_iter().map(guess_of).collect::<Result<_, _>>()?;
            let is_same = before
                .iter()
                .map(|it| it.seen)
                .eq(guesses.iter().map(|it| it.seen));
            // A transaction may check a key of which there is a row.
            let checked = guesses.iter().position(|it| it.seen.revision != 0);
            if let Some(index) = checked.filter(|_| is_same && misses > PATIENCE) {
                let document = &guesses[index].cell.document;
                let refusal = refusal(document, &CHECKED, all.leases[index].1, now);
                return Ok(Outcome::BusyAt(index, refusal));
            }
            fact = Some(now);
        }
    }
}

fn swaps(
    all: &AcquireAll,
    guesses: &[Guess],
    documents: Vec<Document>,
    now: ServerTime,
) -> Vec<Swap> {
    let each = all.leases.iter().zip(guesses).zip(documents);
    each.map(|(((key, token), guess), document)| {
        let after = guess.cell.followed_by(document, None);
        let change = Change {
            before: &guess.cell.document,
            after: &after,
            touched: Some(*token),
            now,
        };
        swap_of(key, guess, &change, Vec::new())
    })
    .collect()
}
