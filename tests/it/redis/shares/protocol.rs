//! Tests the script of shares by itself, where a simpler script would be wrong.

use std::time::Duration;

use lock_tests::{RedisServer, needs, wait};

use super::{
    ACQUIRE, EXTEND, LOCK, MARK, QUEUE, READER, RELEASE, SHARE, SHARE_AMONG_DEAD, SHARES, SWAP,
    fence, inside, is_granted, is_queued, run, share, share_with, token,
};

const PLAIN: &str = "0123456789abcdef/00000000000000000000000000000001";

fn waiting(server: &RedisServer) -> usize {
    let count = server.cli(&["ZCARD", QUEUE]);
    count.parse().expect("a number")
}

fn extend(server: &RedisServer, token: &str, ttl: &str) -> String {
    run(server, &EXTEND, &[LOCK, SHARES], &[token, ttl])
}

fn lasts(server: &RedisServer) -> Duration {
    server.time_to_live(LOCK).expect("the key has an end")
}

#[tokio::test]
async fn the_key_lasts_as_long_as_its_latest_share() {
    needs!(redis);
    let server = RedisServer::start();
    let [first, second, third] = [1, 2, 3].map(|number| token(number, READER));
    assert!(is_granted(&share(&server, "ask", &first, "60000")));
    for shorter in [&second, &third] {
        assert!(is_granted(&share(&server, "ask", shorter, "1000")));
        assert!(lasts(&server) > Duration::from_secs(50), "it joins");
    }
    // A renewal of a share lengthens the key too.
    assert_eq!(extend(&server, &second, "600000"), "1");
    assert!(lasts(&server) > Duration::from_secs(500));
    // When the latest share leaves, the key ends with the other one.
    assert_eq!(share(&server, "free", &second, "600000"), "1");
    let left = lasts(&server);
    assert!(
        left > Duration::from_secs(50) && left < Duration::from_secs(61),
        "{left:?}"
    );
    let set = server.time_to_live(SHARES).expect("the set has an end");
    assert!(set < left + Duration::from_secs(2), "{set:?}");
}

#[tokio::test]
async fn the_end_of_one_share_leaves_the_others() {
    needs!(redis);
    let server = RedisServer::start();
    let [first, second, third] = [1, 2, 3].map(|number| token(number, READER));
    assert!(is_granted(&share(&server, "ask", &first, "60000")));
    assert_eq!(
        server.get(LOCK).as_deref(),
        Some(&*first),
        "a lone share is the lock"
    );
    assert!(is_granted(&share(&server, "ask", &second, "60000")));
    assert_eq!(inside(&server), [first.clone(), second.clone()]);
    assert_eq!(share(&server, "free", &first, "60000"), "1");
    assert_eq!(server.get(LOCK).as_deref(), Some("shared/lockkit"));
    assert!(is_granted(&share(&server, "ask", &third, "60000")));
    // A late copy of the release ends nothing.
    assert_eq!(share(&server, "free", &first, "60000"), "2");
    assert_eq!(inside(&server), [second.clone(), third.clone()]);
    // A late copy of the question grants again, and is one share.
    assert!(is_granted(&share(&server, "ask", &second, "1000")));
    assert_eq!(inside(&server).len(), 2);
    assert!(
        lasts(&server) > Duration::from_secs(50),
        "it only lengthens"
    );
    for token in [&second, &third] {
        assert_eq!(share(&server, "free", token, "60000"), "1");
    }
    assert_eq!(server.keys(), Vec::<String>::new());
}

#[tokio::test]
async fn a_dead_waiter_that_is_let_in_leaves_the_living_shares() {
    needs!(redis);
    let server = RedisServer::start();
    let [first, second, dead] = [1, 2, 3].map(|number| token(number, READER));
    for token in [&first, &second] {
        assert!(is_granted(&share(&server, "ask", token, "60000")));
    }
    server.cli(&["ZADD", QUEUE, "1", &format!("{dead} 2000")]);
    let freed = share_with(&server, &SHARE_AMONG_DEAD, "free", &first, "60000", "");
    assert_eq!(freed, "1", "the lock was handed to no living waiter");
    assert_eq!(inside(&server), [second]);
    assert_eq!(waiting(&server), 0);
}

