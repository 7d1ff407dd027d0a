//! Puts together what the store knows of keys and what the holders' processes answer.

use std::collections::HashMap;
use std::sync::Arc;

use super::inspection::{Holder, HolderProcess, Inspection, KeyState, Waiter};
use crate::base::BoxFuture;
use crate::base::fence::FencingToken;
use crate::base::identity::Identity;
use crate::base::join::join_all;
use crate::base::token::Address;
use crate::engine::Engine;
use crate::engine::inquiry::{Inquiry, PATIENCE};
use crate::store::{CardName, Inspected, OperatorOperation, OperatorOutcome, StoredHolder};

/// Makes the inspections of these keys. All holders are asked at the same time, and all identities read.
pub(super) async fn all(
    engine: &Engine,
    keys: Vec<(Arc<str>, Inspected)>,
    names_waiters: bool,
) -> Vec<Inspection> {
    let overdue = engine.now() + PATIENCE;
    let mut addresses: Vec<Address> = Vec::new();
    for (_, seen) in &keys {
        addresses.extend(seen.holders.iter().filter_map(|it| it.token.address()));
        if names_waiters {
            addresses.extend(seen.waiters.iter().map(|(address, _)| *address));
        }
    }
    // Boxed one by one, because the futures of a closure that borrows cannot be sent to another thread.
    let mut answers: Vec<BoxFuture<'_, Option<Inquiry>>> = Vec::new();
    for (key, seen) in &keys {
        for holder in &seen.holders {
            answers.push(Box::pin(async move {
                match holder.token.is_of_the_kit() {
                    true => Some(engine.inquire(key, &holder.token, overdue).await),
                    false => None,
                }
            }));
        }
    }
    let (answers, identities) = tokio::join!(join_all(answers), identities(engine, addresses));
    let mut answers = answers.into_iter();
    let mut seen = Vec::with_capacity(keys.len());
    for (key, inspected) in keys {
        let holders = inspected.holders.iter().zip(&mut answers);
        let holders: Vec<Holder> = holders
            .map(|(stored, answer)| holder(&key, stored, answer, &identities))
            .collect();
        let waiters = inspected.waiters.iter().filter(|_| names_waiters);
        let waiters = waiters.map(|(address, waiting_for)| Waiter {
            identity: identities.get(address).cloned(),
            waiting_for: *waiting_for,
        });
        let longest = holders.iter().map(Holder::remaining).max_by_key(|left| {
            // A hold without an end lasts longest.
            (left.is_none(), *left)
        });
        seen.push(Inspection {
            state: match (holders.is_empty(), inspected.closed) {
                (false, _) => KeyState::Held,
                (true, Some(closed)) if closed.has_record => KeyState::Recorded,
                (true, Some(_)) => KeyState::CoolingDown,
                (true, None) => KeyState::Free,
            },
            remaining: match (longest, inspected.closed) {
                (Some(longest), _) => longest,
                (None, closed) => closed.and_then(|closed| closed.remaining),
            },
            waiters: waiters.collect(),
            waiter_count: inspected.waiter_count,
            holder_count: inspected.holder_count,
            mark: FencingToken::new(inspected.mark),
            holders,
            key,
        });
    }
    seen
}

fn holder(
    key: &Arc<str>,
    stored: &StoredHolder,
    answer: Option<Inquiry>,
    identities: &HashMap<Address, Identity>,
) -> Holder {
    let (process, held) = match answer {
        Some(Inquiry::Holds(held)) => (HolderProcess::Holds, Some(held)),
        Some(Inquiry::Ended) => (HolderProcess::Ended, None),
        Some(Inquiry::Silent) => (HolderProcess::Silent, None),
        Some(Inquiry::Gone) => (HolderProcess::Gone, None),
        None => (HolderProcess::Foreign, None),
    };
    let address = stored.token.address();
    Holder {
        key: Arc::clone(key),
        token: stored.token.clone(),
        remaining: stored.remaining,
        identity: address.and_then(|address| identities.get(&address).cloned()),
        process,
        held_for: held.map(|held| held.held_for),
        fence: held.map(|held| held.fence),
    }
}

/// Reads the identities of managers. One that cannot be read is left out.
async fn identities(engine: &Engine, mut addresses: Vec<Address>) -> HashMap<Address, Identity> {
    addresses.sort_unstable();
    addresses.dedup();
    let mut cards: Vec<BoxFuture<'_, Option<(Address, Identity)>>> = Vec::new();
    for address in addresses {
        let read = OperatorOperation::ReadCard(CardName::from(address));
        cards.push(Box::pin(async move {
            match engine.operate(read).await {
                Ok(OperatorOutcome::Card(Some(identity))) => Some((address, identity)),
                _ => None,
            }
        }));
    }
    join_all(cards).await.into_iter().flatten().collect()
}
