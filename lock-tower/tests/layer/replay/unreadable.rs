//! Records that this process cannot read: the request is done, and does not run again.

use std::time::Duration;

use crate::common::embedded;
use crate::log::ThisThread;
use crate::replay::steps::*;
use lock_core::LockManager;
use lock_core::middleware::MAX_RECORD;
use lock_tower::{RejectionKind, Replay, Seal};
use tower::Layer;

/// Puts the context in front, and inverts every byte.
struct Inverted;

impl Seal for Inverted {
    fn seal(&self, context: &[u8], plain: &[u8]) -> Option<Vec<u8>> {
        let inverted = plain.iter().map(|byte| !byte);
        Some(context.iter().copied().chain(inverted).collect())
    }

    fn open(&self, context: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let inverted = sealed.strip_prefix(context)?;
        Some(inverted.iter().map(|byte| !byte).collect())
    }
}

/// A seal whose key service is away.
struct Fails;

impl Seal for Fails {
    fn seal(&self, _: &[u8], _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn open(&self, _: &[u8], _: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

/// A seal that makes an answer larger than a record may be.
struct Grows;

impl Seal for Grows {
    fn seal(&self, _: &[u8], _: &[u8]) -> Option<Vec<u8>> {
        Some(vec![0; MAX_RECORD])
    }

    fn open(&self, _: &[u8], _: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

/// Records the first answer, and returns the bytes that the store has.
async fn recorded(locks: &LockManager, replay: Replay) -> Vec<u8> {
    let service = paying(locks, replay).layer(numbered(&Runs::default()));
    send(&service, pay("")).await.is_first("payment 1");
    let busy = locks.lock("pay:alice:k1").acquire().await.unwrap_err();
    busy.record().expect("a record").to_vec()
}

/// Stores these bytes under the key of another request.
async fn store(locks: &LockManager, key: &str, record: Vec<u8>) {
    let guard = locks
        .lock(format!("pay:alice:{key}"))
        .acquire()
        .await
        .unwrap();
    guard.remember(record, Duration::from_secs(3600)).unwrap();
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_record_of_another_version_or_with_a_flipped_byte_is_refused_and_the_handler_does_not_run()
 {
    let log = ThisThread::listen();
    let (locks, _) = embedded();
    let record = recorded(&locks, Replay::default()).await;
    let runs = Runs::default();
    let service = paying(&locks, Replay::default()).layer(numbered(&runs));
    let mut broken: Vec<Vec<u8>> = (0..record.len())
        .map(|index| {
            let mut bytes = record.clone();
            bytes[index] ^= 0x20;
            bytes
        })
        .collect();
    let mut newer = record.clone();
    newer[0] = 2;
    broken.extend([newer, Vec::from("x"), record[..record.len() - 1].to_vec()]);
    let count = broken.len();
    for (index, bytes) in broken.into_iter().enumerate() {
        let key = format!("broken-{index}");
        store(&locks, &key, bytes).await;
        let refused = send(&service, request("alice", &key, "")).await;
        refused.is_refused(RejectionKind::Done);
        assert_eq!(refused.header("retry-after"), None);
    }
    assert_eq!(runs.count(), 0);
    let lines = log.lines("cannot be read");
    assert_eq!(
        lines.iter().filter(|line| line.contains("ERROR")).count(),
        count
    );
    // The same bytes under another key are a record: the seal binds a record to its key.
    store(&locks, "copied", record).await;
    send(&service, request("alice", "copied", ""))
        .await
        .is_replay("payment 1");
}

#[tokio::test]
async fn a_sealed_record_hides_the_answer_and_opens_only_for_its_key_and_seal() {
    let (locks, _) = embedded();
    let sealed = || Replay::default().sealed(Inverted);
    let record = recorded(&locks, sealed()).await;
    assert!(!record.windows(7).any(|bytes| bytes == b"payment"));
    let runs = Runs::default();
    let with = |replay| paying(&locks, replay).layer(numbered(&runs));
    send(&with(sealed()), pay("")).await.is_replay("payment 1");
    for other in [Replay::default(), Replay::default().sealed(Fails)] {
        send(&with(other), pay(""))
            .await
            .is_refused(RejectionKind::Done);
    }
    store(&locks, "moved", record).await;
    let moved = send(&with(sealed()), request("alice", "moved", "")).await;
    moved.is_refused(RejectionKind::Done);

    let open = recorded(&embedded().0, Replay::default()).await;
    store(&locks, "forged", open).await;
    let forged = send(&with(sealed()), request("alice", "forged", "")).await;
    forged.is_refused(RejectionKind::Done);
    assert_eq!(runs.count(), 0);
}

#[tokio::test]
async fn an_answer_that_cannot_be_sealed_is_done() {
    let fails = Replay::default().sealed(Fails);
    let grows = Replay::default().sealed(Grows);
    for replay in [fails, grows] {
        let (locks, _) = embedded();
        let runs = Runs::default();
        let service = paying(&locks, replay).layer(numbered(&runs));
        send(&service, pay("")).await.is_first("payment 1");
        let refused = send(&service, pay("")).await;
        refused.is_refused(RejectionKind::Done);
        assert_eq!(refused.header("retry-after"), None);
        assert_eq!(runs.count(), 1);
    }
}

#[tokio::test(flavor = "current_thread")]
async fn neither_key_nor_body_nor_digest_of_a_record_stands_in_the_log() {
    let log = ThisThread::listen();
    let (locks, _) = embedded();
    let service = paying(&locks, Replay::default()).layer(numbered(&Runs::default()));
    for body in ["card=4242", "card=4242", "card=4243"] {
        send(&service, pay(body)).await;
    }
    let busy = locks.lock("pay:alice:k1").acquire().await.unwrap_err();
    let record = busy.record().unwrap().to_vec();
    store(&locks, "k2", record[..20].to_vec()).await;
    send(&service, request("alice", "k2", "card=4242")).await;
    let digest: String = record[3..35]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let text = format!("{} {busy} {busy:?}", log.text());
    for secret in ["alice", ":k1", ":k2", "card", "payment 1", &digest] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    for word in ["repeated the answer", "lock_key_reused", "cannot be read"] {
        assert!(text.contains(word), "{word} in {text}");
    }
}