#[tokio::test]
async fn the_limit_of_the_first_waiter_counts_and_not_that_of_the_owner_who_leaves() {
    needs!(redis);
    let server = RedisServer::start();
    let owners = [1, 2, 3].map(|number| token(number, 8));
    for owner in &owners {
        assert!(is_granted(&share(&server, "ask", owner, "60000")));
    }
    let waiter = token(4, 2);
    assert!(!is_granted(&share(&server, "wait", &waiter, "60000")));
    assert_eq!(share(&server, "free", &owners[0], "60000"), "1");
    assert_eq!(waiting(&server), 1, "two are inside, and its limit is two");
    assert_eq!(
        share(&server, "free", &owners[1], "60000"),
        "4",
        "handed on"
    );
    assert_eq!(waiting(&server), 0);
    assert_eq!(inside(&server).len(), 2);
}

#[tokio::test]
async fn a_newcomer_does_not_pass_a_waiting_lock() {
    needs!(redis);
    let server = RedisServer::start();
    let [first, second] = [1, 2].map(|number| token(number, READER));
    assert!(is_granted(&share(&server, "ask", &first, "60000")));
    server.cli(&["ZADD", QUEUE, "1", &format!("{PLAIN} 2000")]);
    let refused = share(&server, "ask", &second, "60000");
    assert!(refused.starts_with("0\n"), "{refused}");
    // The lock gets the key from the last share, and the share behind it follows when that has ended.
    assert!(
        is_queued(&share(&server, "wait", &second, "60000")),
        "it is queued"
    );
    assert_eq!(share(&server, "free", &first, "60000"), "4");
    assert_eq!(server.get(LOCK).as_deref(), Some(PLAIN));
    assert_eq!(waiting(&server), 1);
    let ended = share(&server, "free", PLAIN, "60000");
    assert_eq!((ended.as_str(), waiting(&server)), ("4", 0));
    assert_eq!(server.get(LOCK).as_deref(), Some(&*second));
}

#[tokio::test]
async fn a_dead_lock_at_the_head_of_the_queue_keeps_no_share_out() {
    needs!(redis);
    let server = RedisServer::start();
    let [first, second] = [1, 2].map(|number| token(number, READER));
    assert!(is_granted(&share(&server, "ask", &first, "60000")));
    server.cli(&["ZADD", QUEUE, "1", &format!("{PLAIN} 2000")]);
    let asked = share_with(&server, &SHARE_AMONG_DEAD, "ask", &second, "60000", "");
    assert!(is_granted(&asked), "{asked}");
    assert_eq!(waiting(&server), 0);
}

/// Puts a waiter at the head that was asked so many ms ago whether it still waits.
fn head_was_asked(server: &RedisServer, entry: &str, before: u64) {
    let time = server.cli(&["TIME"]);
    let seconds: u64 = time
        .lines()
        .next()
        .expect("seconds")
        .parse()
        .expect("a number");
    let score = format!("-{}", 2 * (seconds * 1_000 - before));
    server.cli(&["ZADD", QUEUE, &score, entry]);
}

