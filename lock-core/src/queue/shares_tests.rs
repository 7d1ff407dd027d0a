//! Shares in the queue of a process: their lines, and the releases that stand in their way.

use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use super::tests::{another, engine, key, options};
use super::{Admission, Contender, Verdict};
use crate::active::ActiveLease;
use crate::base::share::ShareLimit;
use crate::engine::Engine;
#[cfg(feature = "test-util")]
use crate::store::Refusal;
use crate::store::{Lane, News};

fn lease(engine: &Arc<Engine>, key: &str, share: Option<ShareLimit>) -> Arc<ActiveLease> {
    let token = another(engine).token.with_share(share);
    ActiveLease::new(&key.into(), token, options(), engine.timers.clock())
}

/// A reader that stands in a line and waits for a push.
fn waiting_reader(engine: &Arc<Engine>) -> (Contender, Arc<ActiveLease>) {
    let line = engine.queue.line(&key(), ShareLimit::READERS).name;
    let admission = engine.queue.enter(&line, false, options(), &mut None);
    let Admission::Decided(Verdict::Contend(contender)) = admission else {
        panic!("the line is empty");
    };
    let lease = lease(engine, &key(), Some(ShareLimit::READERS));
    let now = engine.now();
    assert!(contender.asking(&lease, Lane::KEEPER, None, now).is_ok());
    contender.waits(now + Duration::from_secs(60));
    (contender, lease)
}

#[test]
fn a_push_reaches_the_share_that_it_names_and_no_other_one_of_the_key() {
    let engine = engine();
    let readers = [(); 3].map(|()| waiting_reader(&engine));
    for told in 0..readers.len() {
        let token = readers[told].1.token;
        assert!(engine.queue.tell(&key(), token, News::Ask), "it waits");
        for (place, (contender, _)) in readers.iter().enumerate() {
            let news = contender.poll_news(&mut Context::from_waker(Waker::noop()));
            assert_eq!(news.is_ready(), place == told);
        }
    }
}

/// A plain lock steps over another plain lock. No lock steps over a share, and no share over a lock.
#[test]
fn a_release_under_way_is_waited_for_if_it_cannot_be_stepped_over() {
    let reader = Some(ShareLimit::READERS);
    for (ended, asking, waits) in [
        (None, None, false),
        (None, reader, true),
        (reader, None, true),
        (reader, reader, true),
    ] {
        let engine = engine();
        let is_before = |key: &str| {
            let asking = lease(&engine, key, asking);
            engine.queue.is_releasing_before(&asking)
        };
        assert!(!is_before("k"));
        let ended = lease(&engine, "k", ended);
        engine.queue.note_unreleased(&ended);
        assert_eq!(is_before("k"), waits);
        assert!(!is_before("another"));
        engine.queue.confirm_release(&ended.release());
        assert!(!is_before("k"), "it is confirmed");
    }
}

/// A share that comes while the first one rests would overtake it, if it asked at the moment of a release.
#[cfg(feature = "test-util")]
#[test]
fn a_share_asks_by_itself_unless_the_first_of_its_line_rests() {
    let one = ShareLimit::permits(1).expect("in bounds");
    for pushed in [true, false] {
        let clock = crate::test_util::ManualClock::new();
        let locks = crate::LockManager::builder("memory:").clock(clock.clone());
        let locks = locks.connect_lazy().expect("an embedded store");
        let engine = locks.engine();
        let asks = || engine.queue.line(&key(), one).is_behind_a_question;
        assert!(!asks(), "the first one is the contender");
        let line = engine.queue.line(&key(), one).name;
        let admission = engine.queue.enter(&line, true, options(), &mut None);
        let Admission::Decided(Verdict::Contend(contender)) = admission else {
            panic!("the line is empty");
        };
        let lease = lease(engine, &key(), Some(one));
        let now = engine.now();
        assert!(contender.asking(&lease, Lane::KEEPER, None, now).is_ok());
        assert!(asks(), "its question is on its way");
        let refusal = Refusal {
            cooling: false,
            record: None,
            remaining: None,
            queued: true,
            pushed,
            shared: false,
            full: None,
            server_time: None,
        };
        let until = now + Duration::from_secs(9);
        contender.refused(&refusal, until, until);
        assert_eq!(asks(), !pushed);
        clock.advance(Duration::from_secs(8));
        assert_eq!(asks(), !pushed, "the refusal stands");
        clock.advance(Duration::from_secs(1));
        assert!(asks(), "the refusal is over");
    }
}
