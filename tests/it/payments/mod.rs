//! Tests idempotent requests by clients that know nothing of the kit: many processes of curl.
//!
//! `LOCK_TESTS_PAYMENTS` sets the number of payments. Connections are cut, and processes killed and restarted, at
//! times that follow from a seed.

pub(crate) mod books;
pub(crate) mod service;

use std::process::Command;
use std::time::Duration;

use lock_tests::{ChildProcess, Proxy, RedisServer, needs};

use self::books::Books;
use self::service::Service;
use crate::dice::Dice;

/// How long a client may take for one payment. Only a defect reaches it.
const PATIENCE: Duration = Duration::from_secs(2);

/// The clients of each table.
const CLIENTS: u64 = 6;

#[tokio::test]
async fn a_payment_takes_effect_once_although_connections_and_processes_break() {
    needs!(redis);
    needs!(curl);
    let number = std::env::var("LOCK_TESTS_PAYMENTS").map_or(100, |n| n.parse().expect("a number"));
    let redis = RedisServer::start();
    let books = Books::sqlite();
    let start = || Service::start("payments", [("REDIS_URL", redis.url()), books.variable()]);
    let mut services = [start(), start()];
    let proxies = services.each_ref().map(|it| Proxy::to(it.address()));
    let ports = proxies.each_ref().map(Proxy::port);
    let paths = ["/payments", "/unguarded/payments", "/once/payments"];
    let mut clients = paths.map(|path| client(path, number, ports));

    let mut dice = Dice::of(&[number]);
    let (mut cuts, mut kills, mut restarts, mut unrecorded) = (0, 0, 0, 0);
    while clients.iter_mut().any(ChildProcess::is_running) {
        tokio::time::sleep(Duration::from_millis(dice.between(40, 160))).await;
        let broken = dice.index(2);
        match dice.between(1, 100) {
            1..=6 if kills < number / 20 => {
                let writer = process_after_an_effect(&services, &books, &mut clients).await;
                let broken = writer.unwrap_or(broken);
                services[broken].process.stop();
                unrecorded += unrecorded_payments(&redis, &services[broken], &books).await;
                services[broken].kill();
                kills += 1;
            }
            7..=9 => {
                services[broken].restart();
                restarts += 1;
            }
            _ => {
                proxies[broken].cut();
                cuts += 1;
            }
        }
    }

    let mut requests = Vec::new();
    for client in &mut clients {
        let ended = client.wait(PATIENCE).expect("its end");
        assert!(ended.success(), "{}", client.output());
        requests.extend(client.line(Duration::ZERO, |line| line.starts_with("done: ")));
    }
    let guarded = services[0].payments("/payments").await;
    let unguarded = services[0].payments("/unguarded/payments").await;
    let once = services[0].payments("/once/payments").await;
    println!(
        "{number} payments in each table ({requests:?} requests), {cuts} cuts, {kills} kills, {restarts} restarts: \
         {unrecorded} effects without a record, {}, {} and {} payments",
        guarded.len(),
        unguarded.len(),
        once.len()
    );
    assert!(
        cuts > 0 && kills > 0,
        "connections were cut, and processes killed"
    );
    for payments in [guarded, once] {
        let mut amounts: Vec<_> = payments.iter().map(|payment| payment.amount).collect();
        amounts.sort_unstable();
        assert_eq!(
            amounts,
            (1..=number).collect::<Vec<_>>(),
            "each payment once"
        );
    }
    let mut amounts: Vec<_> = unguarded.iter().map(|payment| payment.amount).collect();
    amounts.sort_unstable();
    amounts.dedup();
    assert_eq!(amounts.len() as u64, number, "each payment at least once");
    let twice = unguarded.len() - amounts.len();
    assert_eq!(
        twice, unrecorded,
        "one more for each effect whose record a crash prevented"
    );
}

fn client(path: &str, number: u64, ports: [u16; 2]) -> ChildProcess {
    let mut command = Command::new("bash");
    command
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/it/payments/client.sh"
        ))
        .arg(path)
        .args([number, CLIENTS].map(|number| number.to_string()))
        .args(ports.map(|port| port.to_string()));
    ChildProcess::spawn(command)
}

/// Returns the process that writes the next payment, at most some milliseconds after that.
///
/// Most of the time no process is between an effect and its record, so a kill at any time would seldom come there.
async fn process_after_an_effect(
    services: &[Service; 2],
    books: &Books,
    clients: &mut [ChildProcess],
) -> Option<usize> {
    let before = books.payments("/unguarded/payments").await.len();
    while clients.iter_mut().any(ChildProcess::is_running) {
        let now = books.payments("/unguarded/payments").await;
        if now.len() > before {
            let pid = now.last()?.process;
            return services
                .iter()
                .position(|service| service.process.pid() == pid);
        }
    }
    None
}

/// Counts the payments that a stopped process has written without a record of their answers.
///
/// The process is killed next, so each of them is taken again.
async fn unrecorded_payments(redis: &RedisServer, stopped: &Service, books: &Books) -> usize {
    // The server reads what the process has sent before it reads the second of two later connections.
    for _ in 0..2 {
        redis.cli(&["PING"]);
    }
    let recorded: Vec<_> = redis
        .keys()
        .into_iter()
        .filter(|key| key.contains("/unguarded/") && key.contains(":op-"))
        .filter(|key| redis.cli(&["TYPE", key]) == "string")
        .filter(|key| redis.cli(&["GETRANGE", key, "0", "4"]) == "done/")
        .collect();
    let is_recorded = |amount: u64| {
        let end = format!(":op-{amount}");
        recorded.iter().any(|key| key.ends_with(&end))
    };
    let payments = books.payments("/unguarded/payments").await;
    let pid = stopped.process.pid();
    let written = payments.iter().filter(|payment| payment.process == pid);
    written
        .filter(|payment| !is_recorded(payment.amount))
        .count()
}
