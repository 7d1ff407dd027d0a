//! Whether a majority of the nodes can be had at this moment.

use std::sync::Arc;

use super::Quorum;
use super::fan_out::FanOut;
use crate::store::{BoxFuture, Failure};

impl Quorum {
    /// Asks all nodes at once, and succeeds as soon as a majority has answered that also votes.
    pub(super) async fn ping(&self) -> Result<(), Failure> {
        self.gather().await;
        if let Some(same_server) = self.same_server() {
            return Err(same_server);
        }
        let asked = self.up().map(|(place, node)| {
            let store = Arc::clone(&node.store);
            let answer: BoxFuture<'static, _> = Box::pin(async move { store.ping().await });
            (place, answer)
        });
        let mut nodes = FanOut::new(asked);
        let mut good = 0;
        while good + nodes.open() >= self.quorum() {
            match nodes.next().await {
                Some((place, Ok(()))) => good += usize::from(self.nodes[place].votes()),
                Some((place, Err(failure))) => self.nodes[place].is_out(&failure),
                None => break,
            }
            if good == self.quorum() {
                return Ok(());
            }
        }
        if self.up().count() < self.quorum() {
            return Err(self.too_few(None));
        }
        Err(Failure::refused(format!(
            "only {good} of the {} nodes vote, and it takes {}: a node that came without data does not vote for \
             a while",
            self.nodes.len(),
            self.quorum()
        )))
    }
}
