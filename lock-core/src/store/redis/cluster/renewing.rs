//! Renewing many leases on a cluster: one script for each key, those of one node in one write.

use redis::{Pipeline, Value};

use super::slots::Slot;
use crate::store::redis::connection::Connection;
use crate::store::redis::dispatch::{Errand, Journey};
use crate::store::redis::reply;
use crate::store::redis::send_error::Trouble;
use crate::store::redis::topology::Node;
use crate::store::redis::{RedisStore, millis, scripts};
use crate::store::{Extended, Extension, Operation, Outcome};

impl RedisStore {
    /// What cannot be told of one key in time costs the others nothing.
    pub(super) async fn extend_each(
        &self,
        extensions: Vec<Extension>,
        journey: &mut Journey,
    ) -> Outcome {
        let mut answers = vec![Some(Extended::Unknown); extensions.len()];
        if extensions.len() > 1 {
            for (node, indexes) in self.by_node(&extensions) {
                let part: Vec<_> = indexes.iter().map(|&index| &extensions[index]).collect();
                let told = self.extend_on(node, &part, journey).await;
                for (index, answer) in indexes.into_iter().zip(told) {
                    answers[index] = answer;
                }
            }
        } else {
            answers.fill(None);
        }
        let mut each = Vec::with_capacity(answers.len());
        for (extension, answer) in extensions.into_iter().zip(answers) {
            each.push(match answer {
                Some(answer) => answer,
                None => self.extend_alone(extension, journey).await,
            });
        }
        Outcome::Extended(each)
    }

    fn by_node(&self, extensions: &[Extension]) -> Vec<(Option<Node>, Vec<usize>)> {
        let mut by_node: Vec<(Option<Node>, Vec<usize>)> = Vec::new();
        for (index, extension) in extensions.iter().enumerate() {
            let slot = Slot::of(&self.names.lock(&extension.key));
            let node = self.topology.cluster().and_then(|it| it.known_owner(slot));
            match by_node.iter_mut().find(|(known, _)| *known == node) {
                Some((_, indexes)) => indexes.push(index),
                None => by_node.push((node, vec![index])),
            }
        }
        by_node
    }

    /// An answer for each; nothing, where it has to be asked by itself.
    async fn extend_on(
        &self,
        node: Option<Node>,
        extensions: &[&Extension],
        journey: &mut Journey,
    ) -> Vec<Option<Extended>> {
        let unknown = || vec![Some(Extended::Unknown); extensions.len()];
        let first = self.names.lock(&extensions[0].key);
        // Of all of them: the keys of one node.
        let Some(_) = node else {
            return vec![None; extensions.len()];
        };
        let Ok(Some((_, connection))) = self.set_out(&first, journey).await else {
            return unknown();
        };
        let mut commands = Pipeline::with_capacity(extensions.len());
        for extension in extensions {
            let lock = self.names.lock(&extension.key);
            let token = extension.token.text();
            let ttl = millis(extension.ttl);
            let mut arguments = vec![token.as_str(), &ttl];
            if self.replicas.is_some() {
                arguments.push("write");
            }
            commands.add_command(scripts::EXTEND.known(&[&lock], &arguments));
        }
        match connection.send_many(&commands, extensions.len()).await {
            Ok(told) if told.len() == extensions.len() => {
                if told.iter().any(is_unfit) {
                    connection.retire();
                    self.topology.doubt();
                }
                let told = told.iter().map(one).collect();
                self.unless_replicas_miss(told, &connection).await
            }
            _ => {
                self.topology.doubt();
                unknown()
            }
        }
    }

    /// What was lengthened counts once replicas have it, where they have a say.
    async fn unless_replicas_miss(
        &self,
        told: Vec<Option<Extended>>,
        on: &Connection,
    ) -> Vec<Option<Extended>> {
        let Some(replicas) = &self.replicas else {
            return told;
        };
        if !told.contains(&Some(Extended::Yes)) || replicas.acknowledge(on).await.is_ok() {
            return told;
        }
        let unless_extended = |answer| match answer {
            Some(Extended::Yes) => Some(Extended::Unknown),
            other => other,
        };
        told.into_iter().map(unless_extended).collect()
    }

    async fn extend_alone(&self, extension: Extension, journey: &mut Journey) -> Extended {
        let errand = Errand::Whole(Operation::Extend(vec![extension]));
        match Box::pin(self.travel(errand, journey)).await {
            Ok(Outcome::Extended(answers)) => match answers.as_slice() {
                [answer] => *answer,
                _ => Extended::Unknown,
            },
            _ => Extended::Unknown,
        }
    }
}

fn is_unfit(answer: &Value) -> bool {
    matches!(Trouble::of(answer), Some(Trouble::Unfit(_)))
}

/// The answer to one of several; nothing, if another node or another script has to be tried.
fn one(answer: &Value) -> Option<Extended> {
    match Trouble::of(answer) {
        Some(Trouble::Elsewhere(_) | Trouble::NoScript) => None,
        Some(_) => Some(Extended::Unknown),
        None => match reply::extended(answer) {
            Outcome::Extended(answers) => answers.first().copied(),
            _ => Some(Extended::Unknown),
        },
    }
}
