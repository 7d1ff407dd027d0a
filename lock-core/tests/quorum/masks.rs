//! Every combination of n nodes that are free, taken or dead.
//!
//! The counts of these nodes determine the result of an attempt, and the attempt leaves every node
//! as it was.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use lock_core::{ErrorKind, LockGuard, LockManager};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::{Nodes, eventually, kind, lock};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Is {
    Free,
    Taken,
    Dead,
}

/// The owners of the taken nodes, and the way in which the dead nodes fail.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Manner {
    /// One owner has all taken nodes; dead nodes report an error.
    OneOwner,
    /// Each taken node has another owner, and dead nodes do not answer.
    ///
    /// A majority of taken nodes is then a split vote.
    SplitAndSilent,
}

/// Returns all combinations of that many nodes.
fn masks(nodes: u32) -> impl Iterator<Item = Vec<Is>> {
    let of = |mask: usize, node| [Is::Free, Is::Taken, Is::Dead][mask / 3_usize.pow(node) % 3];
    (0..3_usize.pow(nodes)).map(move |mask| (0..nodes).map(|node| of(mask, node)).collect())
}

fn count(nodes: &[Is], wanted: Is) -> usize {
    nodes.iter().filter(|is| **is == wanted).count()
}

fn quorum(nodes: usize) -> usize {
    nodes / 2 + 1
}

/// Why an attempt fails that too few nodes grant.
enum Refusal {
    /// Busy: the taken nodes leave no majority.
    ByTheAnswers,
    /// Busy: the nodes that answer would be a majority without a refusal. The other nodes could
    /// still agree until the operation timeout.
    AfterTheTimeout,
    /// Unavailable: too few nodes answer until the operation timeout.
    WithoutAnswers,
}

fn refusal(nodes: &[Is]) -> Refusal {
    let (free, taken) = (count(nodes, Is::Free), count(nodes, Is::Taken));
    if taken > nodes.len() - quorum(nodes.len()) {
        Refusal::ByTheAnswers
    } else if taken > 0 && free + taken >= quorum(nodes.len()) {
        Refusal::AfterTheTimeout
    } else {
        Refusal::WithoutAnswers
    }
}

/// Returns the operation timeout of an attempt.
///
/// The timeout is short only if it cannot change the result. A machine that stops this process
/// until the timeout is over would otherwise turn a grant or a refusal into an outage.
fn patience(nodes: &[Is]) -> Duration {
    let granted = count(nodes, Is::Free) >= quorum(nodes.len());
    match refusal(nodes) {
        _ if granted => Duration::from_secs(3600),
        Refusal::ByTheAnswers => Duration::from_secs(3600),
        Refusal::AfterTheTimeout => Duration::from_secs(10),
        Refusal::WithoutAnswers => Duration::from_secs(1),
    }
}

/// The attempt, with the nodes in this state.
struct Scene {
    is: Vec<Is>,
    manner: Manner,
    nodes: Nodes,
    locks: LockManager,
    /// The managers of the owners, if each node has another owner.
    owners: Vec<LockGuard>,
}

impl Scene {
    async fn set(is: Vec<Is>, manner: Manner) -> Scene {
        let nodes = Nodes::new(is.len());
        let builder = nodes.builder().operation_timeout(patience(&is));
        let locks = builder.connect().await.expect("a manager");
        let mut owners = Vec::new();
        for (place, is) in is.iter().enumerate() {
            let node = &nodes.commands[place];
            match (is, manner) {
                (Is::Free, _) => {}
                (Is::Taken, Manner::OneOwner) => node.seize("order:42", Duration::from_secs(60)),
                (Is::Taken, Manner::SplitAndSilent) => {
                    let owner = LockManager::connect_lazy(&nodes.urls[place]).expect("a manager");
                    owners.push(lock(&owner).acquire().await.expect("free"));
                }
                (Is::Dead, Manner::OneOwner) => node.fail(ErrorKind::Unavailable),
                (Is::Dead, Manner::SplitAndSilent) => node.hang(),
            }
        }
        Scene {
            is,
            manner,
            nodes,
            locks,
            owners,
        }
    }

