//! Tests of a node whose connection breaks under the first proposal: it is sent once more, and the first copy
//! arrives when the lease is over.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;

use super::test_nodes::{Between, manager_on, take};
use crate::api::manager::LockManager;
use crate::base::clock::Clock;
use crate::base::error::ErrorKind;
use crate::base::options::Wait;
use crate::base::sync::lock;
use crate::base::token::{Address, Token, TokenSource};
use crate::store::vote::{Vote, VoteOperation, VoteOutcome};
use crate::store::{Lane, MemoryStore, Operation, Outcome, Release, Store};

const TTL: Duration = Duration::from_secs(60);

#[derive(Debug)]
struct Repeats {
    node: Arc<MemoryStore>,
    first: Mutex<Option<Operation>>,
    answers: watch::Sender<bool>,
}

impl Between for Repeats {
    fn node(&self) -> &Arc<MemoryStore> {
        &self.node
    }

    async fn run(&self, operation: Operation, lane: Lane) -> Outcome {
        if !matches!(operation, Operation::Vote(VoteOperation::Propose(_))) {
            return self.node.execute(operation, lane).await;
        }
        lock(&self.first).get_or_insert_with(|| operation.clone());
        let mut answers = self.answers.subscribe();
        answers.wait_for(|it| *it).await.expect("it is here");
        match self.node.execute(operation, lane).await {
            Outcome::Vote(VoteOutcome::Voted { vote, .. }) => Outcome::Vote(VoteOutcome::Voted {
                vote,
                repeated: true,
            }),
            outcome => outcome,
        }
    }
}

struct RepeatedVotes {
    nodes: [Arc<MemoryStore>; 3],
    odd: Arc<Repeats>,
    locks: LockManager,
    stranger: Token,
}

impl RepeatedVotes {
    /// `in_time`: the odd node answers before the others have decided.
    async fn new(in_time: bool) -> RepeatedVotes {
        let nodes: [Arc<MemoryStore>; 3] =
            std::array::from_fn(|_| MemoryStore::new(Clock::default()));
        let odd = Arc::new(Repeats {
            node: Arc::clone(&nodes[0]),
            first: Mutex::default(),
            answers: watch::Sender::new(in_time),
        });
        let stores: [Arc<dyn Store>; 3] = [
            Arc::clone(&odd) as _,
            Arc::clone(&nodes[1]) as _,
            Arc::clone(&nodes[2]) as _,
        ];
        RepeatedVotes {
            locks: manager_on(stores.into(), TTL).await,
            nodes,
            odd,
            stranger: TokenSource::new(Address::random()).fresh(),
        }
    }

    /// Another owner takes the key on all nodes.
    async fn is_taken(&self) {
        for node in &self.nodes {
            assert!(take(node, self.stranger).await);
        }
    }

    async fn is_given_back(&self) {
        for node in &self.nodes {
            let release = Operation::Release(Release {
                key: "k".into(),
                token: self.stranger,
                ttl: TTL,
                fence: None,
                in_background: false,
            });
            node.execute(release, Lane::KEEPER).await;
        }
    }

    async fn refuses(&self) {
        let refused = self.locks.lock("k").wait(Wait::None).acquire().await;
        assert_eq!(refused.expect_err("taken").kind(), ErrorKind::Busy);
    }

    async fn becomes(&self, what: &str, holds: impl Fn(&MemoryStore) -> bool) {
        let state = async {
            while !holds(&self.nodes[0]) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let state = tokio::time::timeout(Duration::from_secs(20), state).await;
        state.expect(what);
    }

    /// The key is free, and the first proposal takes it for a minute.
    async fn the_first_copy_is_undone(&self) {
        self.becomes("it is free", |node| node.counts().0 == 0)
            .await;
        let first = lock(&self.odd.first).clone().expect("it was asked");
        let vote = self.nodes[0].execute(first, Lane::KEEPER).await;
        let takes_it = matches!(
            vote,
            Outcome::Vote(VoteOutcome::Voted {
                vote: Vote::Yes { .. },
                ..
            })
        );
        assert!(takes_it, "{vote:?}");
        self.becomes("it is undone", |node| node.counts().0 == 0)
            .await;
    }
}

#[tokio::test]
async fn a_first_proposal_that_arrives_after_the_release_is_undone() {
    let scene = RepeatedVotes::new(true).await;
    let guard = scene.locks.lock("k").acquire().await.expect("free");
    guard.release().await.expect("held");
    scene.the_first_copy_is_undone().await;
}

#[tokio::test]
async fn a_first_proposal_that_arrives_after_a_refusal_is_undone() {
    let scene = RepeatedVotes::new(true).await;
    scene.is_taken().await;
    scene.refuses().await;
    scene.is_given_back().await;
    scene.the_first_copy_is_undone().await;
}

#[tokio::test]
async fn a_first_proposal_of_a_vote_that_came_late_is_undone() {
    let scene = RepeatedVotes::new(false).await;
    let guard = scene.locks.lock("k").acquire().await.expect("free");
    assert_eq!(guard.acks().granted(), 2);
    scene.odd.answers.send_replace(true);
    scene
        .becomes("its vote counts", |_| guard.acks().granted() == 3)
        .await;
    guard.release().await.expect("held");
    scene.the_first_copy_is_undone().await;
}

#[tokio::test]
async fn a_first_proposal_of_a_refusal_that_came_late_is_undone() {
    let scene = RepeatedVotes::new(false).await;
    scene.is_taken().await;
    scene.refuses().await;
    scene.odd.answers.send_replace(true);
    scene
        .becomes("it has answered", |_| {
            scene.odd.answers.receiver_count() == 0
        })
        .await;
    scene.is_given_back().await;
    scene.the_first_copy_is_undone().await;
}

#[tokio::test]
async fn a_first_proposal_that_one_node_refused_late_is_undone() {
    let scene = RepeatedVotes::new(false).await;
    assert!(take(&scene.nodes[0], scene.stranger).await);
    let guard = scene.locks.lock("k").acquire().await.expect("two of three");
    scene.odd.answers.send_replace(true);
    scene
        .becomes("it has answered", |_| {
            scene.odd.answers.receiver_count() == 0
        })
        .await;
    guard.release().await.expect("held");
    scene.is_given_back().await;
    scene.the_first_copy_is_undone().await;
}
