//! A lock has three tracing spans, with outcomes and times, and without the key.
#![allow(clippy::disallowed_methods, reason = "tests run on the real machine")]

mod log;

use lock_core::{Error, LockManager};

use self::log::Log;

/// Returns the lines about the end of spans with this name.
///
/// A line names the enclosing spans first, and the ended span last.
fn ended(log: &str, span: &str) -> Vec<String> {
    let spans = ["lock.acquire{", "lock.hold{", "lock.release{"];
    let last = |line: &str| spans.into_iter().max_by_key(|name| line.rfind(name));
    let ends = |line: &&str| {
        line.contains(": close")
            && line.contains(span)
            && last(line).is_some_and(|name| name.starts_with(span))
    };
    log.lines().filter(ends).map(str::to_owned).collect()
}

#[tokio::test]
async fn acquire_hold_and_release_are_spans_with_outcomes_and_without_the_key() {
    let (log, logging) = Log::begin(tracing::Level::TRACE);
    let locks = LockManager::in_memory();
    let work = async {
        let busy = locks.lock("account:alice").acquire().await.unwrap_err();
        tracing::error!(%busy, ?busy, "refused");
    };
    locks.lock("account:alice").run(work).await.unwrap();
    let guard = locks.lock("account:alice").acquire().await.unwrap();
    tracing::error!(?guard, ?locks, held = ?locks.held(), "held");
    guard.release().await.unwrap();
    drop(logging);

    let text = log.text();
    let outcomes = |span: &str, outcome: &str| {
        let outcome = format!("outcome=\"{outcome}\"");
        ended(&text, span)
            .iter()
            .filter(|line| line.contains(&outcome))
            .count()
    };
    assert_eq!(outcomes("lock.acquire", "acquired"), 2);
    assert_eq!(outcomes("lock.acquire", "lock_busy"), 1);
    assert_eq!(outcomes("lock.hold", "released"), 2);
    assert_eq!(outcomes("lock.release", "released"), 2);
    assert!(
        ended(&text, "lock.acquire")
            .iter()
            .all(|line| line.contains("waited_ms="))
    );
    assert!(
        ended(&text, "lock.hold")
            .iter()
            .filter(|line| line.contains("held_ms="))
            .count()
            >= 2
    );

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
