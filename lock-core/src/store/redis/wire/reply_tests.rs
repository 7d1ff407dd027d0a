use super::*;

fn bulk(text: &str) -> Value {
    Value::BulkString(text.as_bytes().to_vec())
}

#[test]
fn an_answer_that_is_not_understood_is_never_a_grant() {
    let strange = [
        Value::Nil,
        Value::Okay,
        Value::Int(1),
        Value::Array(vec![]),
        Value::Array(vec![Value::Int(1)]),
        Value::Array(vec![Value::Int(1), bulk("")]),
        Value::Array(vec![Value::Int(1), bulk("0")]),
        Value::Array(vec![Value::Int(1), bulk("-5")]),
        Value::Array(vec![Value::Int(1), bulk("0x10")]),
        Value::Array(vec![Value::Int(1), bulk("1.7e+15")]),
        Value::Array(vec![Value::Int(1), bulk("9007199254740992")]),
        Value::Array(vec![Value::Int(1), bulk("5"), bulk("6")]),
        Value::Array(vec![Value::Int(2), bulk("5")]),
        Value::Array(vec![bulk("1"), bulk("5")]),
        Value::Array(vec![Value::Int(0), bulk("x"), Value::Int(5), bulk("6")]),
        Value::Array(refused(2).to_vec()),
    ];
    for answer in strange {
        assert!(
            matches!(acquired(&answer, PUSHES), Outcome::Failed(_)),
            "{answer:?}"
        );
    }
}

const PUSHES: Pushes = Pushes {
    arrive: true,
    are_grants: true,
};

const OURS: &str = "0123456789abcdef/0123456789abcdef0123456789abcdef";

/// `stands`: whether the waiter has a place in the queue.
fn refused(stands: i64) -> [Value; 5] {
    let time = bulk("1700000000000025");
    [
        Value::Int(0),
        bulk(OURS),
        Value::Int(5),
        time,
        Value::Int(stands),
    ]
}

#[test]
fn a_waiter_is_told_of_a_release_only_if_it_stands_in_the_queue_and_hears_pushes() {
    for (stands, hears) in [(0, false), (0, true), (1, false), (1, true)] {
        let answer = Value::Array(refused(stands).to_vec());
        let pushes = Pushes {
            arrive: hears,
            ..PUSHES
        };
        let Outcome::Busy(refusal) = acquired(&answer, pushes) else {
            panic!("a refusal");
        };
        assert_eq!(refusal.queued, stands == 1);
        assert_eq!(refusal.pushed, stands == 1 && hears);
        assert!(refusal.server_time.is_some());
    }
    let in_batch = Value::Array(refused(1)[..3].to_vec());
    let Outcome::Busy(refusal) = acquired_in_batch(&in_batch) else {
        panic!("a refusal");
    };
    assert!(!refusal.pushed, "a batch lets no waiter stand in a queue");
}

#[test]
fn a_waiter_learns_the_servers_clock_only_where_a_pushed_grant_counts() {
    let answer = Value::Array(refused(1).to_vec());
    let pushes = Pushes {
        are_grants: false,
        ..PUSHES
    };
    let Outcome::Busy(refusal) = acquired(&answer, pushes) else {
        panic!("a refusal");
    };
    assert!(refusal.pushed && refusal.server_time.is_none());
}

#[test]
fn a_release_that_left_dead_waiters_in_the_queue_says_so() {
    for (answer, released_it, more) in [
        (1, true, false),
        (4, true, false),
        (6, true, true),
        (5, false, true),
        (8, true, false),
        (7, false, false),
    ] {
        let answer = Value::Int(answer);
        assert_eq!(has_more(&answer), more);
        assert_eq!(left_waiters(&answer), matches!(answer, Value::Int(7 | 8)));
        let yes = matches!(released(&answer), Outcome::Released(Ended::Yes));
        assert_eq!(yes, released_it, "{answer:?}");
    }
}

#[test]
fn a_batch_tells_a_grant_by_its_fencing_token_alone() {
    let granted = acquired_in_batch(&Value::Int(1_700_000_000_000_025));
    assert!(matches!(granted, Outcome::Granted(_)));
    let strange = [
        Value::Nil,
        Value::Int(0),
        Value::Int(-7),
        Value::Int(1 << 53),
        bulk("5"),
        Value::Array(vec![Value::Int(1), bulk("5")]),
        Value::Array(vec![Value::Int(3)]),
    ];
    for answer in strange {
        let outcome = acquired_in_batch(&answer);
        assert!(matches!(outcome, Outcome::Failed(_)), "{answer:?}");
    }
}

#[test]
fn a_batch_tells_in_words_that_all_went_as_usual() {
    let usual = as_usual(&bulk("all 1700000000 25"));
    assert_eq!(usual, Some(1_700_000_000_000_025));
    let strange = [
        Value::Int(1_700_000_000_000_025),
        Value::Okay,
        bulk("all"),
        bulk("all 1700000000"),
        bulk("all 1700000000 1000000"),
        bulk("granted 1700000000 25"),
        Value::Array(vec![bulk("all 1700000000 25")]),
    ];
    for answer in strange {
        assert_eq!(as_usual(&answer), None, "{answer:?}");
    }
}

