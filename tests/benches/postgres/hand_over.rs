//! Measures the time from a release to the waiter's wake in another manager, beside a bare NOTIFY.

use std::future::poll_fn;
use std::pin::pin;
use std::time::{Duration, Instant};

use lock_core::{LockManager, Wait};
use tokio::sync::mpsc;
use tokio_postgres::{AsyncMessage, NoTls};

use crate::machine::median;

const SAMPLES: usize = 300;

pub(super) async fn run(url: &str, commits: &str, short: bool) {
    let samples = if short { SAMPLES / 5 } else { SAMPLES };
    let bare = median(notifies(url, samples).await);
    let kit = median(hand_overs(url, samples).await);
    println!(
        "\n| PostgreSQL, from a release to the waiter of another process, {commits} | bare NOTIFY µs | kit µs | × bare |"
    );
    println!("| --- | --- | --- | --- |");
    println!(
        "| median of {samples} | {bare:.0} | {kit:.0} | {:.2} |",
        kit / bare
    );
}

/// Returns the microseconds from the call of `pg_notify` to the notification.
async fn notifies(url: &str, samples: usize) -> Vec<f64> {
    let connect = || tokio_postgres::connect(url, NoTls);
    let (sender, connection) = connect().await.expect("a server");
    tokio::spawn(connection);
    let (receiver, connection) = connect().await.expect("a server");
    let (told, mut heard) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut connection = pin!(connection);
        while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
            if let Ok(AsyncMessage::Notification(_)) = message {
                let _ = told.send(Instant::now());
            }
        }
    });
    receiver
        .batch_execute("LISTEN ball")
        .await
        .expect("an answer");
    let notify = sender.prepare("SELECT pg_notify('ball', 'x')").await;
    let notify = notify.expect("a statement");
    let mut all = Vec::new();
    for _ in 0..samples {
        let begin = Instant::now();
        sender.execute(&notify, &[]).await.expect("an answer");
        let heard = heard.recv().await.expect("a notification");
        all.push(micros(heard - begin));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    all
}

async fn hand_overs(url: &str, samples: usize) -> Vec<f64> {
    let owner = LockManager::connect(url).await.expect("a manager");
    let waiter = LockManager::connect(url).await.expect("a manager");
    let mut all = Vec::new();
    for _ in 0..samples {
        let guard = owner.lock("ball").acquire().await.expect("free");
        let request = waiter.lock("ball").wait(Wait::Forever);
        let waiting = tokio::spawn(async move {
            let guard = request.acquire().await.expect("its turn");
            (Instant::now(), guard)
        });
        tokio::time::sleep(Duration::from_millis(10)).await;
        let begin = Instant::now();
        guard.release().await.expect("held");
        let (woken, guard) = waiting.await.expect("no panic");
        all.push(micros(woken - begin));
        guard.release().await.expect("held");
    }
    all
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
