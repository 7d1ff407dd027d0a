//! One run: two processes, clients, and kills.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use lock_tests::{RedisServer, wait};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::clients::{Desk, Paid};
use super::tally::Tally;
use crate::dice::Dice;
use crate::payments::books::Books;
use crate::payments::service::{Payment, Service};

/// The most clients of a service.
const CLIENTS: u64 = 12;

/// The longest pause before and after each step of a process in its database.
const PAUSE_MS: u64 = 3;

/// How long the last payments may take after the last kill. A lock of a killed process ends after 5 s.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct Variant {
    pub(super) name: &'static str,
    pub(super) path: &'static str,
    pub(super) redis: bool,
    pub(super) kills: Kills,
}

/// When a process is killed.
#[derive(Clone, Copy)]
pub(super) enum Kills {
    AtAnyTime,
    /// At any time, and at the same time Redis loses its keys, and PostgreSQL ends some of its connections.
    WithLossesOfTheServers,
    /// When it has taken a payment and has not recorded it.
    BeforeARecord,
}

struct Stage {
    services: [Service; 2],
    redis: Option<RedisServer>,
    books: Books,
    path: &'static str,
}

impl Variant {
    pub(super) async fn run(&self, books: Books, kills: u64) -> Tally {
        let redis = self.redis.then(RedisServer::start);
        let start = || {
            let pause = ("PAUSE_MS", PAUSE_MS.to_string());
            let redis = redis.as_ref().map(|redis| ("REDIS_URL", redis.url()));
            let variables = [books.variable(), pause].into_iter().chain(redis);
            Service::start("payments-with-faults", variables)
        };
        let services = [start(), start()];
        let desk = Arc::new(Desk {
            services: services.each_ref().map(Service::address),
            path: self.path,
            amounts: AtomicU64::new(0),
            closes: AtomicBool::new(false),
        });
        let mut clients = JoinSet::new();
        let number_of_clients = match (&books, &redis) {
            // SQLite has no queue. A process that always has a next transaction would keep the other one from beginning. With
            // Redis, most clients wait for locks of killed processes.
            (Books::Sqlite(_), None) => CLIENTS / 3,
            _ => CLIENTS,
        };
        for number in 0..number_of_clients {
            let (desk, dice) = (Arc::clone(&desk), Dice::of(&[kills, number]));
            clients.spawn(async move { desk.serve(dice).await });
        }

        let mut stage = Stage {
            services,
            redis,
            books,
            path: self.path,
        };
        let mut dice = Dice::of(&[kills, CLIENTS]);
        let mut unrecorded = 0;
        for _ in 0..kills {
            sleep(Duration::from_millis(dice.between(125, 375))).await;
            let process = dice.index(2);
            match self.kills {
                Kills::AtAnyTime => stage.services[process].kill(),
                Kills::WithLossesOfTheServers => {
                    stage.lose().await;
                    stage.services[process].kill();
                }
                Kills::BeforeARecord => unrecorded += stage.kill_before_a_record().await,
            }
        }
        desk.closes.store(true, Ordering::Relaxed);
        let paid = last_payments(&mut clients).await;

        let payments = stage.books.payments(self.path).await;
        let tally = Tally {
            kills,
            unrecorded,
            never_answered: clients.len(),
            ..Tally::of(self.name, &paid, &payments)
        };
        tally.print();
        tally
    }
}

/// Collects the payments of the clients that end in time.
async fn last_payments(clients: &mut JoinSet<Vec<Paid>>) -> Vec<Paid> {
    let mut paid = Vec::new();
    let all = async {
        while let Some(client) = clients.join_next().await {
            paid.extend(client.expect("no panic"));
        }
    };
    let _ = timeout(PATIENCE, all).await;
    paid
}

impl Stage {
    /// Has Redis lose all keys, and PostgreSQL end three in ten of its connections.
    async fn lose(&self) {
        if let Some(redis) = &self.redis {
            redis.cli(&["FLUSHALL"]);
        }
        let terminate = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND random() < 0.3";
        self.books.execute(terminate).await;
    }

    /// Freezes a process that has taken a payment, and kills it if the payment is not recorded.
    ///
    /// Returns the number of its payments that are not recorded.
    async fn kill_before_a_record(&mut self) -> u64 {
        loop {
            let pid = self.next_writer().await;
            let writes = |it: &Service| it.process.pid() == pid;
            let Some(writer) = self.services.iter().position(writes) else {
                continue;
            };
            self.services[writer].process.stop();
            let unrecorded = self.unrecorded(pid).await;
            if unrecorded > 0 {
                self.services[writer].kill();
                return unrecorded;
            }
            self.services[writer].process.cont();
        }
    }

    /// Returns the process that takes the next payment.
    async fn next_writer(&self) -> u32 {
        let before = self.books.payments(self.path).await.len();
        let mut writer = None;
        wait::eventually("a client pays", async || {
            let now = self.books.payments(self.path).await;
            writer = now.get(before..).and_then(<[Payment]>::last).copied();
            writer.is_some()
        })
        .await;
        writer.expect("a payment").process
    }

    /// Counts the payments of a frozen process that have no record.
    async fn unrecorded(&self, pid: u32) -> u64 {
        let redis = self.redis.as_ref().expect("a Redis with the records");
        // The server reads what the process has sent before it reads the second of two later connections.
        for _ in 0..2 {
            redis.cli(&["PING"]);
        }
        let payments = self.books.payments(self.path).await;
        let newest = payments
            .iter()
            .filter(|payment| payment.process == pid)
            .rev();
        // No client has more than two requests under way, so all others are recorded.
        let newest = newest.take(2 * CLIENTS as usize);
        let is_recorded = |amount: u64| {
            let key = format!("lockkit:pay:{}:ada:op-{amount}", self.path);
            redis
                .get(&key)
                .is_some_and(|value| value.starts_with("done/"))
        };
        newest
            .filter(|payment| !is_recorded(payment.amount))
            .count() as u64
    }
}
