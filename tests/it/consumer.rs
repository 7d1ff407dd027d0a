//! Runs the example `consumer`, whose queue delivers messages twice and whose worker can be killed.

use std::path::Path;
use std::process::Command;

use lock_tests::{ChildProcess, example, wait};
use rusqlite::Connection;

fn start(db: &Path, arguments: &[&str]) -> ChildProcess {
    let mut command = Command::new(example("consumer"));
    command.args(arguments).env("CONSUMER_DB", db);
    ChildProcess::spawn(command)
}

/// Waits for the end of a worker, and returns whether it was a success, and the output.
#[track_caller]
fn ended(mut worker: ChildProcess) -> (bool, String) {
    let status = worker.wait(wait::PATIENCE);
    let said = worker.output();
    let status = status.unwrap_or_else(|| panic!("the worker does not end:\n{said}"));
    (status.success(), said)
}

/// Returns the messages of the mails, in their order, and the number of messages in the queue.
fn mails_and_waiting(db: &Path) -> (Vec<i64>, i64) {
    let db = Connection::open(db).expect("the file");
    let mut mails = db.prepare("SELECT message FROM mails ORDER BY message");
    let mails = mails.as_mut().expect("the table");
    let mails = mails.query_map((), |row| row.get(0)).expect("rows");
    let mails = mails.collect::<Result<_, _>>().expect("numbers");
    let waiting = db.query_row("SELECT count(*) FROM queue", (), |row| row.get(0));
    (mails, waiting.expect("a number"))
}

#[test]
fn messages_that_are_delivered_twice_take_effect_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let db = folder.path().join("db");
    let (success, said) = ended(start(&db, &[]));
    assert!(success, "{said}");
    let deliveries = said.matches("its mail is number").count();
    assert_eq!(deliveries, 7, "two of five are delivered twice: {said}");
    assert_eq!(
        said.matches("message 2 to ben: its mail is number 2")
            .count(),
        2,
        "{said}"
    );
    assert!(said.contains("5 messages, 5 mails"), "{said}");
    assert_eq!(mails_and_waiting(&db), (vec![1, 2, 3, 4, 5], 0));
}

#[test]
fn a_worker_that_is_killed_before_it_acknowledges_leaves_a_message_that_takes_no_second_effect() {
    let folder = tempfile::tempdir().expect("a folder");
    let db = folder.path().join("db");
    let (success, said) = ended(start(&db, &["--kill"]));
    assert!(!success && said.contains("the worker is killed"), "{said}");
    // The second message has taken effect and is not acknowledged.
    assert_eq!(mails_and_waiting(&db), (vec![1, 2], 6));

    let (success, said) = ended(start(&db, &[]));
    assert!(success, "{said}");
    let again = "message 2 to ben, delivery 2: its mail is number 2";
    assert!(said.contains(again), "{said}");
    assert_eq!(mails_and_waiting(&db), (vec![1, 2, 3, 4, 5], 0));
}

#[test]
fn several_workers_share_a_queue_and_no_message_takes_effect_twice() {
    let folder = tempfile::tempdir().expect("a folder");
    let db = folder.path().join("db");
    let killed = start(&db, &["--kill"]);
    let workers: Vec<_> = (0..3).map(|_| start(&db, &[])).collect();
    ended(killed);
    for worker in workers {
        let (success, said) = ended(worker);
        assert!(success, "{said}");
    }
    // If the killed one was the last to begin, it has left messages.
    let (success, said) = ended(start(&db, &[]));
    assert!(success, "{said}");
    let (mails, waiting) = mails_and_waiting(&db);
    assert_eq!(waiting, 0);
    // A worker that finds an empty queue sends five new messages.
    let messages = i64::try_from(mails.len()).expect("a small number");
    assert!(messages >= 5, "{mails:?}");
    assert_eq!(mails, (1..=messages).collect::<Vec<_>>());
}