/// Where receivers are not counted, as in a cluster, or where the process is stopped.
#[tokio::test]
async fn a_silent_waiter_at_the_head_of_the_queue_leaves_after_its_grant_with_its_process() {
    needs!(redis);
    let server = RedisServer::start();
    let [first, second, third] = [1, 2, 3].map(|number| token(number, READER));
    let [first, second, third] = [first, second, third].map(|it| it.replacen("0123", "cafe", 1));
    assert!(is_granted(&share(&server, "ask", &first, "60000")));
    let entry = format!("{PLAIN} 2000");
    server.cli(&["ZADD", QUEUE, "1", &entry]);
    // Other waiters of its process, and of a manager of another address.
    let behind = format!("{} 2000", token(4, READER));
    server.cli(&["ZADD", QUEUE, "2", &behind]);
    let score = || {
        server
            .cli(&["ZSCORE", QUEUE, &entry])
            .parse::<f64>()
            .expect("a number")
    };
    // It is asked, and the caller asks again when it must have answered.
    let refused = share(&server, "wait", &second, "60000");
    assert!(is_queued(&refused) && score() < 0.0, "{refused}");
    let again: u64 = refused
        .lines()
        .nth(2)
        .expect("ms")
        .parse()
        .expect("a number");
    assert!((2_000..3_000).contains(&again), "{again}");
    // It is asked once.
    let asked = score();
    assert!(!is_granted(&share(&server, "ask", &third, "60000")));
    assert!((score() - asked).abs() < 0.5);
    // A question of its own is its answer.
    let own = run(
        &server,
        &ACQUIRE,
        &[LOCK, MARK, QUEUE],
        &[PLAIN, "60000", "2000", "1", "", "lockkit:!m:", ""],
    );
    assert!(
        own.starts_with("0\n") && (asked - 1.0 - score()).abs() < 0.5,
        "{own}"
    );
    // After an answer it is asked again when its grant is over, and does not leave.
    server.cli(&["ZREM", QUEUE, &entry]);
    head_was_asked(&server, &entry, 9_000);
    server.cli(&["ZINCRBY", QUEUE, "-1", &entry]);
    assert!(is_queued(&share(&server, "wait", &second, "60000")));
    assert_eq!(waiting(&server), 3);
    // Without an answer it leaves, and the others of its process do.
    server.cli(&["ZREM", QUEUE, &entry]);
    head_was_asked(&server, &entry, 9_000);
    assert!(is_granted(&share(&server, "wait", &second, "60000")));
    assert_eq!(
        (waiting(&server), inside(&server)),
        (0, vec![first, second])
    );
}

#[tokio::test]
async fn a_waiter_that_is_let_in_and_may_be_dead_does_not_delay_the_next_ones_for_longer_than_its_grant()
 {
    needs!(redis);
    let server = RedisServer::start();
    let [first, dead, next] = [1, 2, 3].map(|number| token(number, 1));
    let next = next.replacen("0123", "cafe", 1);
    assert!(is_granted(&share(&server, "ask", &first, "60000")));
    for (place, waiter) in ["1", "2"].iter().zip([&dead, &next]) {
        server.cli(&["ZADD", QUEUE, place, &format!("{waiter} 2000")]);
    }
    let client = lock_core::redis1::Client::open(server.url()).expect("an address");
    let mut connection = client.get_connection().expect("a connection");
    let patience = Some(wait::PATIENCE);
    connection.set_read_timeout(patience).expect("a timeout");
    let mut pushes = connection.as_pubsub();
    let channel = "lockkit:!m:cafe456789abcdef";
    pushes.subscribe(channel).expect("subscribed");
    assert_eq!(share(&server, "free", &first, "60000"), "4");
    assert_eq!(server.get(LOCK).as_deref(), Some(&*dead));
    let told: String = pushes
        .get_message()
        .and_then(|push| push.get_payload())
        .expect("a push");
    // The first of the next two, which asks when the grant is over.
    assert_eq!(told, format!("n {next} 2000 2000 {LOCK}"));
}

#[tokio::test]
async fn a_set_that_is_left_of_a_deleted_key_revives_no_share() {
    needs!(redis);
    let server = RedisServer::start();
    let tokens = [1, 2, 3, 4].map(|number| token(number, READER));
    let [first, second, third, fourth] = &tokens;
    for token in [first, second] {
        assert!(is_granted(&share(&server, "ask", token, "60000")));
    }
    server.cli(&["DEL", LOCK]);
    assert_eq!(extend(&server, first, "60000"), "0");
    for token in [third, fourth] {
        assert_eq!(
            extend(&server, first, "60000"),
            if token == third { "0" } else { "2" }
        );
        assert!(is_granted(&share(&server, "ask", token, "60000")));
    }
    assert_eq!(inside(&server), [third.clone(), fourth.clone()]);
    assert_eq!(extend(&server, second, "60000"), "2");
}

