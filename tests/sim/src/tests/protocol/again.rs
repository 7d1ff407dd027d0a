//! A script that comes again behind a move of its slot, to a node whose clock shows another time.

use lock_core::protocol_by_words::Value;

use super::both::value;
use super::kit;
use crate::server::Server;

const LIFETIME: i64 = 60_000;
const MICRO: i64 = 1_000;

fn ask(server: &mut Server, micros: i64, words: &[&str]) -> Value {
    let mut out = Vec::new();
    server.run(0, micros, &kit::words(words), &mut out);
    value(&mut out.as_slice())
}

#[test]
fn a_record_keeps_its_lifetime_on_a_node_whose_clock_is_ahead_or_behind() {
    let script = &kit::scripts()["REMEMBER"];
    let lock = kit::lock("a");
    // The keys of a lock whose slot moves are asked for without their mark and their queue.
    let stored = [
        "EVAL", script, "1", &lock, "0a/01", "7", "", "2000", "60000", "paid", "2000",
    ];
    for ahead in [-2 * LIFETIME, 2 * LIFETIME] {
        let (mut from, mut to) = (Server::new("from".into()), Server::new("to".into()));
        let (now, there) = (10 * LIFETIME * MICRO, (10 * LIFETIME + ahead) * MICRO);
        ask(&mut from, now, &["SET", &lock, "0a/01", "PX", "2000"]);
        assert_eq!(ask(&mut from, now, &stored), Value::Int(1));
        let (data, left) = from.give_away(lock.as_bytes(), now).expect("the record");
        to.take_in(lock.as_bytes(), data, left, there);
        assert_eq!(ask(&mut to, there, &stored), Value::Int(1));
        assert_eq!(ask(&mut to, there, &["PTTL", &lock]), Value::Int(LIFETIME));
    }
}
