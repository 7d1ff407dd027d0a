//! Pushes for waiters that are gone.

use std::time::Duration;

use super::super::tests::{another, contender, engine, key, options, queued_for};
use super::super::{Admission, Verdict};
use super::News;
use crate::base::clock::ServerTime;
use crate::base::fence::FencingToken;
use crate::store::{Grant, Lane};

/// The call of the waiter was dropped, and its release is under way.
#[test]
fn a_caller_is_not_refused_for_an_owner_that_has_handed_the_key_to_a_waiter_that_is_gone() {
    let given = News::Given(Grant {
        asks: false,
        fence: FencingToken::new(1).expect("a token"),
        given: ServerTime(1),
        ends: ServerTime(2),
    });
    let a_while = Duration::from_secs(2);
    for (news, is_refused) in [(given, false), (News::Next(a_while), true)] {
        let engine = engine();
        let contender = contender(&engine);
        let lease = another(&engine);
        let now = engine.now();
        let asking = contender.asking(&lease, Lane::KEEPER, None, now);
        asking.expect("it has the seat");
        let refusal = queued_for(a_while);
        contender.refused(&refusal, now + a_while, now + a_while);
        engine.queue.note_unreleased(&lease);
        drop(contender);
        assert!(engine.queue.tell(&key(), lease.token, news));
        let newcomer = engine.queue.enter(&key(), false, options(), &mut None);
        let refused = matches!(newcomer, Admission::Decided(Verdict::Busy(_)));
        assert_eq!(refused, is_refused);
    }
}
