//! A store that notes each operation with its answer, and each push to a waiter, in the log of a simulation.

use std::sync::Arc;

use super::{
    AcquireRoute, BoxFuture, Event, Events, Failure, Finding, Lane, News, Operation, Outcome,
    Place, ReleaseRoute, Store, StoreLimits,
};
use crate::base::acks::Acks;
use crate::base::machine;
use crate::base::share::ShareLimit;
use crate::base::token::{Address, Token};

/// It hands each method of the trait on, also those that have a default.
#[derive(Debug)]
pub(crate) struct Noted {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) manager: Address,
}

impl Store for Noted {
    fn execute(&self, operation: Operation, lane: Lane) -> BoxFuture<'_, Outcome> {
        Box::pin(async move {
            let asked = operation.clone();
            let outcome = self.store.execute(operation, lane).await;
            let manager = self.manager;
            machine::note(|| format!("manager {manager} {}: {}", words(&asked), answer(&outcome)));
            outcome
        })
    }

    fn background(self: Arc<Self>, events: Events) -> BoxFuture<'static, ()> {
        let manager = self.manager;
        let listener = events.clone();
        let noting = Events::new(manager, events.identity.clone(), move |event| {
            if let Event::News { key, news, .. } = &event {
                machine::note(|| format!("manager {manager} is told of {key}: {}", told(*news)));
            }
            listener.notify(event);
        });
        Arc::clone(&self.store).background(noting)
    }

    fn ready(&self) -> BoxFuture<'_, Result<(), Failure>> {
        self.store.ready()
    }

    fn ping(&self) -> BoxFuture<'_, Result<(), Failure>> {
        self.store.ping()
    }

    fn audit(&self) -> BoxFuture<'_, Result<Vec<Finding>, Failure>> {
        self.store.audit()
    }

    fn shard(&self, key: &str) -> u32 {
        self.store.shard(key)
    }

    fn place(&self, keys: &[Arc<str>]) -> Place {
        self.store.place(keys)
    }

    fn acquire_route(&self, manager: Address) -> AcquireRoute {
        self.store.acquire_route(manager)
    }

    fn release_route(&self) -> Option<ReleaseRoute> {
        self.store.release_route()
    }

    fn limits(&self) -> StoreLimits {
        self.store.limits()
    }

    fn refuses_share(&self, limit: ShareLimit) -> Option<&'static str> {
        self.store.refuses_share(limit)
    }

    #[cfg(feature = "postgres")]
    fn check_sql(&self) -> Option<&'static str> {
        self.store.check_sql()
    }

    fn refuses_interop(&self) -> Option<&'static str> {
        self.store.refuses_interop()
    }

    fn lingers(&self) -> bool {
        self.store.lingers()
    }

    fn acks(&self, token: Token) -> Acks {
        self.store.acks(token)
    }
}

/// The operation and its keys, without what differs between two stores: tokens and times.
fn words(operation: &Operation) -> String {
    match operation {
        Operation::Acquire(acquire) => format!("acquire {}, {:?}", acquire.key, acquire.queueing),
        Operation::AcquireAll(all) => {
            let keys: Vec<&str> = all.leases.iter().map(|(key, _)| &**key).collect();
            format!("acquire all of {}", keys.join(" "))
        }
        Operation::Raise(raise) => format!("raise {}", raise.key),
        Operation::Extend(each) => {
            let keys: Vec<&str> = each.iter().map(|one| &*one.key).collect();
            format!("extend {}", keys.join(" "))
        }
        Operation::Release(release) => format!("release {}", release.key),
        Operation::Vacate(release) => format!("vacate {}", release.key),
        Operation::Leave(release) => format!("leave {}", release.key),
        Operation::Cool(release, _) => format!("cool {}", release.key),
        Operation::Remember(release, _) => format!("remember {}", release.key),
        Operation::Forget(key) => format!("forget {key}"),
        Operation::Clock(key) => format!("clock of {key}"),
        Operation::Swap(swap) => format!("swap {}", swap.key),
        Operation::Vote(_) => "vote".to_owned(),
        Operation::Operator(_) => "operator".to_owned(),
    }
}

fn answer(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Granted(_) => "granted".to_owned(),
        Outcome::Busy(refusal) | Outcome::BusyAt(_, refusal) => {
            let mut words = vec!["busy"];
            words.extend(refusal.queued.then_some("queued"));
            words.extend(refusal.pushed.then_some("pushed"));
            words.extend(refusal.shared.then_some("shared"));
            words.extend(refusal.full.is_some().then_some("full"));
            words.extend(refusal.cooling.then_some("cooling"));
            words.extend(refusal.record.is_some().then_some("record"));
            words.join(" ")
        }
        Outcome::Extended(each) => format!("{each:?}"),
        Outcome::Released(how) => format!("{how:?}"),
        Outcome::Remembered(how) => format!("{how:?}"),
        Outcome::Forgotten(how, _) => format!("{how:?}"),
        Outcome::Swapped(how) => format!("{how:?}"),
        Outcome::Apart => "apart".to_owned(),
        Outcome::Raised => "raised".to_owned(),
        Outcome::Clock(_) | Outcome::Vote(_) | Outcome::Operator(_) => "answered".to_owned(),
        Outcome::Failed(_) => "failed".to_owned(),
        Outcome::Repeated(outcome) => format!("repeated {}", answer(outcome)),
    }
}

fn told(news: News) -> &'static str {
    match news {
        News::Ask => "ask",
        News::Given(_) => "given",
        News::Next(_) => "next",
    }
}
