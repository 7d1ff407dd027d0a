//! Kills a process at each step of the layer in its database.

use lock_tests::{needs, wait};

use crate::once::processes::{answer, repeated_until_answered};
use crate::payments::books::Books;
use crate::payments::service::{Payment, Service, pay};

const PATH: &str = "/once/payments";

/// The steps of a first request: before and after each of peek, begin, claim, the payment itself, complete and commit.
const STEPS: u64 = 12;

/// The same where begin and claim are one step, and complete and commit another.
const STEPS_IN_PAIRS: u64 = 8;

#[tokio::test]
async fn kill_at_each_await_of_the_layer() {
    killed_at_each_step(Books::sqlite(), STEPS).await;
    needs!(postgres);
    killed_at_each_step(Books::postgres(), STEPS_IN_PAIRS).await;
}

async fn killed_at_each_step(books: Books, steps: u64) {
    let other = Service::start("payments", [books.variable()]);
    for step in 1..=steps + 1 {
        let abort = ("ABORT_AT", step.to_string());
        let mut first = Service::start("payments-with-faults", [books.variable(), abort]);
        let got = pay(first.address(), PATH, step).await;
        assert_eq!(got.is_ok(), step > steps, "step {step}: {got:?}");
        if step <= steps {
            let ended = first.process.wait(wait::PATIENCE);
            assert!(ended.is_some(), "the process has aborted at step {step}");
        }

        let repeated = repeated_until_answered(other.address(), step).await;
        let again = answer(pay(other.address(), PATH, step).await);
        assert_eq!(again.body, repeated.body, "step {step}");
        let payment: Payment = serde_json::from_str(&repeated.body).expect("a payment");
        // The commit is the last operation, so only behind it the payment is that of the first process.
        let of_first = payment.process == first.process.pid();
        assert_eq!(of_first, step >= steps, "step {step}: {payment:?}");
        let mut payments = books.payments(PATH).await;
        payments.retain(|payment| payment.amount == step);
        assert_eq!(payments, [payment], "step {step}");
    }
}