#[tokio::test]
async fn a_share_whose_end_is_over_is_not_renewed_and_not_counted() {
    needs!(redis);
    let server = RedisServer::start();
    let tokens = [1, 2, 3].map(|number| token(number, 2));
    let [first, second, third] = &tokens;
    for token in [first, second] {
        assert!(is_granted(&share(&server, "ask", token, "60000")));
    }
    assert!(!is_granted(&share(&server, "ask", third, "60000")));
    server.cli(&["ZADD", SHARES, "XX", "1", first]);
    assert_eq!(
        extend(&server, first, "60000"),
        "2",
        "also before it is removed"
    );
    assert!(is_granted(&share(&server, "ask", third, "60000")));
    assert_eq!(inside(&server), [second.clone(), third.clone()]);
    assert_eq!(extend(&server, first, "60000"), "2");
}

#[tokio::test]
async fn a_waiter_whose_late_first_attempt_has_found_the_key_free_keeps_its_end_and_counts_once() {
    needs!(redis);
    let server = RedisServer::start();
    let [waiter, second, third] = [1, 2, 3].map(|number| token(number, 2));
    server.cli(&["SET", LOCK, "another", "PX", "60000"]);
    assert!(!is_granted(&share(&server, "wait", &waiter, "60000")));
    server.cli(&["SET", LOCK, &waiter, "PX", "60000"]);
    assert!(is_granted(&share(&server, "ask", &second, "60000")));
    assert_eq!(inside(&server), [waiter.clone(), second.clone()]);
    let end = |token: &str| -> u64 {
        let end = server.cli(&["ZSCORE", SHARES, token]);
        end.parse().expect("milliseconds")
    };
    let (first, second) = (end(&waiter), end(&second));
    assert!(
        first.abs_diff(second) < 20_000,
        "no grant: {first} {second}"
    );
    assert!(!is_granted(&share(&server, "ask", &third, "60000")));
}

#[tokio::test]
async fn the_release_of_a_share_raises_the_mark_beside_others_too() {
    needs!(redis);
    let server = RedisServer::start();
    let [first, second] = [1, 2].map(|number| token(number, READER));
    for token in [&first, &second] {
        assert!(is_granted(&share(&server, "ask", token, "60000")));
    }
    // A token that the clock reaches in the year 2096.
    let used = "4000000000000000";
    assert_eq!(
        share_with(&server, &SHARE, "free", &first, "60000", used),
        "1"
    );
    assert_eq!(server.get(MARK).as_deref(), Some(used));
    let granted = share(&server, "ask", &first, "60000");
    assert_eq!(fence(&granted), Some(4_000_000_000_000_001));
}

#[tokio::test]
async fn the_release_of_a_plain_lock_serves_a_waiting_share() {
    needs!(redis);
    let server = RedisServer::start();
    let waiter = token(1, 5);
    server.cli(&["SET", LOCK, PLAIN, "PX", "60000"]);
    assert!(
        is_queued(&share(&server, "wait", &waiter, "60000")),
        "it is queued"
    );
    // The script of a version that knows no shares. Its waiter is dead, and it tries to serve it.
    let released = run(
        &server,
        &RELEASE,
        &[LOCK, MARK, QUEUE],
        &[PLAIN, "", "lockkit:!m:", "2000"],
    );
    assert_eq!((released.as_str(), waiting(&server)), ("1", 0));
    assert_eq!(server.get(LOCK), None);
}

#[tokio::test]
async fn readers_have_higher_tokens_than_the_lease_before_on_a_clock_that_went_back() {
    needs!(redis);
    // The share of a lease whose token is ahead of the clock, or of an owner that is downgraded.
    for is_downgraded in [false, true] {
        let server = RedisServer::start();
        let [first, second] = [1, 2].map(|number| token(number, READER));
        let used = "4000000000000000";
        if is_downgraded {
            server.cli(&["SET", LOCK, PLAIN, "PX", "60000"]);
            let swapped = [PLAIN, first.as_str(), "60000", used];
            assert_eq!(run(&server, &SWAP, &[LOCK, MARK], &swapped), "1");
        } else {
            server.cli(&["SET", LOCK, &first, "PX", "60000"]);
            let granted = share_with(&server, &SHARE, "ask", &first, "60000", used);
            assert!(is_granted(&granted));
        }
        let granted = share(&server, "ask", &second, "60000");
        assert!(fence(&granted) > Some(4_000_000_000_000_000), "{granted}");
    }
}
