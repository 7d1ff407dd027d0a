//! A lock has three tracing spans, with outcomes and times, and without the key.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lock_core::{Error, LockManager};
use tracing_subscriber::fmt::format::FmtSpan;

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the lines about the end of spans with this name.
    ///
    /// A line names the enclosing spans first, and the ended span last.
    fn ended(&self, span: &str) -> Vec<String> {
        let log = String::from_utf8(self.bytes().clone()).expect("text");
        let spans = ["lock.acquire{", "lock.hold{", "lock.release{"];
        let last = |line: &str| spans.into_iter().max_by_key(|name| line.rfind(name));
        let ends = |line: &&str| {
            line.contains(": close")
                && line.contains(span)
                && last(line).is_some_and(|name| name.starts_with(span))
        };
        log.lines().filter(ends).map(str::to_owned).collect()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn acquire_hold_and_release_are_spans_with_outcomes_and_without_the_key() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_max_level(tracing::Level::TRACE)
        .with_span_events(FmtSpan::CLOSE)
        .with_writer(move || writer.clone())
        .finish();
    let traced = tracing::subscriber::set_default(subscriber);

    let locks = LockManager::in_memory();
    let work = async {
        let busy = locks.lock("account:alice").acquire().await.unwrap_err();
        tracing::error!(%busy, ?busy, "refused");
    };
    locks.lock("account:alice").run(work).await.unwrap();
    let guard = locks.lock("account:alice").acquire().await.unwrap();
    tracing::error!(?guard, ?locks, held = ?locks.held(), "held");
    guard.release().await.unwrap();
    drop(traced);

    let outcomes = |span: &str, outcome: &str| {
        let outcome = format!("outcome=\"{outcome}\"");
        log.ended(span)
            .iter()
            .filter(|line| line.contains(&outcome))
            .count()
    };
    assert_eq!(outcomes("lock.acquire", "acquired"), 2);
    assert_eq!(outcomes("lock.acquire", "lock_busy"), 1);
    assert_eq!(outcomes("lock.hold", "released"), 2);
    assert_eq!(outcomes("lock.release", "released"), 2);
    assert!(
        log.ended("lock.acquire")
            .iter()
            .all(|line| line.contains("waited_ms="))
    );
    assert!(
        log.ended("lock.hold")
            .iter()
            .filter(|line| line.contains("held_ms="))
            .count()
            >= 2
    );

    let text = String::from_utf8(log.bytes().clone()).expect("text");
    assert!(text.contains("refused") && text.contains("held"));
    assert!(!text.contains("alice"), "{text}");
}

#[tokio::test]
async fn an_error_has_an_advice_and_a_source() {
    let error: Error = LockManager::connect("redis://user:sesame@127.0.0.1:1/0")
        .await
        .unwrap_err();
    let shown = format!("{error} {error:?} {:?}", std::error::Error::source(&error));
    assert_eq!(error.http_status(), 503);
    assert!(!shown.contains("sesame"), "{shown}");
}
