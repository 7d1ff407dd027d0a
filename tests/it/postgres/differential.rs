//! Runs the same random calls on a PostgreSQL and on the embedded store, whose locks are the protocol itself, and compares what
//! the callers and an operator see. `LOCK_TESTS_POSTGRES_CALLS` sets their number, `LOCK_TESTS_SEED` the dice.

use std::fmt::Write;

use lock_core::operator::KeyState;
use lock_core::{Error, LockGuard, LockManager, LockRequest, Wait};
use lock_tests::{SqlServer, needs, wait};

use super::{long, setting};
use crate::dice::Dice;
use crate::steps::Waiter;

const KEYS: [&str; 3] = ["a", "b", "c"];
/// The processes, each with one caller for each key.
const PROCESSES: usize = 3;

enum Caller {
    Idle,
    Waiting(Waiter),
    Holding(LockGuard),
}

/// The managers on one store, and their callers: for each key, one of each manager.
struct World {
    locks: Vec<LockManager>,
    callers: Vec<Vec<Caller>>,
    /// The highest fencing token of each key so far.
    fences: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Alone,
    Read,
    Permit,
}

/// What a caller does next with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Try(Kind),
    Wait(Kind),
    Release,
    Cool,
    Record,
    Drop,
    GiveUp,
    PassOn,
    Downgrade,
    Force,
    Forget,
    TryAll,
}

impl World {
    async fn on(url: &str) -> World {
        let mut locks = Vec::new();
        for process in 0..PROCESSES {
            let builder = LockManager::builder(url).label(process.to_string());
            let builder = builder.operation_timeout(wait::PATIENCE / 2);
            locks.push(builder.connect().await.expect("a manager"));
        }
        let callers = || (0..PROCESSES).map(|_| Caller::Idle).collect();
        World {
            callers: KEYS.iter().map(|_| callers()).collect(),
            fences: vec![0; KEYS.len()],
            locks,
        }
    }

    fn request(&self, key: usize, process: usize, kind: Kind) -> LockRequest {
        let request = self.locks[process].lock(KEYS[key]).ttl(long());
        match kind {
            Kind::Alone => request,
            Kind::Read => request.read(),
            Kind::Permit => request.permits(2),
        }
    }

    fn takes(&mut self, key: usize, process: usize, guard: LockGuard) {
        let fence = u64::from(guard.fencing_token());
        if !guard.is_shared() {
            assert!(fence > self.fences[key], "a fencing token has not risen");
        }
        self.fences[key] = self.fences[key].max(fence);
        self.callers[key][process] = Caller::Holding(guard);
    }

    fn leaves(&mut self, key: usize, process: usize) -> Caller {
        std::mem::replace(&mut self.callers[key][process], Caller::Idle)
    }

    /// Makes a call, and returns what its caller is told.
    async fn call(&mut self, key: usize, process: usize, call: Call) -> String {
        match (call, self.leaves(key, process)) {
            (Call::Try(kind), Caller::Idle) => {
                match self.request(key, process, kind).try_acquire().await {
                    Ok(Some(guard)) => {
                        self.takes(key, process, guard);
                        "granted".to_owned()
                    }
                    Ok(None) => "taken".to_owned(),
                    Err(error) => error.code().to_owned(),
                }
            }
            (Call::TryAll, Caller::Idle) => {
                let request = self.locks[process].lock_all(KEYS).ttl(long());
                match request.try_acquire().await {
                    Ok(Some(guard)) => {
                        for fence in &mut self.fences {
                            *fence = (*fence).max(guard.fencing_token().into());
                        }
                        told(guard.release().await)
                    }
                    Ok(None) => "taken".to_owned(),
                    Err(error) => error.code().to_owned(),
                }
            }
            (Call::Wait(kind), Caller::Idle) => {
                let request = self.request(key, process, kind).wait(Wait::Forever);
                self.callers[key][process] = Caller::Waiting(tokio::spawn(request.acquire()));
                String::new()
            }
            (Call::GiveUp, Caller::Waiting(waiter)) => {
                waiter.abort();
                let ended = waiter.await;
                // It may have the lock by now, which is dropped here.
                assert!(ended.is_err(), "the callers had settled");
                String::new()
            }
            (Call::Release, Caller::Holding(guard)) => told(guard.release().await),
            (Call::Drop, Caller::Holding(_)) => String::new(),
            (Call::Cool, Caller::Holding(guard)) => {
                guard.cooldown(long());
                told(guard.release().await)
            }
            (Call::Record, Caller::Holding(guard)) => {
                let kept = guard.remember(b"a record".as_slice(), long());
                let kept = kept.map_or_else(|error| error.code().to_owned(), |()| String::new());
                kept + &told(guard.release().await)
            }
            (Call::PassOn, Caller::Holding(guard)) => {
                let ticket = match guard.ticket(long()).await {
                    Ok(ticket) => ticket,
                    Err(error) => {
                        self.callers[key][process] = Caller::Holding(guard);
                        return error.code().to_owned();
                    }
                };
                drop(guard);
                let resumed = self.locks[process].resume(ticket).await;
                // It has the fencing token of the lock that it goes on with.
                self.callers[key][process] = Caller::Holding(resumed.expect("a ticket"));
                "passed on".to_owned()
            }
            (Call::Downgrade, Caller::Holding(guard)) => match guard.downgrade().await {
                Ok(guard) => {
                    self.callers[key][process] = Caller::Holding(guard);
                    "downgraded".to_owned()
                }
                Err(error) => error.code().to_owned(),
            },
            (Call::Force, caller) => {
                self.callers[key][process] = caller;
                let operator = self.locks[0].operator("tests");
                let seen = operator.inspect(KEYS[key]).await.expect("an inspection");
                let label = process.to_string();
                let its = |holder: &&lock_core::operator::Holder| {
                    let identity = holder.identity();
                    identity.is_some_and(|identity| identity.label() == Some(label.as_str()))
                };
                // The grace ends by time, and several waiters would then ask in any order.
                let is_alone = seen.holder_count() == 1 && seen.waiter_count() < 2;
                match seen.holders().iter().find(its).filter(|_| is_alone) {
                    Some(holder) => {
                        let forced = operator.force(holder).because("a test").await;
                        format!("{:?}", forced.expect("an answer"))
                    }
                    None => "no holder".to_owned(),
                }
            }
            (Call::Forget, caller) => {
                self.callers[key][process] = caller;
                let forgotten = self.locks[process].forget(KEYS[key]).await;
                format!("{:?}", forgotten.expect("an answer"))
            }
            (_, caller) => {
                self.callers[key][process] = caller;
                String::new()
            }
        }
    }

