//! Renewing many leases on a cluster: one script for each key, those of one node in one write.
//!
//! A node that does not answer holds up no other node's renewals.

use redis::{Pipeline, Value};

use crate::store::redis::commands::RedisStore;
use crate::store::redis::commands::dispatch::{Command, Dispatch};
use crate::store::redis::commands::renewal::caching;
use crate::store::redis::commands::replicas::unless_extended;
use crate::store::redis::topology::ServerId;
use crate::store::redis::wire::connection::Connection;
use crate::store::redis::wire::reply;
use crate::store::redis::wire::send_error::SendError;
use crate::store::redis::wire::slots::HashSlot;
use crate::store::{Extended, Extension, Operation, Outcome};

impl RedisStore {
    /// Renews each lease. A key without an answer in time costs the others nothing.
    pub(super) async fn extend_each(
        &self,
        extensions: Vec<Extension>,
        dispatch: &mut Dispatch,
    ) -> Outcome {
        let mut answers = vec![Some(Extended::Unknown); extensions.len()];
        if extensions.len() > 1 {
            for (node, indexes) in self.by_node(&extensions) {
                let part: Vec<_> = indexes.iter().map(|&index| &extensions[index]).collect();
                let told = self.extend_on(node, &part, dispatch).await;
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
                None => self.extend_alone(extension, dispatch).await,
            });
        }
        Outcome::Extended(each)
    }

    fn by_node(&self, extensions: &[Extension]) -> Vec<(Option<ServerId>, Vec<usize>)> {
        let mut by_node: Vec<(Option<ServerId>, Vec<usize>)> = Vec::new();
        for (index, extension) in extensions.iter().enumerate() {
            let slot = HashSlot::of(&self.names.lock(&extension.key));
            let node = self.topology.cluster().and_then(|it| it.known_owner(slot));
            match by_node.iter_mut().find(|(known, _)| *known == node) {
                Some((_, indexes)) => indexes.push(index),
                None => by_node.push((node, vec![index])),
            }
        }
        by_node
    }

    /// Returns an answer for each lease; `None` where it has to be asked by itself.
    async fn extend_on(
        &self,
        node: Option<ServerId>,
        extensions: &[&Extension],
        dispatch: &mut Dispatch,
    ) -> Vec<Option<Extended>> {
        let unknown = || vec![Some(Extended::Unknown); extensions.len()];
        if node.is_none() {
            return vec![None; extensions.len()];
        }
        let first = self.names.lock(&extensions[0].key);
        let Ok(Some((_, connection))) = self.find_connection(&first, dispatch).await else {
            return unknown();
        };
        match self.send_each(extensions, &connection).await {
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

    /// Sends a script for each lease in one write, and has the server watch its key where it can.
    async fn send_each(
        &self,
        extensions: &[&Extension],
        on: &Connection,
    ) -> Result<Vec<Value>, SendError> {
        let watches = on.is_watching();
        let mut commands = Pipeline::with_capacity(2 * extensions.len());
        let mut watched = Vec::new();
        for extension in extensions {
            // A share's key is changed by each owner beside it.
            if watches && extension.token.share().is_none() {
                watched.push(commands.len());
                commands.add_command(caching());
            }
            commands.add_command(self.extending_one(extension, on));
        }
        let mut told = on.send_many(&commands, commands.len()).await?;
        for index in watched.into_iter().rev() {
            if index < told.len() && SendError::of(&told.remove(index)).is_some() {
                on.watches_nothing();
            }
        }
        Ok(told)
    }

    /// Confirms lengthened leases once replicas have them, where replicas acknowledge.
    async fn unless_replicas_miss(
        &self,
        told: Vec<Option<Extended>>,
        on: &Connection,
    ) -> Vec<Option<Extended>> {
        let Some(replicas) = &self.replicas else {
            return told;
        };
        if !told.contains(&Some(Extended::Yes)) || self.acknowledge(replicas, on).await.is_ok() {
            return told;
        }
        let told = told.into_iter();
        told.map(|answer| answer.map(unless_extended)).collect()
    }

    async fn extend_alone(&self, extension: Extension, dispatch: &mut Dispatch) -> Extended {
        let is_share = extension.token.share().is_some();
        let command = Command::Whole(Operation::Extend(vec![extension.clone()]));
        let answered = match Box::pin(self.send_until_answered(command, dispatch)).await {
            Err(SendError::Moving(_)) if is_share => {
                Box::pin(self.extend_share_in_parts(extension, dispatch)).await
            }
            answered => answered,
        };
        match answered {
            Ok(Outcome::Extended(answers)) => match answers.as_slice() {
                [answer] => *answer,
                _ => Extended::Unknown,
            },
            _ => Extended::Unknown,
        }
    }
}

fn is_unfit(answer: &Value) -> bool {
    matches!(SendError::of(answer), Some(SendError::Unfit(_)))
}

/// Reads one of several answers; `None`, if another node or the whole script has to be tried.
fn one(answer: &Value) -> Option<Extended> {
    match SendError::of(answer) {
        Some(SendError::Elsewhere(_) | SendError::NoScript | SendError::Moving(_)) => None,
        Some(_) => Some(Extended::Unknown),
        None => match reply::extended(answer) {
            Outcome::Extended(answers) => answers.first().copied(),
            _ => Some(Extended::Unknown),
        },
    }
}
