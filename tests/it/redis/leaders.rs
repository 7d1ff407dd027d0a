//! Tests leaders that are killed, stopped, and lose their leadership again and again.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use lock_core::test_util::ManualClock;
use lock_core::{LeaderView, Leadership, LockHandle, LockManager};
use lock_tests::{ChildProcess, RedisServer, needs, wait};

use super::processes::SERVER;
use super::{long, manager};

const LEDGER: &str = "LOCK_TESTS_LEDGER";

#[tokio::test]
#[ignore = "a process that other tests start"]
async fn leads_and_writes_its_moments_down() {
    let (Ok(url), Ok(ledger)) = (env::var(SERVER), env::var(LEDGER)) else {
        return;
    };
    let locks = manager(&url).await;
    let candidate = locks.leader("k").ttl(Duration::from_secs(1));
    let led = candidate.run(|lead: Leadership| {
        let mut ledger = OpenOptions::new().append(true).open(&ledger);
        async move {
            let ledger = ledger.as_mut().expect("a file");
            loop {
                // The time is that of before the check, because the process may be stopped after it.
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
                if lead.is_leader() {
                    let micros = now.expect("after 1970").as_micros();
                    let (fence, process) = (lead.fencing_token(), std::process::id());
                    let line = format!("{fence} {process} {micros}\n");
                    ledger.write_all(line.as_bytes()).expect("written");
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    });
    let ended: Result<(), _> = led.await;
    ended.expect("it leads until it is killed");
}

/// The moments of all leaders: fencing token, process and time.
fn moments(ledger: &Path) -> Vec<[u64; 3]> {
    let text = fs::read_to_string(ledger).expect("a file");
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let lines = whole.lines().map(|line| {
        let mut numbers = line.split(' ').map(|word| word.parse().expect("a number"));
        std::array::from_fn(|_| numbers.next().expect("three numbers"))
    });
    lines.collect()
}

#[test]
fn two_candidates_never_lead_at_once_while_leaders_are_killed_and_stopped() {
    needs!(redis);
    let server = RedisServer::start();
    let folder = tempfile::tempdir().expect("a folder");
    let ledger = folder.path().join("ledger");
    File::create(&ledger).expect("a folder to write in");
    let stands = || {
        let test = "redis::leaders::leads_and_writes_its_moments_down";
        let ledger = ledger.to_str().expect("a name");
        ChildProcess::of_test(test, &[(SERVER, &server.url()), (LEDGER, ledger)])
    };
    let mut candidates = vec![stands(), stands(), stands()];
    let mut last = 0;
    for round in 0..6 {
        let mut leader = 0;
        wait::until("another candidate leads", || {
            let moments = moments(&ledger);
            let newest = moments.last().map_or([0; 3], |newest| *newest);
            let of_it = moments.iter().filter(|moment| moment[0] == newest[0]);
            leader = u32::try_from(newest[1]).expect("a process");
            let leads = newest[0] > last && of_it.count() >= 5;
            last = if leads { newest[0] } else { last };
            leads
        });
        let place = candidates.iter().position(|other| other.pid() == leader);
        let place = place.expect("one of the candidates leads");
        // A candidate that was stopped goes on beside the next leader.
        candidates
            .iter()
            .filter(|other| other.pid() != leader)
            .for_each(ChildProcess::cont);
        if round % 2 == 0 {
            candidates[place].kill();
            candidates[place] = stands();
        } else {
            candidates[place].stop();
        }
    }
    drop(candidates);
    let mut by_time = moments(&ledger);
    by_time.sort_by_key(|moment| moment[2]);
    for pair in by_time.windows(2) {
        assert!(
            pair[0][0] <= pair[1][0],
            "an earlier leader still led: {pair:?}"
        );
    }
}

/// A leader whose work ends only when it is dropped, by a clock that the test moves.
struct Watched {
    server: RedisServer,
    clock: ManualClock,
    view: LeaderView,
    begun: Arc<AtomicUsize>,
    handle: Arc<Mutex<Option<LockHandle>>>,
}

impl Watched {
    async fn start() -> Self {
        let (server, clock) = (RedisServer::start(), ManualClock::new());
        let builder = LockManager::builder(&server.url()).clock(clock.clone());
        let locks = builder.connect().await.expect("a manager");
        let candidate = locks.leader("k").ttl(long());
        let view = candidate.view();
        let (begun, handle) = (Arc::default(), Arc::default());
        let counted: Arc<AtomicUsize> = Arc::clone(&begun);
        let kept: Arc<Mutex<Option<LockHandle>>> = Arc::clone(&handle);
        tokio::spawn(candidate.run(move |lead| {
            *kept.lock().expect("no panic") = Some(lead.handle());
            counted.fetch_add(1, Ordering::SeqCst);
            std::future::pending::<()>()
        }));
        Self {
            server,
            clock,
            view,
            begun,
            handle,
        }
    }

    async fn leads_for_the(&self, time: usize) {
        wait::eventually("the candidate leads", async || {
            self.begun.load(Ordering::SeqCst) == time && self.view.is_leader()
        })
        .await;
    }

    /// Takes the key away, and returns how long the candidate pauses before it leads again.
    async fn pause(&self) -> Duration {
        let time = self.begun.load(Ordering::SeqCst);
        self.server.cli(&["DEL", "lockkit:k"]);
        // The next renewal is due.
        self.clock.advance(long() / 3);
        wait::eventually("the loss is noticed", async || !self.view.is_leader()).await;
        let (mut pause, step) = (Duration::ZERO, Duration::from_millis(10));
        while self.begun.load(Ordering::SeqCst) == time {
            self.clock.advance(step);
            pause += step;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.leads_for_the(time + 1).await;
        pause
    }
}

#[tokio::test]
async fn the_pause_before_a_campaign_grows_until_a_leadership_has_lasted_for_a_ttl() {
    needs!(redis);
    let leader = Watched::start().await;
    leader.leads_for_the(1).await;
    for millis in [100, 200, 400, 800, 1600, 3200] {
        let pause = leader.pause().await;
        assert!(pause >= Duration::from_millis(millis), "{pause:?}");
    }
    let held = leader.handle.lock().expect("no panic").clone();
    let held = held.expect("a leadership");
    while held.held_for() < long() {
        leader.clock.advance(long() / 6);
        wait::eventually("it is renewed", async || held.remaining() > long() * 9 / 10).await;
    }
    let pause = leader.pause().await;
    assert!(pause < Duration::from_millis(6400), "{pause:?}");
}

#[tokio::test]
async fn a_leader_that_was_paused_for_longer_than_its_ttl_says_at_once_that_it_leads_no_more() {
    needs!(redis);
    let leader = Watched::start().await;
    leader.leads_for_the(1).await;
    leader.server.stop();
    leader.clock.advance(long());
    assert!(!leader.view.is_leader());
    leader.server.cont();
}
