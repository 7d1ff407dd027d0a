//! The list of locks that fit a pattern.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use super::inspection::Inspection;
use super::{gather, inspected};
use crate::base::BoxFuture;
use crate::base::error::{Error, ErrorKind};
use crate::base::join::join_all;
use crate::engine::Engine;
use crate::store::{Inspected, OperatorOperation, OperatorOutcome, Pattern, Scan, ScanCursor};

/// The most locks of one page.
const PAGE: usize = 100;

/// Lists locks page by page. [`Operator::list`](super::Operator::list) makes it.
///
/// It remembers the keys that it has named, so that it names none twice.
#[must_use = "a list does nothing until `next_page`"]
pub struct Locks {
    engine: Arc<Engine>,
    pattern: Pattern,
    /// Where to go on; `None`: all keys were found.
    next: Option<ScanCursor>,
    found: VecDeque<Arc<str>>,
    named: HashSet<Arc<str>>,
}

impl Locks {
    pub(super) fn new(engine: &Arc<Engine>, pattern: Pattern) -> Self {
        Self {
            engine: Arc::clone(engine),
            pattern,
            next: Some(ScanCursor::default()),
            found: VecDeque::new(),
            named: HashSet::new(),
        }
    }

    /// Returns the next locks, at most 100, in no order; `None` after the last ones.
    ///
    /// A page may be empty although more follow, because the server has found no lock for a while. So a caller can
    /// stop between any two pages.
    ///
    /// # Errors
    ///
    /// As [`inspect`](super::Operator::inspect). A later call goes on where the failed one began.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, a later call goes on where this one began. No lock is left out.
    pub async fn next_page(&mut self) -> Result<Option<Vec<Inspection>>, Error> {
        if self.found.is_empty() {
            let Some(from) = self.next.clone() else {
                return Ok(None);
            };
            self.search(from).await?;
        }
        let count = self.found.len().min(PAGE);
        let keys: Vec<_> = self.found.iter().take(count).cloned().collect();
        let mut asked: Vec<BoxFuture<'_, Result<Inspected, Error>>> = Vec::with_capacity(count);
        for key in &keys {
            asked.push(Box::pin(inspected(&self.engine, key)));
        }
        let answers = join_all(asked).await;
        let mut taken = Vec::with_capacity(count);
        for (key, answer) in keys.into_iter().zip(answers) {
            match answer {
                Ok(inspected) if self.is_lock(&inspected) => taken.push((key, inspected)),
                // It is free by now, or was never a lock.
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Misconfigured => {}
                Err(error) => return Err(error),
            }
        }
        let page = gather::all(&self.engine, taken, false).await;
        self.found.drain(..count);
        Ok(Some(page))
    }

    /// Asks the store for more keys, once.
    async fn search(&mut self, from: ScanCursor) -> Result<(), Error> {
        let scan = OperatorOperation::Scan(Scan {
            pattern: self.pattern.clone(),
            from,
        });
        let answer = self.engine.operate(scan).await;
        let Ok(OperatorOutcome::Scanned(scanned)) = answer else {
            let failed = answer.err().map(|failure| failure.error);
            return Err(failed
                .unwrap_or_else(|| Error::unavailable("the store's answer was not understood")));
        };
        self.next = scanned.next;
        for key in scanned.keys {
            if self.pattern.matches(&key) && self.named.insert(Arc::clone(&key)) {
                self.found.push_back(key);
            }
        }
        Ok(())
    }

    /// Without a namespace any text of the server could be the lock of another library.
    fn is_lock(&self, seen: &Inspected) -> bool {
        let mut holders = seen.holders.iter();
        let ours = holders.any(|holder| holder.token.is_of_the_kit());
        let foreign = !seen.holders.is_empty() && !self.engine.namespace.is_empty();
        ours || foreign || seen.closed.is_some()
    }
}

impl fmt::Debug for Locks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locks").finish_non_exhaustive()
    }
}
