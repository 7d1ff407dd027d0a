//! Tests each operation alone. `tests/sim` compares all of them with the scripts.

use super::scripts::{Server, Value};

pub(super) const NOW: u64 = 1_700_000_000_000_000;
pub(super) const ONE: &str = "0000000000001000/00000000000000000000000000000001";
pub(super) const TWO: &str = "0000000000002000/00000000000000000000000000000002";
pub(super) const THREE: &str = "0000000000003000/00000000000000000000000000000003";

/// A server with one lock, whose clock a test moves.
pub(super) struct Lock {
    pub(super) server: Server,
    pub(super) micros: u64,
}

impl Lock {
    /// The processes of the tokens listen.
    pub(super) fn new() -> Self {
        let mut server = Server::default();
        for token in [ONE, TWO, THREE] {
            server.listeners.insert(token[..16].to_owned());
        }
        Self {
            server,
            micros: NOW,
        }
    }

    pub(super) fn later(&mut self, millis: u64) {
        self.micros += 1000 * millis;
    }

    /// Runs a script. Returns its reply, and the messages without the name of the lock.
    pub(super) fn run(&mut self, script: &str, arguments: &[&str]) -> (Value, Vec<String>) {
        let arguments: Vec<String> = arguments.iter().map(|&word| word.to_owned()).collect();
        let keys = ["k".to_owned()];
        let (reply, pushes) = self.server.run(script, self.micros, &keys, &arguments);
        let pushes = pushes
            .into_iter()
            .map(|(_, message)| message.trim_end_matches(" k").to_owned());
        (reply, pushes.collect())
    }

    /// Asks for the lock, and waits for it. Returns whether it was granted.
    pub(super) fn asks(&mut self, token: &str) -> bool {
        let words = [token, "10000", "2000", "1", "", "m:", ""];
        let (Value::List(reply), _) = self.run("ACQUIRE", &words) else {
            panic!("no list")
        };
        reply[0] == Value::Int(1)
    }

    /// Asks for a share, and waits for it. Returns whether it was granted.
    pub(super) fn shares(&mut self, token: &str) -> bool {
        let words = ["wait", token, "10000", "2000", "m:", ""];
        let (Value::List(reply), _) = self.run("SHARE", &words) else {
            panic!("no list")
        };
        reply[0] == Value::Int(1)
    }

    pub(super) fn value(&self) -> Option<String> {
        Some(self.server.value("k")?.0)
    }
}

#[test]
fn a_released_key_goes_to_the_first_waiter_that_listens() {
    let mut lock = Lock::new();
    assert!(lock.asks(ONE) && !lock.asks(TWO) && !lock.asks(THREE));
    lock.server.listeners.remove(&TWO[..16]);
    let (reply, pushes) = lock.run("RELEASE", &[ONE, "", "m:", "2000"]);
    assert_eq!(reply, Value::Int(4));
    assert_eq!(
        pushes,
        [format!("g {THREE} 1700000000 0 2000 1700000000000000")]
    );
    assert_eq!(lock.value().as_deref(), Some(THREE));
    assert_eq!(lock.server.queue("k"), None);
}

#[test]
fn a_key_exists_in_its_whole_last_millisecond() {
    let mut lock = Lock::new();
    assert!(lock.asks(ONE));
    lock.later(10_000);
    assert!(!lock.asks(TWO));
    lock.later(1);
    assert!(lock.asks(TWO));
}

#[test]
fn a_fencing_token_is_above_that_of_the_owner_before_also_when_the_clock_goes_back() {
    let mut lock = Lock::new();
    assert!(lock.asks(ONE) && !lock.asks(TWO));
    lock.micros -= 5_000_000;
    let used = (NOW + 7).to_string();
    let (_, pushes) = lock.run("RELEASE", &[ONE, &used, "m:", "2000"]);
    assert!(pushes[0].ends_with(&format!(" {}", NOW + 8)), "{pushes:?}");
    assert_eq!(lock.server.mark(), Some(NOW + 8 + 1000));
}

#[test]
fn a_cooldown_and_a_record_close_the_key_for_all_but_forget() {
    let cooldown = ["COOL", "5000", "", ""];
    let record = ["REMEMBER", "5000", "bytes", "10000"];
    for [script, rest @ ..] in [cooldown, record] {
        let mut lock = Lock::new();
        assert!(lock.asks(ONE) && !lock.asks(TWO));
        let mut words = vec![ONE, "", "m:", "2000"];
        words.extend(rest.into_iter().filter(|word| !word.is_empty()));
        let (reply, pushes) = lock.run(script, &words);
        assert_eq!(reply, Value::Int(1));
        let after = if script == "COOL" { 5000 } else { 0 };
        assert_eq!(pushes, [format!("n {TWO} 2000 {after}")]);
        assert!(!lock.asks(THREE));
        let released = lock.run("RELEASE", &[ONE, "", "m:", "2000"]);
        assert_eq!(released.0, Value::Int(2));
        let (forgotten, _) = lock.run("FORGET", &[]);
        assert_eq!(forgotten, Value::Text(ONE.to_owned()));
        assert!(lock.asks(THREE));
    }
}

