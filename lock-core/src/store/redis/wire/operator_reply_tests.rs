use super::*;

const TOKEN: &str = "0123456789abcdef/0123456789abcdef0123456789abcdef";

fn bulk(text: impl AsRef<[u8]>) -> Value {
    Value::BulkString(text.as_ref().to_vec())
}

fn answer(value: Value, shares: Vec<Value>) -> Value {
    let count = i64::try_from(shares.len() / 2).expect("few");
    Value::Array(vec![
        value,
        Value::Int(9_000),
        bulk("1700000000000000"),
        bulk("1699999999999999"),
        Value::Int(2),
        Value::Array(vec![
            bulk(format!("{TOKEN} 2000")),
            bulk("1699999997000000"),
        ]),
        Value::Int(count),
        Value::Array(shares),
    ])
}

fn read(value: impl AsRef<[u8]>) -> Inspected {
    inspected(&answer(bulk(value), vec![])).expect("understood")
}

#[test]
fn the_value_of_a_key_says_who_holds_it_or_why_it_is_taken() {
    let held = read(TOKEN);
    assert_eq!(held.holders[0].remaining, Some(Duration::from_secs(9)));
    assert_eq!((held.holder_count, held.closed), (1, None));
    assert_eq!((held.waiter_count, held.waiters.len()), (2, 1));
    assert_eq!(held.waiters[0].1, Duration::from_secs(3));
    assert_eq!(held.mark, 1_699_999_999_999_999);
    let cooling = read(format!("cooling/{TOKEN}/1700000005000"));
    assert!(cooling.holders.is_empty());
    assert!(!cooling.closed.expect("cooling").has_record);
    let done = read(format!("done/{TOKEN}/1700000005000/7/the answer"));
    assert!(done.closed.expect("a record").has_record);
    let foreign = read(b"\xff another client's");
    assert!(!foreign.holders[0].token.is_of_the_kit());
    let free = inspected(&answer(Value::Nil, vec![])).expect("understood");
    assert!(free.holders.is_empty() && free.closed.is_none());
}

#[test]
fn shares_are_holders_and_the_place_of_a_freed_share_is_none() {
    let shares = vec![
        bulk(format!("{TOKEN}00000005")),
        bulk("1700000004000"),
        bulk(format!("cooling/{TOKEN}/1700000001000")),
        bulk("1700000001000"),
    ];
    let shared =
        inspected(&answer(bulk(crate::store::vote::SEVERAL_READERS), shares)).expect("understood");
    assert_eq!((shared.holders.len(), shared.holder_count), (1, 1));
    assert!(shared.holders[0].token.is_share());
    assert_eq!(shared.holders[0].remaining, Some(Duration::from_secs(4)));
    assert!(shared.closed.is_some());
}

#[test]
fn a_register_begins_with_its_number() {
    assert_eq!(
        counted_mark(&bulk(format!("1700000000000032{TOKEN}"))),
        1_700_000_000_000_032
    );
    assert_eq!(counted_mark(&Value::Nil), 0);
    assert_eq!(counted_mark(&bulk("no number")), 0);
}

#[test]
fn a_number_that_no_token_can_be_counted_from_is_none() {
    let (last, first) = ("8999999999999999", "9000000000000000");
    for owner in ["", TOKEN] {
        let mark = |number| counted_mark(&bulk(format!("{number}{owner}")));
        assert_eq!(mark(last), FencingToken::HIGH_WATER_LIMIT - 1);
        assert_eq!(mark(first), 0);
    }
}

#[test]
fn an_answer_that_is_not_understood_is_no_success() {
    for answer in [Value::Nil, Value::Okay, Value::Int(4), Value::Int(-1)] {
        assert_eq!(forced(&answer), None);
        assert!(inspected(&answer).is_none());
        assert!(scanned(&answer).is_none());
    }
    let late = Value::Array(vec![bulk("18446744073709551615"), Value::Array(vec![])]);
    let (cursor, _) = scanned(&late).expect("a cursor has 64 bits");
    assert_eq!(cursor, u64::MAX);
}

#[test]
fn messages_of_operators_are_read_and_others_are_left_alone() {
    let names = Keyspace::new("lockkit:".to_owned());
    let read = |message: &str| {
        let push = PushInfo {
            kind: redis::PushKind::Message,
            data: vec![bulk("a channel"), bulk(message)],
        };
        order(&names, &push)
    };
    let Some(Event::Forced { key, holder }) = read(&format!("l {TOKEN} lockkit:a b")) else {
        panic!("an order");
    };
    assert_eq!((&*key, holder), ("a b", HolderToken::new(TOKEN.as_bytes())));
    let asked = read(&format!("w {TOKEN} 00000000000000ff 7 lockkit:k"));
    assert!(matches!(asked, Some(Event::Asked(question)) if question.number == 7));
    let held = read("a 7 1500 1700000000000000 lockkit:k");
    let Some(Event::Answered {
        number: 7,
        held: Some(held),
    }) = held
    else {
        panic!("an answer");
    };
    assert_eq!(held.held_for, Duration::from_millis(1_500));
    let ended = read("a 7 - - lockkit:k");
    assert!(matches!(ended, Some(Event::Answered { held: None, .. })));
    for other in [
        "l",
        "l x",
        "w x y z",
        "a 7 - 5 k",
        "a x - - k",
        "x y z",
        "l t other:k",
    ] {
        assert!(read(other).is_none(), "{other}");
    }
}