    /// Checks the result of an attempt, and returns the fencing token of a grant.
    async fn is_counted(&self) -> u64 {
        let (all, free) = (self.is.len(), count(&self.is, Is::Free));
        let outcome = lock(&self.locks).acquire().await;
        if free < quorum(all) {
            let expected = match refusal(&self.is) {
                Refusal::ByTheAnswers | Refusal::AfterTheTimeout => ErrorKind::Busy,
                Refusal::WithoutAnswers => ErrorKind::Unavailable,
            };
            assert_eq!(kind(outcome), expected, "{:?} {:?}", self.is, self.manner);
            return 0;
        }
        let guard = outcome.unwrap_or_else(|error| panic!("{:?}: {error}", self.is));
        eventually("all that are free agree", || {
            usize::try_from(guard.acks().granted()) == Ok(free)
        })
        .await;
        assert_eq!(usize::try_from(guard.acks().of()), Ok(all));
        for (is, node) in self.is.iter().zip(&self.nodes.commands) {
            assert_eq!(node.taken() == 1, *is != Is::Dead, "{:?}", self.is);
        }
        let token = u64::from(guard.fencing_token());
        guard.release().await.expect("held");
        token
    }

    /// Revives the dead nodes, and checks that only the locks of other owners are left.
    async fn leaves_nothing(&self) {
        for (is, node) in self.is.iter().zip(&self.nodes.commands) {
            node.recover();
            let others = usize::from(*is == Is::Taken);
            eventually("nothing of it is left", || {
                (node.taken(), node.waiting()) == (others, 0)
            })
            .await;
        }
    }

    /// Checks that other owners keep their locks, and that the next token is higher.
    async fn leaves_other_owners_alone(self, before: u64) {
        for owner in self.owners {
            owner.release().await.expect("still its owner's");
        }
        for (is, node) in self.is.iter().zip(&self.nodes.commands) {
            let foreign = *is == Is::Taken && self.manner == Manner::OneOwner;
            assert_eq!(node.lose("order:42"), foreign, "{:?}", self.is);
        }
        let mut all_agree = false;
        while !all_agree {
            // The manager may have to reconnect to the revived nodes.
            let Ok(guard) = lock(&self.locks).acquire().await else {
                tokio::time::sleep(Duration::from_millis(2)).await;
                continue;
            };
            assert!(u64::from(guard.fencing_token()) > before);
            let agreed = async {
                while guard.acks().granted() < guard.acks().of() {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            };
            let agreed = tokio::time::timeout(Duration::from_millis(100), agreed).await;
            all_agree = agreed.is_ok();
            guard.release().await.expect("held");
        }
    }
}

async fn one_mask(is: Vec<Is>, manner: Manner) {
    let scene = Scene::set(is, manner).await;
    let token = scene.is_counted().await;
    scene.leaves_nothing().await;
    let shown = format!("{:?} {manner:?}", scene.is);
    within(&shown, scene.leaves_other_owners_alone(token)).await;
}

async fn within(what: &str, work: impl Future<Output = ()>) {
    let done = tokio::time::timeout(Duration::from_secs(60), work).await;
    done.unwrap_or_else(|_| panic!("timeout: the nodes do not all agree again after {what}"));
}

/// Runs many combinations at a time, because most of them wait for silent nodes.
async fn every_mask(nodes: u32) {
    let places = Arc::new(Semaphore::new(128));
    let mut all = JoinSet::new();
    for manner in [Manner::OneOwner, Manner::SplitAndSilent] {
        for is in masks(nodes) {
            let places = Arc::clone(&places);
            all.spawn(async move {
                let _place = places.acquire().await;
                one_mask(is, manner).await;
            });
        }
    }
    assert_eq!(all.len(), 2 * 3_usize.pow(nodes));
    while let Some(done) = all.join_next().await {
        done.expect("as counted");
    }
}

#[tokio::test]
async fn every_mask_of_one_and_two_nodes_is_counted() {
    every_mask(1).await;
    every_mask(2).await;
}

#[tokio::test]
async fn every_mask_of_three_nodes_is_counted() {
    every_mask(3).await;
}

#[tokio::test]
async fn every_mask_of_four_nodes_is_counted() {
    every_mask(4).await;
}

#[tokio::test]
async fn every_mask_of_five_nodes_is_counted() {
    every_mask(5).await;
}
