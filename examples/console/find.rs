//! Finds locks for both the page and the terminal.

use std::time::Duration;

use lock_core::operator::{Holder, Inspection, Operator};
use lock_core::{Error, LockKey};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// The most locks that are shown at once.
pub(crate) const MOST: usize = 200;
/// The most locks of one page whose waiters are named. A list counts waiters, and each name needs an inspection.
const MOST_NAMED: usize = 20;
/// How long a search may take. A server with very many other keys needs longer.
const PATIENCE: Duration = Duration::from_secs(3);

/// Locks by their keys.
pub(crate) struct Found {
    pub(crate) locks: Vec<Inspection>,
    /// Whether the search came to its end.
    pub(crate) is_complete: bool,
}

/// Lists the locks that fit a pattern.
pub(crate) async fn locks(operator: &Operator, pattern: &str) -> Result<Found, Error> {
    let mut list = operator.list(pattern);
    let mut found = Found {
        locks: Vec::new(),
        is_complete: false,
    };
    let search = async {
        while found.locks.len() < MOST {
            match list.next_page().await? {
                Some(page) => found.locks.extend(page),
                None => {
                    found.is_complete = true;
                    break;
                }
            }
        }
        Ok(())
    };
    // A search that takes longer shows what it has found.
    timeout(PATIENCE, search).await.unwrap_or(Ok(()))?;
    found.locks.sort_by(|one, other| one.key().cmp(other.key()));
    found.is_complete &= found.locks.len() <= MOST;
    found.locks.truncate(MOST);
    Ok(found)
}

/// Inspects the first locks that have waiters, all at once, because a list leaves the waiters' names out.
pub(crate) async fn name_waiters(operator: &Operator, locks: &mut [Inspection]) {
    let mut looks = JoinSet::new();
    let awaited = locks.iter().enumerate();
    let awaited = awaited.filter(|(_, seen)| seen.waiter_count() > 0);
    for (at, seen) in awaited.take(MOST_NAMED) {
        let (operator, key) = (operator.clone(), seen.key().to_owned());
        looks.spawn(async move { (at, lock(&operator, &key).await) });
    }
    while let Some(look) = looks.join_next().await {
        // Without an answer the card shows the number that the list has counted.
        if let Ok((at, Ok(seen))) = look {
            locks[at] = seen;
        }
    }
}

/// Looks at one key, which may have any characters.
pub(crate) async fn lock(operator: &Operator, key: &str) -> Result<Inspection, Error> {
    operator.inspect(LockKey::exact(key)).await
}

/// Returns the holder with that id, if it still has the key.
pub(crate) fn holder<'a>(seen: &'a Inspection, id: &str) -> Option<&'a Holder> {
    seen.holders().iter().find(|holder| holder.id() == id)
}
