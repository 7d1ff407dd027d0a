//! Sentinels: which server is the master.
//!
//! An operation goes by the open connection to the known master and asks no sentinel. Before a new connection
//! the sentinels are asked once more, because a replaced master that goes on takes itself for one. A sentinel
//! that missed a look is asked beside it from then on, and no look waits for it. Connections to sentinels live
//! on, so the late answer of a distant one still counts.
//!
//! The manager remembers the epoch of the believed configuration. It believes an older one only when the master
//! of the newer one has not answered as a master for 5 s. Otherwise a sentinel that has missed a failover, and
//! is heard alone, would lead it back to the old master. After 5 s sentinels that were set up anew are
//! believed, because they count anew.
//!
//! A replaced master is left within half a second by every manager that reaches a sentinel. A master that is
//! cut off together with its clients goes on until the partition ends, or, with `min-replicas-to-write 1`, for
//! `min-replicas-max-lag`.

mod said;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use redis::{Pipeline, cmd};
use tokio::sync::watch;

use self::said::{SentinelReport, newest, not_let_in, said, unreachable};
use super::nodes::{ServerId, ServerList, addresses};
use super::poll::{Answers, FIRST_ANSWER, GIVEN_UP, Survey, ask_once};
use super::refresh::{ANSWER, FORGOTTEN, Refresh};
use super::url::SentinelUrl;
use crate::base::clock::{Clock, Moment};
use crate::base::error::Error;
use crate::store::Failure;
use crate::store::redis::wire::connection::is_master;
use crate::store::redis::wire::login::Login;
use crate::store::redis::wire::server::Server;

/// A master that was replaced but lives on, cut off from its sentinels, is left within this time.
const INTERVAL: Duration = Duration::from_millis(500);

pub(in crate::store::redis) struct Sentinel {
    sentinels: Vec<Server>,
    service: String,
    pub(super) nodes: ServerList,
    master: watch::Sender<Master>,
    pub(super) refresh: Refresh,
}

#[derive(Clone)]
enum Master {
    Unsought,
    At(ServerId),
    /// None was ever found, for this reason.
    Nowhere(Failure),
}

impl Sentinel {
    pub(super) fn new(url: SentinelUrl, login: Option<Arc<Login>>) -> Result<Self, Error> {
        let sentinels = url.sentinels.into_iter();
        let sentinels = sentinels.map(|sentinel| Server::new(sentinel, None));
        Ok(Self {
            sentinels: sentinels.collect::<Result<_, _>>()?,
            service: url.service,
            nodes: ServerList::new(url.master, login),
            master: watch::Sender::new(Master::Unsought),
            refresh: Refresh::default(),
        })
    }

    pub(super) fn known_master(&self) -> Option<ServerId> {
        match &*self.master.borrow() {
            Master::At(node) => Some(*node),
            Master::Unsought | Master::Nowhere(_) => None,
        }
    }

    /// The master, once it has been sought.
    pub(super) async fn master(&self) -> Result<ServerId, Failure> {
        let mut master = self.master.subscribe();
        let sought = master.wait_for(|master| !matches!(master, Master::Unsought));
        match sought.await.map(|master| master.clone()) {
            Ok(Master::At(node)) => Ok(node),
            Ok(Master::Nowhere(failure)) => Err(failure),
            Ok(Master::Unsought) | Err(_) => Err(Failure::refused("the lock manager has ended")),
        }
    }

    /// The master, by a look that begins now, because the master before may have been left for a reason.
    pub(super) async fn home(&self) -> Result<ServerId, Failure> {
        self.refresh.look().await;
        self.master().await
    }

    /// Waits until another server is the master.
    pub(super) async fn departure(&self, from: ServerId) {
        let mut master = self.master.subscribe();
        let gone = |master: &Master| matches!(master, Master::At(node) if *node != from);
        let _ = master.wait_for(gone).await;
    }

    pub(super) fn uses(&self, node: ServerId) -> bool {
        self.known_master() == Some(node)
    }

    /// The addresses of the sentinels.
    pub(super) fn addresses(&self) -> String {
        addresses(self.sentinels.iter().cloned())
    }

