//! Clients that disconnect: the handler and the record go on, and the retry gets the answer.

use std::convert::Infallible;
use std::time::Duration;

use crate::common::{Fed, Gate, data, embedded, polled_and_dropped};
use crate::replay::steps::*;
use bytes::Bytes;
use http::Response;
use http_body_util::BodyExt;
use lock_tower::Replay;
use tokio::sync::mpsc;
use tower::{Layer, ServiceExt, service_fn};

const HOUR: Duration = Duration::from_secs(3600);

/// The handler reads the body and has an await before and behind its effect.
#[tokio::test]
async fn a_client_that_disconnects_at_any_poll_gets_the_answer_by_its_retry() {
    for polls in 0..12 {
        let (locks, _) = embedded();
        let runs = Runs::default();
        let counted = runs.clone();
        let layer = paying(&locks, Replay::default());
        let service = layer.clone().layer(service_fn(move |request: Received| {
            let runs = counted.clone();
            async move {
                request.into_body().collect().await.unwrap();
                tokio::task::yield_now().await;
                let run = runs.begin();
                tokio::task::yield_now().await;
                Ok::<_, Infallible>(created(&format!("payment {run}")))
            }
        }));
        polled_and_dropped(service.clone().oneshot(pay("{}")), polls).await;
        assert_eq!(layer.in_flight().drain(HOUR).await, 0);
        let ran = runs.count();
        let retry = send(&service, pay("{}")).await;
        match ran {
            0 => retry.is_first("payment 1"),
            _ => retry.is_replay("payment 1"),
        }
        assert_eq!(runs.count(), 1, "after {polls} polls");
    }
}

/// The body has a known length, but its bytes arrive after the client has left.
struct Slow(Fed);

impl http_body::Body for Slow {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<crate::common::Sent>> {
        std::pin::Pin::new(&mut self.0).poll_frame(context)
    }

    fn size_hint(&self) -> http_body::SizeHint {
        http_body::SizeHint::with_exact(4)
    }
}

#[tokio::test]
async fn a_body_is_collected_after_its_client_has_left() {
    let (locks, _) = embedded();
    let (feed, body) = mpsc::unbounded_channel();
    let body = std::sync::Arc::new(std::sync::Mutex::new(Some(body)));
    let gate = Gate::closed();
    gate.let_through(1);
    let (at_gate, taken) = (gate.clone(), body.clone());
    let layer = paying(&locks, Replay::default());
    let service = layer.clone().layer(service_fn(move |_: Received| {
        let body = taken.lock().unwrap().take().expect("one run");
        let gate = at_gate.clone();
        async move {
            gate.pass().await;
            Ok::<_, Infallible>(Response::new(Slow(Fed(body))))
        }
    }));
    let request = tokio::spawn(service.clone().oneshot(pay("")));
    gate.entered(1).await;
    request.abort();
    feed.send(data("paid")).unwrap();
    drop(feed);
    assert_eq!(layer.in_flight().drain(HOUR).await, 0);
    send(&service, pay("")).await.is_replay("paid");
}
