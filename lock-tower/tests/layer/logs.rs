//! What is logged: nothing that a stranger may not read, and all of it in the request's span.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::*;
use http::{Request, StatusCode};
use tower::{Layer, service_fn};
use tracing::Instrument;
use tracing_subscriber::fmt::MakeWriter;

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

/// On one thread, so that the subscriber of this thread sees the handler's task too.
#[tokio::test(flavor = "current_thread")]
async fn logs_hold_no_key_and_the_handler_logs_in_its_requests_span() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(log.clone())
        .with_max_level(tracing::Level::TRACE)
        .with_span_events(tracing_subscriber::fmt::format::FmtSpan::FULL)
        .with_ansi(false)
        .finish();
    let _this_thread = tracing::subscriber::set_default(subscriber);

    let (locks, store) = embedded();
    let seizes = store.clone();
    let layer = per_user_and_route(&locks).ttl(Duration::from_millis(90));
    let service = layer.layer(service_fn(move |request: Request<Body>| {
        let lock = request
            .extensions()
            .get::<lock_tower::LockContext>()
            .cloned();
        let seizes = seizes.clone();
        async move {
            tracing::info!("in the handler");
            seizes.seize("submit:alice:POST:/orders", Duration::from_secs(60));
            lock.expect("a context").lost().await;
            ok(StatusCode::OK)
        }
    }));
    let span = tracing::info_span!("of the request");
    async {
        assert_eq!(send(&service, click("alice")).await.status, StatusCode::OK);
        assert_eq!(
            send(&service, click("alice")).await.status,
            StatusCode::CONFLICT
        );
        store.fail(lock_core::ErrorKind::Misconfigured);
        send(&service, click("alice")).await;
    }
    .instrument(span)
    .await;

    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(
        !text.contains("alice") && !text.contains("submit:"),
        "{text}"
    );
    let line = |words: &str| {
        text.lines()
            .find(|line| line.contains(words))
            .unwrap_or_default()
    };
    assert!(line("in the handler").contains("of the request"), "{text}");
    assert!(line("was refused").contains("lock_busy"), "{text}");
    assert!(
        line("not released as it should be").contains("lock_lost"),
        "{text}"
    );
    assert!(
        line("can get its lock").contains("lock_misconfigured"),
        "{text}"
    );
}
