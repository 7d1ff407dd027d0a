//! Tests when keys, shares, queues and waits end.

use super::scripts::Value;
use super::tests::{Lock, NOW, ONE, THREE, TWO};

/// The time of a new server in milliseconds.
const START: u64 = NOW / 1000;
const FOUR: &str = "0000000000004000/00000000000000000000000000000004";
const DAY: u64 = 24 * 60 * 60 * 1000;

fn reader(token: &str) -> String {
    format!("{token}ffffffff")
}

fn permit(token: &str) -> String {
    format!("{token}00000002")
}

impl Lock {
    /// The end of the key, in milliseconds since the start.
    fn ends(&self) -> u64 {
        self.server.value("k").expect("taken").1 - START
    }

    /// The shares inside with their ends in milliseconds since the start.
    fn inside(&self) -> Vec<(String, u64)> {
        let (shares, _) = self.server.shares("k").expect("several");
        let shares = shares.into_iter();
        shares
            .map(|(name, ends)| (name, ends as u64 - START))
            .collect()
    }

    fn extends(&mut self, script: &str, token: &str, ttl: u64) -> Value {
        let (Value::List(mut each), _) = self.run(script, &[token, &ttl.to_string()]) else {
            panic!("no list")
        };
        each.remove(0)
    }

    fn share(&mut self, verb: &str, token: &str) -> (Value, Vec<String>) {
        self.run("SHARE", &[verb, token, "10000", "2000", "m:", ""])
    }

    /// Asks for a share, and waits. Returns the time after which it asks again, and whether the key is full.
    fn refused(&mut self, token: &str) -> (i64, bool) {
        let (Value::List(reply), _) = self.share("wait", token) else {
            panic!("no list")
        };
        let Value::Int(left) = reply[2] else {
            panic!("not refused: {reply:?}")
        };
        (left, reply[6] == Value::Int(1))
    }
}

#[test]
fn a_renewal_lengthens_a_lease_and_shortens_one_only_that_ends_after_more_than_a_day() {
    let mut lock = Lock::new();
    assert!(lock.asks(ONE));
    for (ttl, ends) in [(5_000, 10_000), (10_001, 10_001)] {
        assert_eq!(lock.extends("EXTEND", ONE, ttl), Value::Int(1));
        assert_eq!(lock.ends(), ends);
    }
    assert_eq!(lock.extends("EXTEND", TWO, 20_000), Value::Int(2));
    // The clock is set back.
    lock.micros -= (DAY - 10_001) * 1000;
    lock.extends("EXTEND", ONE, 5_000);
    assert_eq!(lock.ends(), 10_001);
    lock.micros -= 1000;
    lock.extends("EXTEND", ONE, 5_000);
    assert_eq!(
        lock.server.value("k").expect("held").1,
        lock.micros / 1000 + 5_000
    );
}

#[test]
fn a_share_is_lengthened_until_its_own_end_and_the_key_lasts_as_long_as_the_latest_share() {
    let mut lock = Lock::new();
    let [first, second] = [ONE, TWO].map(reader);
    assert!(lock.shares(&first));
    assert_eq!(lock.ends(), 10_000);
    assert!(lock.shares(&second));
    assert_eq!(
        lock.inside(),
        [(second.clone(), 10_000), (first.clone(), 10_001)]
    );
    assert_eq!(lock.extends("EXTEND_SHARES", &first, 20_000), Value::Int(1));
    lock.later(10_000);
    assert_eq!(lock.extends("EXTEND_SHARES", &second, 1), Value::Int(1));
    assert_eq!(lock.ends(), 20_000);
    lock.later(2);
    assert_eq!(lock.extends("EXTEND_SHARES", &second, 5_000), Value::Int(2));
    assert_eq!(lock.inside(), [(second, 10_001), (first, 20_000)]);
}

#[test]
fn a_replaced_token_has_an_end_of_its_own() {
    let mut lock = Lock::new();
    assert!(lock.asks(ONE));
    assert_eq!(lock.run("SWAP", &[THREE, TWO, "5000"]).0, Value::Int(2));
    assert_eq!(lock.run("SWAP", &[ONE, TWO, "5000"]).0, Value::Int(1));
    assert_eq!((lock.value().as_deref(), lock.ends()), (Some(TWO), 5_000));
}

#[test]
fn several_keys_have_the_same_end() {
    let mut lock = Lock::new();
    let keys = ["mark", "j", "k"].map(str::to_owned);
    let words = ["7000", ONE, TWO].map(str::to_owned);
    lock.server.run("ALL", NOW, &keys, &words);
    let end = |key| lock.server.value(key).expect("taken").1 - START;
    assert_eq!([end("j"), end("k")], [7_000, 7_000]);
}