#[test]
fn a_refusal_tells_held_from_cooling_and_ours_from_strangers() {
    let ours = "0123456789abcdef/0123456789abcdef0123456789abcdef";
    let held = refusal(ours.as_bytes(), 1500, true);
    assert_eq!(
        (held.cooling, held.remaining, held.pushed),
        (false, Some(Duration::from_millis(1500)), true)
    );
    let cooling = refusal(format!("cooling/{ours}").as_bytes(), 20, true);
    assert!(cooling.cooling && cooling.pushed);
    let cooling = refusal(format!("cooling/{ours}/1700000000000").as_bytes(), 20, true);
    assert!(cooling.cooling && cooling.pushed);
    for stranger in [
        "some-uuid",
        "cooling/",
        "cooling/x",
        &format!("cooling/{ours}x"),
    ] {
        let refusal = refusal(stranger.as_bytes(), 20, true);
        assert!(!refusal.pushed && !refusal.cooling, "{stranger}");
    }
    let endless = refusal(ours.as_bytes(), -1, true);
    assert_eq!((endless.remaining, endless.pushed), (None, false));
}

#[test]
fn a_first_attempt_reads_the_end_of_a_cooldown_and_gives_a_hint_otherwise() {
    let ours = "0123456789abcdef/0123456789abcdef0123456789abcdef";
    let ttl = Duration::from_secs(30);
    let now = time("1700000000", "500000");
    let left = |value: &str| refusal_at_first(value.as_bytes(), &now, ttl).remaining;
    let cooling = |end: &str| left(&format!("cooling/{ours}{end}"));
    assert_eq!(
        cooling("/1700000002000"),
        Some(Duration::from_millis(1_500))
    );
    assert_eq!(cooling("/1700000000000"), Some(Duration::ZERO), "over");
    assert_eq!(cooling(""), Some(ttl), "by an earlier version");
    assert_eq!((left(ours), left("stranger")), (Some(ttl), Some(ttl)));
    let strange = refusal_at_first(
        format!("cooling/{ours}/1700000002000").as_bytes(),
        &Value::Nil,
        ttl,
    );
    assert_eq!((strange.cooling, strange.remaining), (true, Some(ttl)));
}

#[test]
fn an_unknown_status_of_a_renewal_is_not_a_loss() {
    let Outcome::Extended(answers) = extended(&Value::Array(vec![
        Value::Int(1),
        Value::Int(3),
        Value::Int(0),
    ])) else {
        panic!("a list of answers");
    };
    assert_eq!(
        answers,
        [Extended::Yes, Extended::Unknown, Extended::NotOurs]
    );
}

fn time(seconds: &str, micros: &str) -> Value {
    let part = |text: &str| Value::BulkString(text.as_bytes().to_vec());
    Value::Array(vec![part(seconds), part(micros)])
}

#[test]
fn the_fencing_token_is_the_servers_time_where_that_is_above_the_mark() {
    let now = time("1700000000", "25");
    let fence_of = |mark: Value| time_above(&mark, &now).map(u64::from);
    assert_eq!(fence_of(Value::Nil), Some(1_700_000_000_000_025));
    assert_eq!(
        fence_of(Value::BulkString(b"1700000000000024".to_vec())),
        Some(1_700_000_000_000_025)
    );
    assert_eq!(
        fence_of(Value::BulkString(b"1700000000000025".to_vec())),
        None
    );
    for none in ["soon", "", "00000000000000025", "9999999999999998"] {
        assert_eq!(fence_of(bulk(none)), None, "{none}");
    }
    assert_eq!(time_above(&Value::Nil, &Value::Okay), None);
}

#[test]
fn a_record_is_read_whole_and_a_strange_one_is_a_strangers() {
    let ours = "0123456789abcdef/0123456789abcdef0123456789abcdef";
    let value = |rest: &[u8]| [b"done/", ours.as_bytes(), rest].concat();
    let bytes = [&b"/1700000002000/17/"[..], b"a/b\0\xff/"].concat();
    let now = Value::Array(vec![bulk("1700000000"), bulk("500000")]);
    let refused = refusal_at_first(&value(&bytes), &now, Duration::from_secs(9));
    assert!(refused.cooling && !refused.pushed);
    assert_eq!(refused.remaining, Some(Duration::from_millis(1_500)));
    let record = refused.record.expect("a record");
    assert_eq!((record.fence, &*record.bytes), (17, &b"a/b\0\xff/"[..]));
    let empty = refusal(&value(b"/1700000002000//"), 20, false);
    let record = empty.record.expect("a record");
    assert_eq!((record.fence, record.bytes.len()), (0, 0));
    for strange in [
        &b""[..],
        b"/",
        b"/17",
        b"/17/5",
        b"/x/5/record",
        b"x/17/5/record",
    ] {
        let refused = refusal(&value(strange), 20, true);
        assert!(refused.record.is_none() && !refused.cooling && !refused.pushed);
    }
    let name = format!("done/{ours}");
    assert_eq!(&*owner_name(&value(&bytes)), name);
}

#[test]
fn the_nodes_of_a_quorum_name_one_cooldown_alike() {
    let name = format!("cooling/{OURS}");
    for ends in ["", "/1700000001923", "/1700000001924"] {
        let value = format!("{name}{ends}");
        assert_eq!(*owner_name(value.as_bytes()), *name);
    }
    assert_eq!(&*owner_name(b"cooling/"), "cooling/");
}
