//! The budget of the embedded store's records.

use std::sync::Arc;
use std::time::Duration;

use super::records::BUDGET;
use super::state::MemoryState;
use crate::base::clock::ServerTime;
use crate::base::record::Record;
use crate::base::token::{Address, TokenSource};
use crate::store::{AcquireCommand, Operation, Outcome, Queueing, Release, Remembered};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[test]
fn beyond_the_budget_the_oldest_records_are_empty_and_their_keys_stay_taken() {
    let now = 1_000_000_000;
    let tokens = TokenSource::new(Address::random());
    let mut state = MemoryState::default();
    let ask = |state: &mut MemoryState, key: &Arc<str>, now| {
        let acquire = AcquireCommand {
            key: Arc::clone(key),
            token: tokens.fresh(),
            ttl: Duration::from_secs(30),
            queueing: Queueing::Always,
            replaces: None,
            repeated: false,
        };
        let token = acquire.token;
        (
            state.run(Operation::Acquire(acquire), ServerTime(now)),
            token,
        )
    };
    let record = Record::checked(vec![7; 1 << 20], DAY, DAY).expect("it fits");
    let keys: Vec<Arc<str>> = (0..70).map(|key: u32| key.to_string().into()).collect();
    for key in &keys {
        let (granted, token) = ask(&mut state, key, now);
        assert!(matches!(granted, Outcome::Granted(_)), "{granted:?}");
        let release = Release {
            key: Arc::clone(key),
            token,
            ttl: Duration::from_secs(30),
            fence: None,
            in_background: false,
        };
        let remember = Operation::Remember(release, Arc::clone(&record));
        let remembered = state.run(remember, ServerTime(now));
        assert!(matches!(remembered, Outcome::Remembered(Remembered::Yes)));
    }
    let day = 24 * 60 * 60 * 1_000_000;
    let later = now + day / 2;
    for (index, key) in keys.iter().enumerate() {
        let Outcome::Busy(refusal) = ask(&mut state, key, later).0 else {
            panic!("the key is free before its end");
        };
        let bytes = refusal.record.expect("no key loses it").bytes.len();
        assert_eq!(bytes == 0, index < 7, "{index}");
        assert!(refusal.cooling);
        assert_eq!(refusal.remaining, Some(DAY / 2));
        assert!(!refusal.queued, "no caller waits beside a record");
    }
    assert!(state.records.bytes <= BUDGET);
    for key in &keys {
        assert!(matches!(
            ask(&mut state, key, now + day).0,
            Outcome::Granted(_)
        ));
    }
    assert_eq!(state.records.bytes, 0);
}