    /// Looks after the master for as long as the keeper runs.
    pub(super) async fn watch(&self) {
        let mut questions = Pipeline::with_capacity(2);
        for question in ["GET-MASTER-ADDR-BY-NAME", "MASTER"] {
            questions.add_command(cmd("SENTINEL").arg(question).arg(&self.service).take());
        }
        let mut survey = Survey::new(questions);
        for (index, sentinel) in self.sentinels.iter().enumerate() {
            survey.add(index, || sentinel.clone());
        }
        let mut belief = Belief {
            told: vec![None; self.sentinels.len()],
            epoch: 0,
            absent_since: None,
        };
        loop {
            let begun = self.refresh.begin();
            let patience = match &*self.master.borrow() {
                Master::At(_) => ANSWER,
                Master::Nowhere(_) => FIRST_ANSWER,
                Master::Unsought => GIVEN_UP,
            };
            let told = survey.ask(patience).await;
            belief.hear(told);
            self.decide(&mut belief).await;
            self.refresh.end(begun);
            let mut rest = pin!(self.refresh.rest(INTERVAL));
            loop {
                tokio::select! {
                    biased;
                    () = &mut rest => break,
                    told = survey.late() => belief.hear([told]),
                }
                self.decide(&mut belief).await;
            }
        }
    }

    async fn decide(&self, belief: &mut Belief) {
        let decided = match self.look(belief).await {
            Ok(node) => Master::At(node),
            // A known master stays the master until another one is found.
            Err(_) if self.known_master().is_some() => return,
            Err(failure) => Master::Nowhere(failure),
        };
        self.master.send_if_modified(|master| {
            let other = match (&*master, &decided) {
                (Master::At(known), Master::At(node)) => known != node,
                _ => true,
            };
            *master = decided;
            other
        });
    }

    /// Finds the master by the answers of the sentinels.
    async fn look(&self, belief: &mut Belief) -> Result<ServerId, Failure> {
        let told = newest(belief.told.iter().flatten().cloned())?;
        let epoch = told[0].epoch;
        let nodes = told.iter().map(|said| self.nodes.at(&said.host, said.port));
        let nodes = nodes.collect::<Result<Vec<_>, _>>()?;
        if let Some(known) = self.known_master() {
            // Its connections show how it fares.
            if nodes.contains(&known) {
                belief.believe(epoch.max(belief.epoch));
                return Ok(known);
            }
            if epoch < belief.epoch && !belief.is_over(self.check(known).await.is_ok()) {
                return Ok(known);
            }
        }
        let mut why = None;
        for node in nodes {
            match self.check(node).await {
                Ok(()) => {
                    belief.believe(epoch);
                    return Ok(node);
                }
                Err(failure) => why = Some(failure),
            }
        }
        Err(why.unwrap_or_else(unreachable))
    }

    /// Checks that the server is a master.
    async fn check(&self, node: ServerId) -> Result<(), Failure> {
        let mut question = Pipeline::with_capacity(1);
        question.add_command(cmd("ROLE"));
        match ask_once(self.nodes.server(node), &question).await {
            Ok(answers) => is_master(answers.first()),
            Err(failure) if failure.is_final() => Err(failure),
            Err(_) => Err(Failure::refused(
                "the server that the sentinels name as the master does not answer",
            )),
        }
    }
}

/// The believed state of the sentinels.
struct Belief {
    /// The last answer of each sentinel.
    told: Vec<Option<Result<SentinelReport, Failure>>>,
    /// The epoch of the configuration that made the known master. A sentinel that has missed a failover is not
    /// believed, even if it is the only one that answers.
    epoch: u64,
    /// Since when that master has not answered as one, while only older configurations were reported.
    absent_since: Option<Moment>,
}

impl Belief {
    fn hear(&mut self, told: impl IntoIterator<Item = (usize, Answers)>) {
        for (index, answers) in told {
            let told = answers.map_err(not_let_in);
            self.told[index] = Some(told.and_then(|answers| said(&answers)));
        }
    }

    fn believe(&mut self, epoch: u64) {
        self.epoch = epoch;
        self.absent_since = None;
    }

    /// Returns whether the believed configuration may be forgotten for an older one. `leads`: whether its master
    /// answers as one.
    fn is_over(&mut self, leads: bool) -> bool {
        if leads {
            self.absent_since = None;
            return false;
        }
        let now = Clock::System.now();
        now.since(*self.absent_since.get_or_insert(now)) >= FORGOTTEN
    }
}