#[test]
fn waiters_keep_their_order_when_the_clock_is_set_back_and_the_queue_outlives_the_key() {
    let mut lock = Lock::new();
    assert!(lock.asks(ONE) && !lock.asks(TWO));
    let queue = lock.server.queue("k").expect("a waiter");
    assert_eq!(queue.1 - START, 70_000);
    lock.micros -= 5_000_000;
    assert!(!lock.asks(THREE));
    let (entries, _) = lock.server.queue("k").expect("waiters");
    let expected = [(TWO, NOW), (THREE, NOW + 1)];
    let expected = expected.map(|(token, place)| (format!("{token} 2000"), place as f64));
    assert_eq!(entries, expected);
    lock.server.settle((START + 70_000) * 1000);
    assert!(lock.server.queue("k").is_some());
    lock.server.settle((START + 70_001) * 1000);
    assert_eq!(lock.server.queue("k"), None);
}

#[test]
fn the_first_two_waiters_are_told_when_to_ask_one_after_the_other() {
    let mut lock = Lock::new();
    lock.server.listeners.insert(FOUR[..16].to_owned());
    assert!(lock.asks(ONE) && !lock.asks(TWO) && !lock.asks(THREE) && !lock.asks(FOUR));
    let (_, pushes) = lock.run("COOL", &[ONE, "", "m:", "2000", "5000"]);
    assert_eq!(
        pushes,
        [format!("n {TWO} 2000 5000"), format!("n {THREE} 2000 7000")]
    );
    // The cooldown is of another owner.
    let cooled = lock.run("COOL", &[TWO, "", "m:", "2000", "5000"]);
    assert_eq!(cooled.0, Value::Int(2));
}

#[test]
fn behind_a_waiter_that_may_have_died_the_next_one_asks_when_its_grant_ends() {
    for (waited, told) in [
        (1_000, vec![]),
        (1_001, vec![format!("n {THREE} 2000 2000")]),
    ] {
        let mut lock = Lock::new();
        assert!(lock.asks(ONE) && !lock.asks(TWO) && !lock.asks(THREE));
        lock.later(waited);
        let (_, pushes) = lock.run("RELEASE", &[ONE, "", "m:", "2000"]);
        assert!(pushes[0].starts_with(&format!("g {TWO} ")));
        assert_eq!(pushes[1..], told);
        assert_eq!(lock.ends(), waited + 2_000);
    }
}

#[test]
fn a_share_whose_turn_has_come_gets_the_key_by_its_question() {
    let mut lock = Lock::new();
    let share = reader(TWO);
    assert!(lock.asks(ONE) && !lock.shares(&share));
    lock.later(10_001);
    assert!(lock.shares(&share));
    assert_eq!(lock.ends(), 20_001);
}

#[test]
fn a_share_that_is_inside_asks_again_without_memory_only_where_it_is_alone() {
    let mut lock = Lock::new();
    let [first, second] = [ONE, TWO].map(reader);
    assert!(lock.shares(&first));
    lock.server.is_full = true;
    assert!(lock.shares(&first));
    lock.server.is_full = false;
    assert!(lock.shares(&second) && lock.shares(&first));
    lock.server.is_full = true;
    let (reply, _) = lock.share("wait", &first);
    assert_eq!(reply, Value::Error("OOM".to_owned()));
}

#[test]
fn a_permit_beyond_the_limit_waits_for_the_first_end() {
    let mut lock = Lock::new();
    let [first, second, third] = [ONE, TWO, THREE].map(permit);
    assert!(lock.shares(&first));
    lock.later(1_000);
    assert!(lock.shares(&second));
    assert_eq!(lock.refused(&third), (9_001, true));
    lock.later(9_002);
    assert!(lock.shares(&third));
}

#[test]
fn readers_behind_a_waiter_ask_one_after_the_other() {
    let mut lock = Lock::new();
    assert!(lock.shares(&reader(ONE)) && !lock.asks(THREE));
    for place in 0..17 {
        let share = reader(&format!("{}{:032x}", &TWO[..17], 16 + place));
        let after = if place < 16 {
            1_000 + 100 * place
        } else {
            10_000
        };
        assert_eq!(lock.refused(&share), (after, false));
    }
}

