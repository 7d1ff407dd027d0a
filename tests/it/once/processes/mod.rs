//! Two processes of the example `payments` on one PostgreSQL, of which the first one is behind a proxy.
//!
//! There is no Redis, so the database alone decides between them.

mod commits;
mod frozen;
mod restarts;
mod unlocked;

use std::io;
use std::net::SocketAddr;

use lock_tests::http::Response;
use lock_tests::{Direction, Flow, Proxy, wait};
use tokio::task::JoinHandle;

use crate::payments::books::Books;
use crate::payments::service::{Payment, Service, pay};

const PATH: &str = "/once/payments";

/// The last bytes that a client and the server exchange about a commit, and the server's answer to a claim.
const COMMIT: &[u8] = b"COMMIT\0";
const CLAIMED: &[u8] = b"INSERT 0 1\0";

struct Stage {
    first: Service,
    second: Service,
    proxy: Proxy,
    books: Books,
}

/// A request whose transaction is held at some point.
type Held = JoinHandle<io::Result<Response>>;

impl Stage {
    fn start() -> Stage {
        let books = Books::postgres();
        let Books::Postgres(server) = &books else {
            unreachable!("a PostgreSQL");
        };
        let proxy = Proxy::to(server.address());
        let behind = ("DATABASE_URL", server.url_through(&proxy));
        Stage {
            // It deletes no old records, so its only commits are those of payments.
            first: Service::start("payments-with-faults", [behind]),
            second: Service::start("payments-with-faults", [books.variable()]),
            proxy,
            books,
        }
    }

    /// Sends a payment to the first process, and returns when these bytes of its transaction are held.
    async fn held_at(&self, direction: Direction, bytes: &[u8], amount: u64) -> Held {
        self.proxy.set(direction, Flow::HoldFrom(bytes.to_vec()));
        let request = tokio::spawn(pay(self.first.address(), PATH, amount));
        wait::eventually("the proxy holds the bytes", async || {
            assert!(!request.is_finished(), "an answer without these bytes");
            self.proxy.has_met(direction)
        })
        .await;
        request
    }

    /// Returns the payments of this amount.
    async fn payments(&self, amount: u64) -> Vec<Payment> {
        let mut payments = self.books.payments(PATH).await;
        payments.retain(|payment| payment.amount == amount);
        payments
    }

    /// Asks the second process until it answers, and asserts that there is one payment and that the answer is about it.
    async fn assert_paid_once(&self, amount: u64) -> Payment {
        let answer = repeated_until_answered(self.second.address(), amount).await;
        let payment: Payment = serde_json::from_str(&answer.body).expect("a payment");
        assert_eq!(self.payments(amount).await, [payment]);
        payment
    }
}

/// Returns the answer to a request, which must be a payment.
#[track_caller]
pub(super) fn answer(got: io::Result<Response>) -> Response {
    let response = got.expect("an answer");
    assert_eq!(response.status, 201, "{response:?}");
    response
}

/// Repeats a request until its answer is neither 409 nor 503.
pub(super) async fn repeated_until_answered(service: SocketAddr, amount: u64) -> Response {
    let mut last = None;
    wait::eventually("the request is answered", async || {
        let response = pay(service, PATH, amount).await.expect("an answer");
        let is_last = ![409, 503].contains(&response.status);
        last = Some(response);
        is_last
    })
    .await;
    answer(Ok(last.expect("an answer")))
}

/// Asserts that another run has the operation, or had it and is not known to have ended.
#[track_caller]
fn assert_busy(got: io::Result<Response>) {
    let response = got.expect("an answer");
    assert_eq!(response.status, 409, "{response:?}");
    assert!(response.body.contains("lock_busy"), "{response:?}");
}

#[track_caller]
fn assert_replayed(response: &Response) {
    let mark = response.headers.get("idempotency-replayed");
    assert_eq!(mark.map(String::as_str), Some("true"), "{response:?}");
}
