//! Tests many double clicks over two processes, with all kinds of faults.
//!
//! `LOCK_TESTS_DOUBLE_CLICKS` sets their number; each user makes ten of them.

mod check;
mod clicks;
mod ledger;
mod service;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use lock_tests::{RedisServer, needs, wait};
use tokio::sync::watch;

use check::{fences_rise, overlaps, was_told, wrong_stocks};
use clicks::{Answered, Click, Plan, storm};
use ledger::{Book, Ledger, Run};
use service::{Kind, Service};

/// A ttl so long that no lock ends by itself during a test.
const TTL: Duration = Duration::from_secs(60);

fn plan(mishaps: bool) -> Plan {
    let told = std::env::var("LOCK_TESTS_DOUBLE_CLICKS");
    let double_clicks = told.map_or(600, |count| count.parse().expect("a number"));
    Plan {
        double_clicks,
        users: double_clicks / 10,
        mishaps,
    }
}

fn ports(services: &[Service; 2]) -> [u16; 2] {
    [services[0].port, services[1].port]
}

/// Waits until half of a plan is done.
async fn half_way(plan: Plan, answered: &watch::Sender<u64>) {
    let mut answered = answered.subscribe();
    let half = answered.wait_for(|&count| count >= plan.double_clicks / 2);
    half.await.expect("the storm goes on");
}

