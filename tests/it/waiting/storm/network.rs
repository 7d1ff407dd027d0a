//! Tests managers behind networks that delay, stop, break and deliver late.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lock_core::LockManager;
use lock_tests::{Direction, Flow, Proxy, RedisServer, needs, wait};

use super::taker::Tally;
use super::{acts, nothing_stays, seed, takes};
use crate::dice::Dice;
use crate::kinds::ledger::Ledger;
use crate::steps::drains;

const MANAGERS: usize = 3;
const TASKS: u64 = 6;

/// A network, and the time at which its present fault ends.
struct Network {
    proxy: Proxy,
    disturbed: Option<Instant>,
}

impl Network {
    fn is_disturbed(&mut self, dice: &mut Dice) {
        // The fault is sometimes longer than the time that a manager waits for an answer, and
        // than a ttl.
        let span = Duration::from_millis(2 << dice.throw(10));
        let direction = match dice.throw(2) {
            0 => Direction::Requests,
            _ => Direction::Replies,
        };
        match dice.throw(10) {
            0 | 1 => self.proxy.set(direction, Flow::Hold),
            2..=4 => {
                let by = Duration::from_millis(1 << dice.throw(8));
                self.proxy.set(direction, Flow::Delay(by));
            }
            5 => self.proxy.set(direction, Flow::HoldAfter(dice.throw(500))),
            6 => self.proxy.cut(),
            7 => {
                self.proxy.refuse();
                self.proxy.cut();
            }
            8 => self.proxy.freeze(),
            _ => self.proxy.black_hole(),
        }
        self.disturbed = Some(Instant::now() + span);
    }

    fn is_itself_again(&mut self) {
        self.proxy.accept();
        self.proxy.pass();
        self.proxy.thaw();
        self.disturbed = None;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_one_of_many_tasks_behind_bad_networks_is_inside_and_every_task_is_served() {
    needs!(redis);
    let server = RedisServer::start();
    let folder = tempfile::tempdir().expect("a folder");
    let path: Arc<Path> = folder.path().into();
    let ledger = Arc::new(Ledger::open(folder.path()));
    let mut networks = Vec::new();
    let mut managers = Vec::new();
    let mut tasks = Vec::new();
    for manager in 0..MANAGERS {
        let proxy = Proxy::to(server.address());
        let locks = LockManager::connect(&proxy.redis_url())
            .await
            .expect("a manager");
        for task in 0..TASKS {
            let (locks, path, ledger) = (locks.clone(), Arc::clone(&path), Arc::clone(&ledger));
            let seed = (seed() * 10 + manager as u64) * TASKS + task;
            tasks.push(tokio::spawn(async move {
                takes(locks, &path, ledger, seed).await
            }));
        }
        managers.push(locks);
        networks.push(Network {
            proxy,
            disturbed: None,
        });
    }
    let mut dice = Dice::of(&[seed()]);
    for _ in 0..acts() {
        let one = dice.index(MANAGERS);
        if networks[one].disturbed.is_none() {
            networks[one].is_disturbed(&mut dice);
        }
        tokio::time::sleep(Duration::from_millis(1 + dice.throw(40))).await;
        let now = Instant::now();
        let due = |network: &&mut Network| network.disturbed.is_some_and(|end| now >= end);
        networks
            .iter_mut()
            .filter(due)
            .for_each(Network::is_itself_again);
    }
    networks.iter_mut().for_each(Network::is_itself_again);
    tokio::time::sleep(Duration::from_millis(500)).await;
    fs::write(folder.path().join("over"), "").expect("a folder");
    let mut all = Tally::default();
    for task in tasks {
        let tally = tokio::time::timeout(wait::PATIENCE * 2, task).await;
        all.add(tally.expect("every task ends").expect("no panic"));
    }
    for locks in managers {
        drains(&locks).await;
    }
    let claims = ledger.check();
    println!("{claims} claims: {all:?}");
    assert!(claims > 100, "there were many claims: {claims}");
    // Late requests are undone again after the time at which they must have arrived.
    nothing_stays(&server).await;
}
