//! One question to several nodes at once, and their answers as they arrive.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::Quorum;
use super::vote_ledger::{NodeSet, contains};
use crate::base::clock::Moment;
use crate::store::{BoxFuture, Outcome};
use crate::timer::{Timer, Timers};

/// A task that is polled so long after its time has not heard the nodes, and says nothing about them.
const UNPOLLED: Duration = Duration::from_millis(50);

/// The questions and their answers. Dropping it forgets the answers of questions that were sent.
pub(super) struct FanOut<T = Outcome> {
    /// Nodes by their index in the list.
    asked: Vec<(usize, BoxFuture<'static, T>)>,
    answers: VecDeque<(usize, T)>,
    timer: Option<Timer>,
    overdue: Moment,
    /// Nodes whose questions are held back. They have not been asked yet, so they are not silent.
    held_back: NodeSet,
}

impl<T> FanOut<T> {
    pub(super) fn new(asked: impl IntoIterator<Item = (usize, BoxFuture<'static, T>)>) -> Self {
        Self {
            asked: asked.into_iter().collect(),
            answers: VecDeque::new(),
            timer: None,
            overdue: Moment::FAR,
            held_back: 0,
        }
    }

    /// Ends the wait at `overdue` for nodes that have not answered.
    pub(super) fn until(mut self, timers: &Arc<Timers>, overdue: Moment) -> Self {
        self.set_time(timers, overdue);
        self
    }

    /// Notes the nodes whose questions wait for something other than their answers.
    pub(super) fn holding_back(self, nodes: NodeSet) -> Self {
        Self {
            held_back: nodes,
            ..self
        }
    }

    pub(super) fn set_time(&mut self, timers: &Arc<Timers>, overdue: Moment) {
        self.timer = Some(timers.at(overdue));
        self.overdue = overdue;
    }

    /// Asks more nodes.
    pub(super) fn ask_too(
        &mut self,
        asked: impl IntoIterator<Item = (usize, BoxFuture<'static, T>)>,
    ) {
        self.asked.extend(asked);
    }

    /// Counts the answers that are still to be taken or to arrive.
    pub(super) fn open(&self) -> usize {
        self.answers.len() + self.asked.len()
    }

    /// The nodes that have not answered.
    pub(super) fn silent(&self) -> impl Iterator<Item = usize> + '_ {
        self.asked.iter().map(|(node, _)| *node)
    }

    /// The nodes whose answers have not been taken.
    pub(super) fn left(&self) -> impl Iterator<Item = usize> + '_ {
        let at_hand = self.answers.iter().map(|(node, _)| *node);
        at_hand.chain(self.silent())
    }

    /// Returns the next answer; `None`: no answer is left, or none arrived in time. Dropping the future loses
    /// nothing.
    pub(super) async fn next(&mut self) -> Option<(usize, T)> {
        poll_fn(|context| {
            if self.answers.is_empty() {
                self.look(context);
            }
            if let Some(answer) = self.answers.pop_front() {
                return Poll::Ready(Some(answer));
            }
            if self.asked.is_empty() {
                return Poll::Ready(None);
            }
            match &mut self.timer {
                Some(timer) => Pin::new(timer).poll(context).map(|()| None),
                None => Poll::Pending,
            }
        })
        .await
    }

    /// Takes all answers that are left. Nodes that give none in time are out from then on, and their answers still
    /// count.
    pub(super) async fn rest(&mut self, quorum: &Quorum, mut came: impl FnMut(usize, T)) {
        loop {
            match self.next().await {
                Some((place, outcome)) => came(place, outcome),
                None if self.open() > 0 => {
                    self.note_silence(quorum);
                    self.timer = None;
                }
                None => return,
            }
        }
    }

    /// Notes that the nodes without an answer are out.
    pub(super) fn note_silence(&self, quorum: &Quorum) {
        if quorum.timers.now().since(self.overdue) >= UNPOLLED {
            return;
        }
        self.silent()
            .filter(|place| !contains(self.held_back, *place))
            .for_each(|place| quorum.nodes[place].is_silent());
    }

    /// Returns an answer that has arrived already.
    pub(super) fn at_hand(&mut self) -> Option<(usize, T)> {
        self.answers.pop_front()
    }

    /// Polls every question each time, because the first poll sends the question.
    fn look(&mut self, context: &mut Context<'_>) {
        let answers = &mut self.answers;
        self.asked
            .retain_mut(|(node, asked)| match asked.as_mut().poll(context) {
                Poll::Ready(answer) => {
                    answers.push_back((*node, answer));
                    false
                }
                Poll::Pending => true,
            });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::test_nodes::one_node;
    use super::super::vote_ledger::only;
    use super::*;
    use crate::base::clock::Clock;
    use crate::store::Ended;

    #[tokio::test]
    async fn all_are_asked_before_the_first_answer_is_taken() {
        let sent = Arc::new(AtomicUsize::new(0));
        let asked = (0..3).map(|node| {
            let sent = Arc::clone(&sent);
            let answer: BoxFuture<'static, Outcome> = Box::pin(async move {
                sent.fetch_add(1, Ordering::SeqCst);
                if node == 1 {
                    std::future::pending::<()>().await;
                }
                Outcome::Released(Ended::Yes)
            });
            (node, answer)
        });
        let mut answers = FanOut::new(asked);
        assert_eq!(answers.next().await.map(|(node, _)| node), Some(0));
        assert_eq!(sent.load(Ordering::SeqCst), 3);
        assert_eq!(answers.open(), 2);
        assert_eq!(answers.next().await.map(|(node, _)| node), Some(2));
        assert_eq!(answers.silent().collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn a_node_that_was_not_asked_or_not_heard_is_not_taken_for_silent() {
        let timers = Timers::new(Clock::default());
        let store = one_node(&timers);
        let quorum = &store.quorum;
        quorum.nodes[0].answered();
        let is_up_after = |overdue, held_back| {
            let asked: BoxFuture<'static, Outcome> = Box::pin(std::future::pending());
            let votes = FanOut::new([(0, asked)]).until(&timers, overdue);
            votes.holding_back(held_back).note_silence(quorum);
            quorum.nodes[0].is_up()
        };
        let now = timers.now();
        assert!(is_up_after(Moment(now.0 - UNPOLLED.as_nanos() as u64), 0));
        let later = now + Duration::from_secs(1);
        assert!(is_up_after(later, only(0)), "it was not asked");
        assert!(!is_up_after(later, 0));
    }
}
