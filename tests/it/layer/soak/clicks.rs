//! Makes the clients: which user clicks when and on which process, and which clients leave.

use std::net::Shutdown;
use std::sync::Arc;

use lock_tests::http::{self, Response};
use lock_tests::{http2, wait};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use super::ledger::{Ledger, Run};

/// The number of users that click at the same time.
const AT_ONCE: usize = 32;

/// The parameters of a storm, which is the same in every run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) double_clicks: u64,
    pub(super) users: u64,
    /// Whether handlers panic and clients leave.
    pub(super) mishaps: bool,
}

/// One click.
#[derive(Clone, Copy, Debug)]
pub(super) struct Click {
    pub(super) number: u64,
    pub(super) user: u64,
    side: usize,
    version: Version,
    pub(super) leaves: Option<Leaves>,
    pub(super) panics: bool,
    work: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Http1,
    Http2,
}

/// The way of leaving while the request is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaves {
    WithFin,
    WithReset,
    HalfClosed,
}

/// A click and its answer; `None` for a click whose client has left.
pub(super) type Answered = (Click, Option<Response>);

/// A click and its answer, or why it has none.
type Sent = (Click, Result<Option<Response>, String>);

/// Returns a number that looks random and is always the same.
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl Plan {
    /// Returns the two clicks of a double click: one on each process, or both on one.
    fn double_click(&self, user: u64, round: u64) -> [Click; 2] {
        let number = round * self.users + user;
        let chance = mixed(number);
        let both_on_one = chance.is_multiple_of(4);
        [0, 1].map(|second| {
            let chance = mixed(chance ^ (second + 1));
            let mishap =
                |one_in: u64, bits: u32| self.mishaps && (chance >> bits).is_multiple_of(one_in);
            Click {
                number: number * 2 + second,
                user,
                side: if both_on_one { 0 } else { second as usize },
                version: [Version::Http1, Version::Http2][(chance >> 8) as usize % 2],
                leaves: mishap(16, 16).then(|| {
                    [Leaves::WithFin, Leaves::WithReset, Leaves::HalfClosed]
                        [(chance >> 32) as usize % 3]
                }),
                panics: mishap(24, 24),
                work: (chance >> 40) % 8,
            }
        })
    }
}

/// Sends all clicks of a plan, each user's double clicks one after the other. `answered` counts
/// them.
///
/// # Panics
///
/// If a click has no answer. The text has all such clicks, with their handlers.
pub(super) async fn storm(
    ports: [u16; 2],
    plan: Plan,
    answered: &watch::Sender<u64>,
    ledger: &Ledger,
) -> Vec<Answered> {
    let sent = send_all(ports, plan, answered).await;
    let missing: Vec<String> = sent
        .iter()
        .filter_map(|(click, answer)| {
            let why = answer.as_ref().err()?;
            let of_the_click = |run: &&Run| run.click == click.number;
            let runs = ledger.read(|book| format!("{:?}", book.runs.iter().find(of_the_click)));
            Some(format!("{why}: {click:?}, its handler: {runs}"))
        })
        .collect();
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    let answers = sent.into_iter();
    answers
        .filter_map(|(click, answer)| Some((click, answer.ok()?)))
        .collect()
}

async fn send_all(ports: [u16; 2], plan: Plan, answered: &watch::Sender<u64>) -> Vec<Sent> {
    let mut connections = Vec::new();
    for port in ports {
        let connection = http2::Connection::open(port).await;
        connections.push(connection.expect("a connection"));
    }
    let (connections, at_once) = (Arc::new(connections), Arc::new(Semaphore::new(AT_ONCE)));
    let users: Vec<_> = (0..plan.users)
        .map(|user| {
            let (connections, at_once) = (Arc::clone(&connections), Arc::clone(&at_once));
            let answered = answered.clone();
            tokio::spawn(async move {
                let mut answers = Vec::new();
                for round in 0..plan.double_clicks / plan.users {
                    let _place = at_once.acquire().await.expect("never closed");
                    let [first, second] = plan.double_click(user, round);
                    let (first, second) = tokio::join!(
                        first.send(ports, &connections),
                        second.send(ports, &connections)
                    );
                    answers.extend([first, second]);
                    answered.send_modify(|count| *count += 1);
                }
                answers
            })
        })
        .collect();
    let mut answers = Vec::new();
    for user in users {
        answers.extend(user.await.expect("every click is answered"));
    }
    answers
}

impl Click {
    /// Sends a click to one process, whose handler works until its lock is lost.
    pub(super) async fn until_lost(
        port: u16,
        (number, user): (u64, String),
    ) -> std::io::Result<Response> {
        let number = number.to_string();
        let headers = [
            ("x-user-id", user.as_str()),
            ("x-click", &number),
            ("x-work", "until lost"),
        ];
        http::post(port, "/orders", &headers, "").await
    }

    /// Sends a click until it is served, because the service may not know yet that Redis is back.
    pub(super) async fn until_served(port: u16, (number, user): (u64, String)) {
        let number = number.to_string();
        let headers = [
            ("x-user-id", user.as_str()),
            ("x-click", &number),
            ("x-work", "1"),
        ];
        wait::eventually("the click is served", async || {
            let answer = http::post(port, "/orders", &headers, "").await;
            let answer = answer.expect("an answer");
            assert!([201, 503].contains(&answer.status), "{answer:?}");
            answer.status == 201
        })
        .await;
    }

    async fn send(self, ports: [u16; 2], connections: &[http2::Connection]) -> Sent {
        let (user, number, work) = (
            format!("user-{}", self.user),
            self.number.to_string(),
            self.work.to_string(),
        );
        let mut headers = vec![
            ("x-user-id", user.as_str()),
            ("x-click", number.as_str()),
            ("x-work", work.as_str()),
        ];
        if self.panics {
            headers.push(("x-panics", "yes"));
        }
        let (port, connection) = (ports[self.side], &connections[self.side]);
        let sent = async {
            match (self.version, self.leaves) {
                (Version::Http1, None) => http::post(port, "/orders", &headers, "").await.map(Some),
                (Version::Http1, Some(how)) => leave(port, &headers, how).await.map(|()| None),
                (Version::Http2, None) => {
                    let answer = connection.request("POST", "/orders", &headers, "");
                    answer.await.map(Some)
                }
                (Version::Http2, Some(_)) => {
                    let stream = connection.begin("POST", "/orders", &headers).await?;
                    tokio::task::yield_now().await;
                    stream.reset();
                    Ok(None)
                }
            }
        };
        let answer = match timeout(wait::PATIENCE, sent).await {
            Ok(answer) => answer.map_err(|error| format!("no answer, {error}")),
            Err(_) => Err(format!("no answer in {:?}", wait::PATIENCE)),
        };
        (self, answer)
    }
}

async fn leave(port: u16, headers: &[(&str, &str)], how: Leaves) -> std::io::Result<()> {
    let mut client = TcpStream::connect(("127.0.0.1", port)).await?;
    let text = http::encode(port, "POST", "/orders", headers, "");
    client.write_all(text.as_bytes()).await?;
    match how {
        Leaves::WithFin => {}
        Leaves::WithReset => client.set_zero_linger()?,
        Leaves::HalfClosed => client.into_std()?.shutdown(Shutdown::Write)?,
    }
    Ok(())
}
