//! Tests that the ledger finds each violation, and finds nothing in a correct round.

use super::{Account, MILLI, Span};
use crate::campaign::fault::Fault;
use crate::campaign::journal::Entry;
use crate::campaign::plan::Plan;
use crate::campaign::watch::Look;

/// Returns the ledger's verdict on lines that begin with a time in ms, the worker and the call.
///
/// Every key is taken exactly at the times that owners claim it.
#[track_caller]
fn verdict(lines: &[&str], faults: &[(u64, u64, Fault)]) -> Vec<String> {
    let mut plan = Plan::of(0, 0);
    (plan.faults, plan.loses_locks) = (Vec::new(), faults.iter().any(|it| it.2.loses_locks()));
    let spans = faults.iter().map(|(from, until, fault)| Span {
        from: from * MILLI,
        until: until * MILLI,
        fault: *fault,
    });
    let entry = |line: &&str| {
        let [time, worker, rest] = line
            .splitn(3, ' ')
            .collect::<Vec<_>>()
            .try_into()
            .expect("three parts");
        Entry::of(&format!("{time}000000 {worker} 0 0 {rest}")).expect("a line")
    };
    let entries: Vec<_> = lines.iter().map(entry).collect();
    let spans: Vec<_> = spans.collect();
    let account = |looks| Account::of(&plan, 0, &entries, spans.clone(), looks);
    let claims: Vec<_> = account(Vec::new())
        .calls
        .iter()
        .filter_map(|it| Some((it.key, it.claim?)))
        .collect();
    let look = |key: usize, time: u64| {
        let taken = claims
            .iter()
            .any(|(of, claim)| *of == key && claim.from <= time && time <= claim.until);
        Look {
            begun: time,
            ended: time + MILLI,
            taken: Some(taken),
        }
    };
    let looks =
        (0..plan.keys.len()).map(|key| (0..1_000).map(|it| look(key, it * 20 * MILLI)).collect());
    account(looks.collect()).check()
}

/// Checks that the ledger finds exactly one violation, and that it is this one.
#[track_caller]
fn sees(what: &str, lines: &[&str], faults: &[(u64, u64, Fault)]) {
    let verdict = verdict(lines, faults);
    assert!(
        verdict.len() == 1 && verdict[0].starts_with(what),
        "{what}: {verdict:#?}"
    );
}

#[track_caller]
fn sees_nothing(lines: &[&str], faults: &[(u64, u64, Fault)]) {
    let verdict = verdict(lines, faults);
    assert!(verdict.is_empty(), "{verdict:#?}");
}

const FLUSH: Fault = Fault::Flush { node: 0 };
const STOP: Fault = Fault::StopServer { node: 0 };

#[test]
fn a_correct_round_has_no_violations() {
    sees_nothing(
        &[
            "0 0 0 asked 1 1000 0 0",
            "1 0 0 inside 7",
            "10 1 0 asked 1 1000 500 0",
            "20 2 0 asked 1 1000 0 0",
            "21 2 0 busy",
            "100 0 0 still",
            "101 0 0 out",
            "102 0 0 released",
            "103 1 0 inside 9",
            "120 1 0 out",
            "121 1 0 released",
        ],
        &[],
    );
}

#[test]
fn two_owners_are_seen() {
    let lines = [
        "0 0 0 asked 1 3000 0 0",
        "1 0 0 inside 7",
        "10 1 0 asked 1 3000 0 0",
        "11 1 0 inside 8",
        "15 0 0 still",
    ];
    sees("two owners at once", &lines, &[]);
    sees_nothing(&lines, &[(9, 9, FLUSH)]);
}

#[test]
fn an_older_owner_that_is_told_too_late_is_seen() {
    let lines = [
        "0 0 0 asked 1 30000 0 0",
        "1 0 0 inside 7",
        "10 1 0 asked 1 30000 0 0",
        "11 1 0 inside 8",
        "12000 0 0 still",
    ];
    let lost_at_the_start = [(0, 0, Fault::DeleteLock { node: 1, key: 1 })];
    sees(
        "two owners, and the older one is told too late",
        &lines,
        &lost_at_the_start,
    );
}

