//! Checks a ledger after the storm.

use std::collections::HashMap;
use std::time::Duration;

use super::ledger::{Book, Run, STOCK};

/// Returns the handlers of each key, in the order of their beginnings.
fn by_key(book: &Book) -> HashMap<&str, Vec<&Run>> {
    let mut keys: HashMap<&str, Vec<&Run>> = HashMap::new();
    for run in &book.runs {
        keys.entry(&run.key).or_default().push(run);
    }
    for runs in keys.values_mut() {
        runs.sort_by_key(|run| run.began);
    }
    keys
}

/// Returns pairs of handlers that worked on one key at the same time, the older one first.
pub(super) fn overlaps(book: &Book) -> Vec<(Run, Run)> {
    let mut pairs = Vec::new();
    for runs in by_key(book).values() {
        for (index, newer) in runs.iter().enumerate() {
            let still_there = |older: &&&Run| older.ended.is_none_or(|end| end > newer.began);
            for older in runs[..index].iter().filter(still_there) {
                pairs.push(((*older).clone(), (*newer).clone()));
            }
        }
    }
    pairs
}

/// Returns whether the older of two was told soon enough after the newer one began.
pub(super) fn was_told(older: &Run, newer: &Run, bound: Duration) -> bool {
    let latest = newer.began + bound;
    match (older.lost, &older.released, older.ended) {
        (Some(lost), ..) => lost <= latest,
        // The older handler ended before that, and its release reported the loss.
        (None, Some(how), Some(end)) => how == "lock_lost" && end <= latest,
        _ => false,
    }
}

/// Returns whether tokens rise with the beginnings of a key's handlers.
pub(super) fn fences_rise(book: &Book) -> bool {
    by_key(book)
        .values()
        .all(|runs| runs.windows(2).all(|pair| pair[0].fence < pair[1].fence))
}

/// Counts keys whose stock is not the initial stock less one for each accepted write.
pub(super) fn wrong_stocks(book: &Book) -> usize {
    let taken = |key: &str| {
        let taken = |run: &&Run| run.key == key && run.wrote == Some(true);
        book.runs.iter().filter(taken).count() as i64
    };
    let wrong = book
        .shelves
        .iter()
        .filter(|(key, shelf)| shelf.pieces != STOCK - taken(key));
    wrong.count()
}