#[test]
fn a_waiter_that_has_answered_is_asked_again_and_a_silent_process_loses_all_its_places() {
    let mut lock = Lock::new();
    let second = reader(TWO);
    let other = format!("{}4", &THREE[..THREE.len() - 1]);
    assert!(lock.shares(&reader(ONE)) && !lock.asks(THREE) && !lock.asks(&other));
    lock.later(1_001);
    let asked = [format!("n {THREE} 2000 0")];
    assert_eq!(lock.share("wait", &second).1, asked);
    lock.later(500);
    assert!(!lock.asks(THREE));
    lock.later(1_499);
    assert_eq!(lock.share("wait", &second).1, [""; 0]);
    lock.later(1);
    assert_eq!(lock.share("wait", &second).1, asked);
    lock.later(2_000);
    assert!(lock.shares(&second));
    assert_eq!(lock.server.queue("k"), None);
}

#[test]
fn a_waiter_is_told_of_an_end_that_comes_more_than_a_second_sooner() {
    for (ttl, told) in [
        (11_001, vec![]),
        (11_002, vec![format!("n {THREE} 2000 10001")]),
    ] {
        let mut lock = Lock::new();
        let [first, second] = [ONE, TWO].map(reader);
        assert!(lock.shares(&first) && lock.shares(&second) && !lock.asks(THREE));
        lock.extends("EXTEND_SHARES", &second, ttl);
        assert_eq!(lock.share("free", &second), (Value::Int(1), told));
        assert_eq!(lock.ends(), 10_001);
    }
}

#[test]
fn an_owner_leaves_its_key_free_for_a_gap_and_its_token_is_noted() {
    let mut lock = Lock::new();
    assert!(lock.asks(ONE) && !lock.asks(TWO));
    let used = (NOW + 3).to_string();
    let gap = |token| [token, used.as_str(), "m:", "2000", "50"];
    assert_eq!(lock.run("VACATE", &gap(THREE)), (Value::Int(2), vec![]));
    assert_eq!(lock.value().as_deref(), Some(ONE));
    let told = vec![format!("n {TWO} 2000 50")];
    assert_eq!(lock.run("VACATE", &gap(ONE)), (Value::Int(1), told));
    assert_eq!((lock.value(), lock.server.mark()), (None, Some(NOW + 3)));
}

#[test]
fn a_fencing_token_is_above_one_that_was_used_at_the_same_time() {
    let mut lock = Lock::new();
    assert!(lock.asks(ONE) && !lock.asks(TWO));
    let (_, pushes) = lock.run("RELEASE", &[ONE, &NOW.to_string(), "m:", "2000"]);
    assert!(pushes[0].ends_with(&format!(" {}", NOW + 1)), "{pushes:?}");
}

#[test]
fn a_cooldown_needs_time_and_no_memory_and_a_record_without_memory_keeps_the_key() {
    let cools = format!("cooling/{ONE}/{}", START + 5_000);
    for (span, left) in [("5000", Some(cools)), ("0", None)] {
        let mut lock = Lock::new();
        assert!(lock.asks(ONE) && !lock.asks(TWO));
        lock.server.is_full = true;
        let (reply, pushes) = lock.run("COOL", &[ONE, "7", "m:", "2000", span]);
        assert_eq!((reply, lock.value()), (Value::Int(1), left));
        assert_eq!(pushes, [format!("n {TWO} 2000 {span}")]);
    }
    let mut lock = Lock::new();
    assert!(lock.asks(ONE));
    lock.later(1_000);
    lock.server.is_full = true;
    let record = [ONE, "", "m:", "2000", "5000", "bytes", "10000"];
    assert_eq!(lock.run("REMEMBER", &record).0, Value::Int(3));
    assert_eq!((lock.value().as_deref(), lock.ends()), (Some(ONE), 11_000));
}

#[test]
fn an_order_frees_one_share_and_its_place_stays_taken_for_the_grace() {
    let mut lock = Lock::new();
    let [first, second, third] = [ONE, TWO, THREE].map(reader);
    assert!(lock.shares(&first) && lock.shares(&second));
    let order = |holder| [holder, "", "m:", "1000", "", ""];
    assert_eq!(
        lock.run("FORCE", &order(&first)),
        (Value::Int(3), vec![format!("l {first}")])
    );
    let freed = format!("cooling/{ONE}/{}", START + 1_000);
    assert_eq!(
        lock.inside(),
        [(freed.clone(), 1_000), (second.clone(), 10_000)]
    );
    // It is not a holder any more, and other readers enter beside the rest.
    assert_eq!(lock.run("FORCE", &order(&first)).0, Value::Int(2));
    assert!(lock.shares(&third));
    lock.later(10_001);
    assert_eq!(lock.run("FORCE", &order(&second)).0, Value::Int(0));
}

#[test]
fn an_order_closes_a_key_for_the_grace() {
    let mut lock = Lock::new();
    assert!(lock.asks(ONE));
    lock.run("FORCE", &[ONE, "", "m:", "1000", "", ""]);
    assert_eq!(lock.ends(), 1_000);
}