/// Runs a blocking action beside the clicks.
async fn aside(redis: &Arc<RedisServer>, act: fn(&RedisServer)) {
    let redis = Arc::clone(redis);
    let acted = tokio::task::spawn_blocking(move || act(&redis));
    acted.await.expect("the action succeeds");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_two_handlers_of_a_user_overlap_under_faults_of_clients_handlers_and_redis() {
    needs!(redis);
    let redis = Arc::new(RedisServer::options().append_only().start());
    let ledger = Ledger::open().await;
    let services = Service::pair(&redis, &ledger, Kind::Locked, TTL);
    let (plan, answered) = (plan(true), watch::Sender::new(0));

    let restart = async {
        half_way(plan, &answered).await;
        aside(&redis, RedisServer::restart).await;
    };
    let clicks = storm(ports(&services), plan, &answered, &ledger);
    let (answers, ()) = tokio::join!(clicks, restart);
    wait::eventually("all handlers have ended", async || {
        ledger.read(|book| book.runs.iter().all(|run| run.ended.is_some()))
    })
    .await;
    // The keys end far before their ttl. The last undo of an unanswered request is sent 6 s after
    // the request.
    wait::eventually("no key is left", async || {
        redis.keys().iter().all(|key| key == "lockkit:!f")
    })
    .await;
    ledger.read(|book| {
        assert_eq!(overlaps(book).len(), 0, "{:?}", overlaps(book));
        let lost = book.runs.iter().filter(|run| run.lost.is_some()).count();
        assert_eq!((lost, wrong_stocks(book)), (0, 0));
        assert!(fences_rise(book));
        each_answer_says_what_was_done(&answers, book, plan);
    });
    for user in 0..plan.users {
        let next = (u64::MAX - user, format!("user-{user}"));
        Click::until_served(ports(&services)[user as usize % 2], next).await;
    }
    println!("{}", summary(&answers));
    for service in services {
        service.end().await;
    }
}

/// Checks each answer against the work of the handlers.
///
/// No handler worked on a refused click, and each click with a handler got its answer.
fn each_answer_says_what_was_done(answers: &[Answered], book: &Book, plan: Plan) {
    let mut runs: HashMap<u64, Vec<&Run>> = HashMap::new();
    for run in &book.runs {
        runs.entry(run.click).or_default().push(run);
    }
    assert_eq!(answers.len() as u64, plan.double_clicks * 2);
    for (click, answer) in answers {
        let runs = runs.get(&click.number).map_or(0, Vec::len);
        match answer.as_ref().map(|answer| answer.status) {
            None => assert!(runs <= 1, "{click:?}"),
            Some(201) => assert!(runs == 1 && !click.panics, "{click:?}"),
            Some(500) => assert!(runs == 1 && click.panics, "{click:?}"),
            Some(409 | 503) => assert_eq!(runs, 0, "{click:?}: {answer:?}"),
            Some(_) => panic!("{click:?}: {answer:?}"),
        }
    }
}

fn summary(answers: &[Answered]) -> String {
    let mut counts = std::collections::BTreeMap::new();
    for (_, answer) in answers {
        let what = answer
            .as_ref()
            .map_or("left".to_owned(), |answer| answer.status.to_string());
        *counts.entry(what).or_insert(0) += 1;
    }
    format!("{} clicks: {counts:?}", answers.len())
}

/// The number of users whose orders are under way when Redis loses its data.
const SLOW: u64 = 10;

/// Returns the number of such a user's click, and the user's name.
fn slow(user: u64) -> (u64, String) {
    (u64::MAX - user, format!("slow-{user}"))
}

fn again(user: u64) -> (u64, String) {
    let (number, name) = slow(user);
    (number - SLOW, name)
}

/// Returns the time within which an owner notices a loss. Renewals are a third of the ttl apart,
/// and one of them is the first after the loss.
fn told_within() -> Duration {
    let machine_is_busy = Duration::from_secs(2);
    forgetful_ttl() / 3 + machine_is_busy
}

/// Returns a ttl whose deadline, counted from the last renewal, would come after that time. Its third is longer than a busy
/// machine needs to restart Redis and to serve the other clicks: an owner that has noticed its loss by then overlaps no other.
fn forgetful_ttl() -> Duration {
    Duration::from_secs(24)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_redis_has_lost_its_data_the_older_handler_of_every_overlap_is_told() {
    needs!(redis);
    let redis = Arc::new(RedisServer::start());
    let ledger = Ledger::open().await;
    let services = Service::pair(&redis, &ledger, Kind::Reporting, forgetful_ttl());
    let (plan, answered, ports) = (plan(false), watch::Sender::new(0), ports(&services));

    let forget = async {
        half_way(plan, &answered).await;
        // These orders run until their locks are lost. Their locks are renewed a third of a ttl
        // from now.
        let orders: Vec<_> = (0..SLOW)
            .map(|user| tokio::spawn(Click::until_lost(ports[0], slow(user))))
            .collect();
        wait::eventually("the orders are under way", async || {
            let slow = |run: &&Run| run.key.starts_with("slow");
            ledger.read(|book| book.runs.iter().filter(slow).count() as u64 == SLOW)
        })
        .await;
        aside(&redis, RedisServer::restart_empty).await;
        // Redis has lost the locks, and the other process does not know of them either.
        for user in 0..SLOW {
            Click::until_served(ports[1], again(user)).await;
        }
        for order in orders {
            let order = order.await.expect("no panic").expect("an answer");
            assert_eq!(order.status, 201, "{order:?}");
        }
    };
    let (answers, ()) = tokio::join!(storm(ports, plan, &answered, &ledger), forget);
    ledger.read(|book| {
        let overlaps = overlaps(book);
        assert!(overlaps.len() as u64 >= SLOW, "{}", overlaps.len());
        for (older, newer) in &overlaps {
            assert!(
                was_told(older, newer, told_within()),
                "{older:?}\n{newer:?}"
            );
            assert!(older.fence < newer.fence, "{older:?}\n{newer:?}");
        }
        assert!(fences_rise(book));
        assert_eq!(wrong_stocks(book), 0);
        let late = book.runs.iter().filter(|run| run.wrote == Some(false));
        assert!(
            late.count() as u64 >= SLOW,
            "the stock refuses late writers"
        );
    });
    println!("{}", summary(&answers));
    for service in services {
        service.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_layer_the_checks_find_overlaps_and_a_wrong_stock() {
    needs!(redis);
    let redis = RedisServer::start();
    let ledger = Ledger::open().await;
    let services = Service::pair(&redis, &ledger, Kind::Unlocked, TTL);
    let plan = Plan {
        double_clicks: 200,
        users: 20,
        mishaps: false,
    };
    storm(ports(&services), plan, &watch::Sender::new(0), &ledger).await;
    ledger.read(|book| {
        assert!(!overlaps(book).is_empty());
        assert!(wrong_stocks(book) > 0);
    });
    for service in services {
        service.end().await;
    }
}