#[test]
fn a_token_that_does_not_rise_is_seen() {
    let lines = [
        "0 0 0 asked 1 1000 0 0",
        "1 0 0 inside 8",
        "2 0 0 out",
        "3 0 0 released",
        "10 1 0 asked 1 1000 0 0",
        "11 1 0 inside 8",
    ];
    sees("a token does not rise", &lines, &[]);
    let back = (0, 5, Fault::ClockBack { node: 0, by: 100 });
    sees("a token does not rise", &lines, &[back]);
    sees_nothing(&lines, &[back, (0, 5, Fault::Full { node: 0 })]);
    sees_nothing(&lines, &[back, (0, 5, Fault::NoReplicas { node: 0 })]);
    // The release was confirmed before the server refused any.
    let later = (5_000, 5_005, Fault::NoReplicas { node: 0 });
    sees("a token does not rise", &lines, &[back, later]);
}

#[test]
fn a_grant_that_is_heard_of_after_a_flush_may_have_a_lower_token() {
    let flush = [(4, 5, Fault::Flush { node: 0 })];
    let lines = |asked| {
        [
            "6 1 0 asked 1 1000 0 0",
            "8 1 0 inside 9",
            asked,
            "10 0 0 inside 7",
            "11 1 0 out",
            "12 1 0 released",
            "13 0 0 out",
            "14 0 0 released",
        ]
    };
    sees_nothing(&lines("0 0 0 asked 1 1000 900 0"), &flush);
    let wrong = verdict(&lines("7 0 0 asked 1 1000 900 0"), &flush);
    assert!(
        wrong
            .iter()
            .any(|it| it.starts_with("a token does not rise")),
        "{wrong:?}"
    );
}

#[test]
fn a_busy_that_is_no_fact_is_seen() {
    let lines = ["0 0 0 asked 1 1000 900 0", "901 0 0 busy"];
    sees("busy, though the key was free", &lines, &[]);
    let after_another = [
        "0 0 0 asked 1 1000 0 0",
        "1 0 0 inside 8",
        "2 0 0 out",
        "3 0 0 released",
        "100 1 0 asked 1 1000 900 0",
        "1001 1 0 busy",
    ];
    sees("busy, though the key was free", &after_another, &[]);
    // The server may have refused the release, and the lock runs out.
    let [.., released, _, _] = after_another;
    let mut soon = after_another[..3].to_vec();
    soon.extend([released, "600 1 0 asked 1 1000 0 0", "605 1 0 busy"]);
    sees("busy, though the key was free", &soon, &[]);
    sees_nothing(&soon, &[(0, 5, Fault::NoReplicas { node: 0 })]);
}

#[test]
fn a_refusal_and_a_loss_without_a_cause_are_seen() {
    let refused = [
        "0 0 0 asked 1 1000 0 0",
        "500 0 0 refused Unavailable no answer",
    ];
    sees("refused without a fault", &refused, &[]);
    sees_nothing(&refused, &[(400, 450, STOP)]);
    sees(
        "refused without a fault",
        &refused,
        &[(400, 450, Fault::StopSentinel { index: 0 })],
    );
    // The machine has stopped another worker meanwhile, and maybe the server.
    let stalled = [refused[0], "100 1 0 hiccup 350", refused[1]];
    sees_nothing(&stalled, &[]);
    sees(
        "refused without a fault",
        &stalled,
        &[(90, 460, Fault::StopWorker { worker: 1 })],
    );
    let lost = [
        "0 0 0 asked 1 1000 0 0",
        "1 0 0 inside 8",
        "900 0 0 lost",
        "901 0 0 out",
    ];
    sees("lost, or not released, without a fault", &lost, &[]);
    sees_nothing(&lost, &[(400, 450, STOP)]);
}

#[test]
fn a_waiter_beside_a_free_key_is_seen() {
    let lines = [
        "0 0 0 asked 1 30000 0 0",
        "1 0 0 inside 8",
        "10 1 0 asked 1 1000 for_ever 0",
        "500 0 0 still",
        "501 0 0 out",
        "502 0 0 released",
        "5000 1 0 inside 9",
    ];
    sees("waits beside a free key", &lines, &[]);
    sees_nothing(&lines, &[(2_500, 3_000, STOP)]);
}

#[test]
fn a_late_answer_is_seen() {
    let lines = ["0 0 0 asked 1 1000 0 0", "9000 0 0 inside 9"];
    sees("answered too late", &lines, &[]);
}
