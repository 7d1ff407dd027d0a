use super::*;
use crate::base::token::{Address, TokenSource};

fn bulk(text: &str) -> Value {
    Value::BulkString(text.as_bytes().to_vec())
}

#[test]
fn an_answer_that_is_not_understood_is_no_vote() {
    let strange = [
        Value::Nil,
        Value::Okay,
        Value::Int(0),
        Value::Int(2),
        bulk("1"),
        Value::Array(vec![Value::Int(1)]),
        Value::Array(vec![Value::Int(2)]),
        Value::Array(vec![Value::Int(2), bulk("many")]),
        Value::Array(vec![Value::Int(0), bulk("x"), Value::Int(5)]),
        Value::Array(vec![Value::Int(4), Value::Int(-1)]),
        Value::Array(vec![Value::Int(5)]),
    ];
    for answer in strange {
        assert!(vote(&answer, 7, true).is_none(), "{answer:?}");
    }
}

#[test]
fn a_number_is_written_in_sixteen_digits() {
    for number in [0, 7, 1_700_000_000_000_025, 9_999_999_999_999_999] {
        assert_eq!(sixteen_digits(number), *format!("{number:016}").as_bytes());
    }
}

#[test]
fn a_vote_says_whether_the_number_is_accepted_too() {
    assert!(matches!(
        vote(&Value::Int(1), 7, true),
        Some(Vote::Yes {
            accepted: true,
            highest: 7
        })
    ));
    let low = Value::Array(vec![Value::Int(2), bulk("1700000000000025")]);
    assert!(matches!(
        vote(&low, 7, true),
        Some(Vote::Yes {
            accepted: false,
            highest: 1_700_000_000_000_025
        })
    ));
}

#[test]
fn a_node_without_data_has_no_name_yet() {
    let time = || bulk("1700000000000025");
    let looked_at = Value::Array(vec![bulk(""), Value::Int(-1), time()]);
    let joined_as = joined(&looked_at, Some("run".into())).expect("understood");
    assert_eq!(joined_as.opens_in, None);
    let met = Value::Array(vec![bulk("name"), Value::Int(0), time()]);
    let met = joined(&met, Some("run".into())).expect("understood");
    assert_eq!(
        (met.names, met.opens_in),
        (vec!["name".into(), "run".into()], Some(Duration::ZERO))
    );
    for strange in [
        Value::Array(vec![bulk(""), Value::Int(5), time()]),
        Value::Array(vec![bulk("name"), Value::Int(-1), time()]),
        Value::Array(vec![bulk("name"), Value::Int(0)]),
    ] {
        assert!(joined(&strange, None).is_none(), "{strange:?}");
    }
}

#[test]
fn a_withdrawal_says_whether_somebody_was_told() {
    let of = |reply| withdrawn(&Value::Int(reply));
    assert_eq!(of(1), Some((Ended::Yes, Waiters::NotTold)));
    assert_eq!(of(11), Some((Ended::Yes, Waiters::Told)));
    assert_eq!(of(10), Some((Ended::Absent, Waiters::Told)));
    assert_eq!(of(21), Some((Ended::Yes, Waiters::More)));
    assert_eq!(of(2), Some((Ended::Other, Waiters::NotTold)));
    assert_eq!(of(3), None);
    assert_eq!(of(31), Some((Ended::Yes, Waiters::Unserved)));
    assert_eq!(of(41), None);
    assert_eq!(of(-1), None);
}

#[test]
fn a_server_that_was_started_again_since_the_look_is_not_fresh() {
    let join = |welcome: Welcome, seen: &[&str]| Join {
        welcome,
        seen: seen.iter().map(|name| (*name).to_owned()).collect(),
        max_ttl: Duration::from_secs(600),
        name: TokenSource::new(Address::random()).fresh(),
    };
    let of = |run_id: &str| Some(run_id.to_owned());
    assert_eq!(welcome(&join(Welcome::Fresh, &["a"]), of("a")), "fresh");
    assert_eq!(welcome(&join(Welcome::Fresh, &["a"]), of("b")), "wait");
    // The user may not read the server's name.
    assert_eq!(welcome(&join(Welcome::Fresh, &[]), of("a")), "fresh");
    assert_eq!(welcome(&join(Welcome::Fresh, &["a"]), None), "fresh");
    assert_eq!(welcome(&join(Welcome::Look, &[]), of("a")), "look");
    assert_eq!(welcome(&join(Welcome::Wait, &["a"]), of("a")), "wait");
}