#[test]
fn a_full_server_takes_no_key_and_no_place_and_still_releases() {
    let mut lock = Lock::new();
    assert!(lock.asks(ONE));
    lock.server.is_full = true;
    assert!(!lock.asks(TWO));
    assert_eq!(lock.server.queue("k"), None);
    let swapped = lock.run("SWAP", &[ONE, TWO, "10000"]);
    assert_eq!(swapped.0, Value::Error("OOM".to_owned()));
    let (released, _) = lock.run("RELEASE", &[ONE, "", "m:", "2000"]);
    assert_eq!(released, Value::Int(1));
    assert_eq!(lock.value(), None);
}

#[test]
fn readers_enter_together_and_a_lock_waits_for_all_of_them() {
    let mut lock = Lock::new();
    let [first, second] = [ONE, TWO].map(|token| format!("{token}ffffffff"));
    assert!(lock.shares(&first) && lock.shares(&second));
    assert!(!lock.asks(THREE));
    // A reader that comes behind the lock waits for it.
    let third = format!("{}1ffffffff", &THREE[..THREE.len() - 1]);
    assert!(!lock.shares(&third));
    lock.run("SHARE", &["free", &first, "10000", "2000", "m:", ""]);
    let (reply, pushes) = lock.run("SHARE", &["free", &second, "10000", "2000", "m:", ""]);
    assert_eq!(reply, Value::Int(4));
    assert!(pushes[0].starts_with(&format!("g {THREE} ")), "{pushes:?}");
    assert_eq!(lock.value().as_deref(), Some(THREE));
}

#[test]
fn a_waiter_that_keeps_shares_out_is_asked_and_loses_its_turn_if_it_is_silent() {
    let mut lock = Lock::new();
    let [first, second] = [ONE, TWO].map(|token| format!("{token}ffffffff"));
    assert!(lock.shares(&first) && !lock.asks(THREE));
    assert!(!lock.shares(&second));
    lock.later(1_001);
    let wait = ["wait", &second, "10000", "2000", "m:", ""];
    let (_, pushes) = lock.run("SHARE", &wait);
    assert_eq!(pushes, [format!("n {THREE} 2000 0")]);
    lock.later(1_999);
    assert!(!lock.shares(&second));
    lock.later(1);
    assert!(lock.shares(&second));
    assert_eq!(lock.server.shares("k").map(|it| it.0.len()), Some(2));
}

#[test]
fn several_keys_are_taken_together_or_not_at_all() {
    let mut lock = Lock::new();
    assert!(lock.asks(ONE));
    let keys = ["mark", "j", "k"].map(str::to_owned);
    let mut all = |last: &str, micros| {
        let words = ["10000", TWO, last].map(str::to_owned);
        lock.server.run("ALL", micros, &keys, &words).0
    };
    let Value::List(refused) = all(THREE, NOW) else {
        panic!("no refusal")
    };
    assert_eq!(refused[..2], [Value::Int(1), Value::Text(ONE.to_owned())]);
    let later = NOW + 10_001_000;
    assert_eq!(all(THREE, later), Value::Text(later.to_string()));
    assert_eq!(lock.server.value("j").map(|it| it.0).as_deref(), Some(TWO));
    assert_eq!(lock.value().as_deref(), Some(THREE));
}

#[test]
fn an_order_leaves_a_process_that_listens_a_time_to_stop() {
    let order = [ONE, "", "m:", "1000", "", ""];
    let mut lock = Lock::new();
    assert!(lock.asks(ONE) && !lock.asks(TWO));
    let (reply, pushes) = lock.run("FORCE", &order);
    assert_eq!(reply, Value::Int(3));
    assert_eq!(pushes, [format!("l {ONE}"), format!("n {TWO} 2000 1000")]);
    assert!(!lock.asks(THREE));

    let mut lock = Lock::new();
    assert!(lock.asks(ONE) && !lock.asks(TWO));
    lock.server.listeners.remove(&ONE[..16]);
    let (reply, pushes) = lock.run("FORCE", &order);
    assert_eq!(reply, Value::Int(1));
    assert!(
        pushes[0].ends_with(&format!(" {}", NOW + 1001)),
        "{pushes:?}"
    );
    assert_eq!(lock.value().as_deref(), Some(TWO));
    // The holder that was seen is gone.
    assert_eq!(lock.run("FORCE", &order).0, Value::Int(2));
}
