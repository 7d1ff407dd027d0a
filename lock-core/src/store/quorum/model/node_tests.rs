//! The model's node beside the embedded store's: the same questions in the same order have the same answers.
//! Other tests check the embedded store against a server.

use std::sync::Arc;
use std::time::Duration;

use super::inside::ModelToken;
use super::node::{ModelNode, NodeAnswer};
use super::world::QuorumBounds;
use super::worlds::PLAIN;
use crate::base::clock::Clock;
use crate::base::share::ShareLimit;
use crate::base::token::{Address, TokenSource};
use crate::store::vote::{Propose, Vote, VoteOperation, VoteOutcome, Withdrawal};
use crate::store::{
    AcquireCommand, Lane, MemoryStore, Operation, Outcome, Queueing, Release, Store,
};

const TTL: Duration = Duration::from_secs(60);
/// The number of operations in one sequence.
const LONG: usize = 4;

#[derive(Clone, Copy, Debug)]
enum ModelQuestion {
    Propose(u16),
    Withdraw,
    SetAside(u16),
}

/// Equal, within a block, a block above, and one more than that.
const NUMBERS: [u16; 4] = [100, 116, 132, 133];

fn all_that_may_be_asked() -> Vec<(usize, ModelQuestion)> {
    let numbers = NUMBERS.map(ModelQuestion::Propose).into_iter();
    let others = [
        ModelQuestion::Withdraw,
        ModelQuestion::SetAside(120),
        ModelQuestion::SetAside(200),
    ];
    let asked: Vec<ModelQuestion> = numbers.chain(others).collect();
    let by = |client| asked.iter().map(move |asked| (client, *asked));
    (0..2).flat_map(by).collect()
}

fn of_the_model(
    node: &mut ModelNode,
    client: usize,
    asked: ModelQuestion,
    limits: &QuorumBounds,
) -> String {
    let token = ModelToken::Current(u8::try_from(client).expect("small"));
    match asked {
        ModelQuestion::Propose(number) => format!("{:?}", node.propose(token, number, limits)),
        ModelQuestion::Withdraw => {
            let had = node.inside.has(token);
            node.withdraw(token, limits);
            format!("{had}")
        }
        ModelQuestion::SetAside(number) => {
            node.set_aside(token, number, limits);
            "set aside".to_owned()
        }
    }
}

async fn of_the_store(
    node: &Arc<MemoryStore>,
    token: crate::base::token::Token,
    asked: ModelQuestion,
) -> String {
    let key: Arc<str> = "k".into();
    let propose = |number: u16| Propose {
        acquire: AcquireCommand {
            key: Arc::clone(&key),
            token,
            ttl: TTL,
            queueing: Queueing::Never,
            replaces: None,
            repeated: false,
        },
        register: 0,
        number: number.into(),
        max_ttl: TTL,
    };
    let operation = match asked {
        ModelQuestion::Propose(number) => VoteOperation::Propose(propose(number)),
        ModelQuestion::Withdraw => {
            let release = Release {
                key,
                token,
                ttl: TTL,
                fence: None,
                in_background: false,
            };
            VoteOperation::Withdraw(release, Withdrawal::Over, None)
        }
        ModelQuestion::SetAside(number) => VoteOperation::Reserve(propose(number)),
    };
    let outcome = node.execute(Operation::Vote(operation), Lane::KEEPER).await;
    let Outcome::Vote(outcome) = outcome else {
        panic!("{outcome:?}");
    };
    match outcome {
        VoteOutcome::Voted { vote, .. } => format!("{:?}", answer(&vote)),
        VoteOutcome::Withdrawn { released, .. } => {
            format!("{}", released == crate::store::Ended::Yes)
        }
        VoteOutcome::Reserved(_) => "set aside".to_owned(),
        other => panic!("{other:?}"),
    }
}

fn answer(vote: &Vote) -> NodeAnswer {
    let small = |number: u64| u16::try_from(number).expect("small");
    match vote {
        Vote::Yes {
            accepted: true,
            highest,
        } => NodeAnswer::Accepted(small(*highest)),
        Vote::Yes { highest, .. } => NodeAnswer::TooLow(small(*highest)),
        Vote::Taken { highest, .. } => NodeAnswer::Taken(small(*highest)),
        Vote::Yields | Vote::Empty(_) => panic!("nobody waits, and it keeps its data"),
    }
}

async fn answers_are_alike(readers: [bool; 3]) {
    let limits = QuorumBounds { readers, ..PLAIN };
    let tokens = TokenSource::new(Address::random());
    let share = |is_reader: bool| is_reader.then_some(ShareLimit::READERS);
    let tokens = [0, 1].map(|client| tokens.fresh().with_share(share(readers[client])));
    let asked = all_that_may_be_asked();
    let ways = asked.len().pow(u32::try_from(LONG).expect("small"));
    for way in 0..ways {
        let (mut model, store) = (ModelNode::new(0), MemoryStore::new(Clock::default()));
        let mut so_far = Vec::new();
        let mut rest = way;
        for _ in 0..LONG {
            let (client, question) = asked[rest % asked.len()];
            rest /= asked.len();
            so_far.push((client, question));
            let expected = of_the_store(&store, tokens[client], question).await;
            let modelled = of_the_model(&mut model, client, question, &limits);
            assert_eq!(modelled, expected, "{so_far:?}");
        }
    }
}

#[tokio::test]
async fn the_models_node_answers_as_the_embedded_stores() {
    answers_are_alike([false; 3]).await;
}

#[tokio::test]
async fn the_models_node_answers_readers_as_the_embedded_stores() {
    answers_are_alike([true, true, false]).await;
    answers_are_alike([true, false, false]).await;
}
