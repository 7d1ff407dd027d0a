//! Clients that repeat each request until it is answered.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::dice::Dice;
use crate::payments::service::{Payment, pay};

/// The longest time that a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The counter that all clients of a service go to.
pub(super) struct Desk {
    pub(super) services: [SocketAddr; 2],
    pub(super) path: &'static str,
    /// The last amount that a client has taken. Each amount is one payment.
    pub(super) amounts: AtomicU64,
    /// Set when the clients are to begin no other payment.
    pub(super) closes: AtomicBool,
}

/// A payment that a client was told of.
pub(super) struct Paid {
    pub(super) amount: u64,
    /// The different answers that the client got. More than one is a failure.
    pub(super) answers: BTreeSet<String>,
}

impl Paid {
    /// Returns the payments that the answers are about.
    pub(super) fn payments(&self) -> impl Iterator<Item = Payment> {
        let answers = self.answers.iter();
        answers.map(|answer| serde_json::from_str(answer).expect("a payment"))
    }
}

impl Desk {
    /// Makes one payment after another, and repeats one in three of them after its answer.
    pub(super) async fn serve(&self, mut dice: Dice) -> Vec<Paid> {
        let mut all: Vec<Paid> = Vec::new();
        while !self.closes.load(Ordering::Relaxed) {
            let amount = self.amounts.fetch_add(1, Ordering::Relaxed) + 1;
            let answers = self.paid(&mut dice, amount).await;
            all.push(Paid { amount, answers });
            if dice.percent(33) {
                // Some come very late.
                let one = match dice.percent(50) {
                    true => all.len() - 1,
                    false => dice.index(all.len()),
                };
                let again = self.paid(&mut dice, all[one].amount).await;
                all[one].answers.extend(again);
            }
            sleep(Duration::from_millis(dice.between(0, 10))).await;
        }
        all
    }

    /// Repeats a request until there is an answer.
    async fn paid(&self, dice: &mut Dice, amount: u64) -> BTreeSet<String> {
        loop {
            let answers: BTreeSet<_> = match dice.between(1, 100) {
                // The client leaves early, and asks again.
                1..=10 => {
                    let leaves = Duration::from_millis(dice.between(0, 8));
                    let asked = self.asked(dice.index(2), amount);
                    timeout(leaves, asked).await.into_iter().flatten().collect()
                }
                11..=35 => {
                    let (one, other) = tokio::join!(self.asked(0, amount), self.asked(1, amount));
                    one.into_iter().chain(other).collect()
                }
                _ => self
                    .asked(dice.index(2), amount)
                    .await
                    .into_iter()
                    .collect(),
            };
            if !answers.is_empty() {
                return answers;
            }
            sleep(Duration::from_millis(dice.between(10, 100))).await;
        }
    }

    /// Sends a request once. `None`: it is under way, or unknown, or the service is down.
    async fn asked(&self, service: usize, amount: u64) -> Option<String> {
        let sent = pay(self.services[service], self.path, amount);
        let answer = timeout(PATIENCE, sent).await.ok()?.ok()?;
        match answer.status {
            201 => Some(answer.body),
            409 | 503 => None,
            status => panic!("payment {amount}: {status} {}", answer.body),
        }
    }
}