    /// Notes which waits have ended, and which locks are lost. Returns what callers and an operator see of a key, and whether
    /// nothing is under way: each holder and each waiter of the store is a caller's.
    async fn sees(&mut self, key: usize) -> (String, bool) {
        let mut seen = String::new();
        let (mut holding, mut waiting) = (0, 0);
        for process in 0..PROCESSES {
            let told = match self.leaves(key, process) {
                Caller::Waiting(waiter) if waiter.is_finished() => {
                    match waiter.await.expect("no panic") {
                        Ok(guard) => {
                            self.takes(key, process, guard);
                            "holding"
                        }
                        Err(_) => "idle",
                    }
                }
                Caller::Holding(guard) if !guard.is_valid() => "idle",
                caller => {
                    let state = match &caller {
                        Caller::Idle => "idle",
                        Caller::Waiting(_) => "waiting",
                        Caller::Holding(_) => "holding",
                    };
                    self.callers[key][process] = caller;
                    state
                }
            };
            holding += usize::from(told == "holding");
            waiting += usize::from(told == "waiting");
            let _ = write!(seen, "{told} ");
        }
        let operator = self.locks[0].operator("tests");
        let inspected = operator.inspect(KEYS[key]).await.expect("an inspection");
        let (holders, waiters) = (inspected.holder_count(), inspected.waiter_count());
        let _ = write!(seen, "{} {holders} {waiters}", inspected.state());
        for waiter in inspected.waiters() {
            let label = waiter.identity().and_then(|identity| identity.label());
            let _ = write!(seen, " behind {}", label.unwrap_or_default());
        }
        let settled = match inspected.state() {
            KeyState::Held => holders == holding && waiters == waiting,
            KeyState::Free => holding == 0 && waiting == 0 && waiters == 0,
            KeyState::Recorded => holding == 0 && waiting == 0,
            _ => holding == 0 && waiters == waiting,
        };
        (seen, settled)
    }
}

fn told(ended: Result<(), Error>) -> String {
    ended.map_or_else(|error| error.code().to_owned(), |()| "ended".to_owned())
}

fn draws(dice: &mut Dice) -> Call {
    let kind = dice.one_of(&[Kind::Alone, Kind::Alone, Kind::Read, Kind::Permit]);
    match dice.between(0, 99) {
        0..15 => Call::Try(kind),
        15..45 => Call::Wait(kind),
        45..70 => Call::Release,
        70..76 => Call::Drop,
        76..80 => Call::GiveUp,
        80..83 => Call::Cool,
        83..86 => Call::Record,
        86..89 => Call::PassOn,
        89..92 => Call::Downgrade,
        92..93 => Call::Force,
        93..98 => Call::Forget,
        _ => Call::TryAll,
    }
}

#[tokio::test]
async fn the_embedded_store_and_a_postgresql_do_the_same() {
    needs!(postgres);
    let (calls, seed) = (
        setting("LOCK_TESTS_POSTGRES_CALLS", 1_000),
        setting("LOCK_TESTS_SEED", 29),
    );
    let server = SqlServer::postgres();
    compare(server.url(), calls, seed).await;
    println!("{calls} calls");
}

async fn compare(url: &str, calls: u64, seed: u64) {
    let mut embedded = World::on(&format!("memory:beside-{}", url.len())).await;
    let mut real = World::on(url).await;
    let mut dice = Dice::of(&[seed]);
    let mut last = Vec::new();
    for number in 0..calls {
        let (key, process) = (dice.index(KEYS.len()), dice.index(PROCESSES));
        let call = draws(&mut dice);
        last.push(format!("{number}: {process} {call:?} {}", KEYS[key]));
        let history = last.len().saturating_sub(20);
        let one = embedded.call(key, process, call).await;
        let other = real.call(key, process, call).await;
        assert_eq!(one, other, "seed {seed}: {:#?}", &last[history..]);
        let mut views = [String::new(), String::new()];
        // An order of an operator leaves a key that cools down for a second, and then its waiters get it.
        let cools = |view: &str| view.contains("cooling") && other == "Told";
        let same = async || {
            let (one, settled) = embedded.sees(key).await;
            let (other, also) = real.sees(key).await;
            let same = one == other && settled && also && !cools(&one);
            views = [one, other];
            same
        };
        let agree = agrees(same).await;
        assert!(
            agree,
            "seed {seed}: {views:#?} behind {:#?}",
            &last[history..]
        );
    }
}

/// Waits until both worlds are the same and nothing is under way.
async fn agrees(mut same: impl AsyncFnMut() -> bool) -> bool {
    let end = std::time::Instant::now() + wait::PATIENCE / 2;
    while !same().await {
        if std::time::Instant::now() > end {
            return false;
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    true
}
