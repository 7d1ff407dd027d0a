//! What the queue of a process knows of leases that are over: a late push for one of them must not be
//! undone by whoever hears it.

use std::sync::Arc;
use std::time::Duration;

use super::{Entry, Left, Local, Patience, Seat};
use crate::LockManager;
use crate::active::Hold;
use crate::base::clock::ServerTime;
use crate::base::fence::FencingToken;
use crate::engine::Core;
use crate::engine::release::discard;
use crate::lease::Terms;
use crate::store::{Grant, News, Replaced};

fn core() -> Arc<Core> {
    Arc::clone(LockManager::in_memory().core())
}

fn key() -> Arc<str> {
    "k".into()
}

fn terms() -> Terms {
    Terms::new(Duration::from_secs(60), true, None)
}

fn seat(core: &Arc<Core>) -> Seat {
    match Local::enter(core, &key(), Patience::None, terms(), &mut None) {
        Entry::Contend(seat) => seat,
        Entry::Queued(_) | Entry::Busy(_) => panic!("the seat is taken"),
    }
}

fn another(core: &Arc<Core>) -> Arc<Hold> {
    Hold::new(core, &key(), terms(), core.tokens.manager())
}

/// Which lease the question for this one steps over.
fn names(core: &Core, seat: &Seat, hold: &Arc<Hold>) -> Option<Replaced> {
    let now = core.keeper.clock.now();
    let before = seat.asking(hold, core.store.lane(), None, now);
    let before = before.expect("it has the seat");
    before.map(|before| before.lease)
}

/// A lease that somebody asks for.
fn asked_for(core: &Arc<Core>, seat: &Seat) -> Arc<Hold> {
    let hold = another(core);
    names(core, seat, &hold);
    hold
}

/// A lease that this process holds.
fn held(core: &Arc<Core>, fence: u64) -> Arc<Hold> {
    let seat = seat(core);
    let hold = asked_for(core, &seat);
    let now = core.keeper.clock.now();
    hold.ask(now + Duration::from_secs(5));
    assert!(hold.grant(now, FencingToken::new(fence).expect("a token")));
    assert!(seat.granted(&hold));
    hold
}

fn is_known(core: &Arc<Core>, hold: &Hold) -> bool {
    let fence = FencingToken::new(9).expect("a token");
    let ends = ServerTime(9);
    let late = News::Given(Grant { fence, ends });
    Local::tell(core, &key(), hold.token, late)
}

#[test]
fn each_release_under_way_is_known_until_it_is_answered() {
    let core = core();
    let first = held(&core, 1);
    core.local.leave(&first, Left::Steppable);
    let second = {
        let seat = seat(&core);
        let hold = asked_for(&core, &seat);
        core.local.note_unreleased(&hold);
        hold
    };
    assert!(is_known(&core, &first) && is_known(&core, &second));
    core.local.given_back(&second.release());
    assert!(is_known(&core, &first) && !is_known(&core, &second));
    let seat = seat(&core);
    assert_eq!(
        names(&core, &seat, &another(&core)),
        Some(first.replaced()),
        "it may be stepped over again"
    );
    drop(seat);
    core.local.given_back(&first.release());
    assert!(!is_known(&core, &first));
    assert!(core.local.is_empty());
}

#[test]
fn a_release_that_its_owner_waits_for_is_known_and_not_stepped_over() {
    let core = core();
    let hold = held(&core, 1);
    hold.close();
    let seat = seat(&core);
    assert_eq!(names(&core, &seat, &another(&core)), None);
    assert!(is_known(&core, &hold));
    core.local.leave(&hold, Left::Nothing);
    drop(seat);
    assert!(core.local.is_empty());
}

#[cfg(feature = "test-util")]
#[test]
fn a_cooldown_under_way_is_known_and_not_stepped_over() {
    let locks = LockManager::in_memory();
    let core = Arc::clone(locks.core());
    let hold = held(&core, 1);
    // Or the keeper might have done it by the time it is asked about.
    locks.test_store().expect("an embedded store").hang();
    hold.set_cooldown(Duration::from_secs(60));
    hold.close();
    crate::engine::release::release_later(&hold);
    assert!(is_known(&core, &hold));
    let seat = seat(&core);
    assert_eq!(names(&core, &seat, &another(&core)), None);
}

#[test]
fn a_lost_lease_is_known_until_its_owner_has_ended() {
    let core = core();
    let hold = held(&core, 1);
    core.local.abandon(&hold);
    assert!(is_known(&core, &hold));
    discard(&hold, crate::lease::Loss::NotOurs);
    assert!(!is_known(&core, &hold));
    // The keeper may find out about the loss later than the owner has ended.
    core.local.abandon(&hold);
    assert!(core.local.is_empty());
}
