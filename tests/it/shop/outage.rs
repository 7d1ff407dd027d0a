//! Tests a Redis that dies under load and comes back.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lock_tests::http::Response;
use lock_tests::{RedisServer, needs, wait};
use tokio::sync::watch;
use tokio::time::timeout;

use super::pair::{on, only_cooldowns_are_left, ports};
use super::{assert_nothing_oversold, buy, buy_fast, code, ends_well, retry_after};

/// The longest time of a click in any state of Redis.
///
/// It is the sum of the timeouts on the click's way.
const LONGEST: Duration = Duration::from_millis(2_500);

/// The time from the first answer of Redis to the first order: a second, and the bank's 800 ms.
const RECOVERY: Duration = Duration::from_millis(1_800);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
enum Redis {
    Up,
    /// The time between the last answer of Redis and its death.
    Dying,
    Down,
    /// The time between the start of Redis and its first answer to a shop.
    Back,
}

/// One click of a new user, with the state of Redis at its beginning and its end.
#[derive(Debug)]
struct Click {
    began: Redis,
    ended: Redis,
    took: Duration,
    answer: Response,
}

/// Sends one click each of new users to both processes, until Redis is back.
async fn load(
    ports: [u16; 2],
    redis: watch::Receiver<Redis>,
    users: &AtomicUsize,
    refused: &AtomicUsize,
) -> Vec<Click> {
    let mut clicks = Vec::new();
    while *redis.borrow() != Redis::Back {
        let number = users.fetch_add(1, Ordering::Relaxed);
        let (began, start) = (*redis.borrow(), Instant::now());
        let user = format!("user-{number}");
        let click = buy_fast(ports[number % 2], &user, "mug");
        let answer = timeout(wait::PATIENCE, click).await;
        let ended = *redis.borrow();
        let answer = answer.expect("every click is answered");
        if answer.status == 503 {
            refused.fetch_add(1, Ordering::Relaxed);
        }
        clicks.push(Click {
            began,
            ended,
            took: start.elapsed(),
            answer,
        });
    }
    clicks
}

fn judge(click: &Click) {
    let Click {
        began,
        ended,
        took,
        answer,
    } = click;
    let allowed: &[u16] = match (began, ended) {
        (Redis::Up, Redis::Up) => &[201, 422],
        (Redis::Down, Redis::Down) => &[503],
        _ => &[201, 422, 503],
    };
    assert!(allowed.contains(&answer.status), "{click:?}");
    if answer.status == 503 {
        assert_eq!(code(answer), "lock_unavailable");
        assert!(retry_after(answer) >= 1);
    }
    assert!(*took < LONGEST, "{click:?}");
}

#[tokio::test]
async fn a_killed_redis_is_a_503_and_service_is_back_with_it() {
    needs!(redis);
    let server = RedisServer::start();
    let mut pair = on(&server);
    let ports = ports(&pair);
    let (phase, redis) = watch::channel(Redis::Up);
    let (users, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));

    let script = async {
        wait::eventually("orders succeed", async || {
            users.load(Ordering::Relaxed) > 40
        })
        .await;
        let double = tokio::join!(buy(ports[0], "ada"), buy(ports[1], "ada"));
        let mut double = [double.0.status, double.1.status];
        double.sort_unstable();
        assert!(
            [[201, 409], [409, 422], [422, 422]].contains(&double),
            "{double:?}"
        );

        phase.send_replace(Redis::Dying);
        server.kill();
        phase.send_replace(Redis::Down);
        refused.store(0, Ordering::Relaxed);
        wait::eventually("many clicks are answered with 503", async || {
            refused.load(Ordering::Relaxed) > 40
        })
        .await;
        phase.send_replace(Redis::Dying);
        server.start_again();
        let back = Instant::now();
        wait::eventually("a user buys again", async || {
            let number = users.fetch_add(1, Ordering::Relaxed);
            let port = ports[number % 2];
            let answer = buy_fast(port, &format!("user-{number}"), "lamp").await;
            assert!([201, 503].contains(&answer.status), "{answer:?}");
            answer.status == 201
        })
        .await;
        let took = back.elapsed();
        assert!(took < RECOVERY, "the service was back after {took:?}");
        phase.send_replace(Redis::Back);
    };
    let clerk = || load(ports, redis.clone(), &users, &refused);
    let ((), one, two, three, four) = tokio::join!(script, clerk(), clerk(), clerk(), clerk());

    let clicks = [one, two, three, four].into_iter().flatten();
    for click in clicks {
        judge(&click);
    }
    for port in ports {
        let answer = buy_fast(port, &format!("late-{port}"), "lamp").await;
        assert_eq!(answer.status, 201, "both processes serve again: {answer:?}");
        assert_nothing_oversold(port, "mug").await;
        assert_nothing_oversold(port, "lamp").await;
    }
    pair.process().terminate();
    let said = ends_well(&mut pair);
    assert!(!said.contains("panicked"), "{said}");
    only_cooldowns_are_left(&server);
}
