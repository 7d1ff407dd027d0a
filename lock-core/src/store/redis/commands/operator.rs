//! What an operator sees and does on a server.
//!
//! A holder's process listens at the address in its token, which is that of one of its runtimes. A runtime whose
//! connection has ended connects again with its next request only, and a holder may have none for a long time. So a
//! message that no connection receives there goes to the address of the manager, which always connects again.

use std::sync::Arc;
use std::time::Duration;

use redis::{Value, cmd};

use super::RedisStore;
use crate::base::identity::Identity;
use crate::base::token::Address;
use crate::store::redis::topology::ServerId;
use crate::store::redis::wire::card::card;
use crate::store::redis::wire::connection::Connection;
use crate::store::redis::wire::send_error::SendError;
use crate::store::redis::wire::spans::{in_millis, millis, push_fence};
use crate::store::redis::wire::{operator_reply, reply, scripts};
use crate::store::{
    Answer, CardName, Force, Forced, Inspect, Lane, OperatorOperation, OperatorOutcome, Outcome,
    Question, Scan, ScanCursor, Scanned, Told,
};

/// How many waiters and shares an inspection names.
const NAMED_WAITERS: usize = 100;
const NAMED_SHARES: usize = 1_000;
/// How many keys a server looks at before it answers others.
const SCANNED: usize = 1_000;

impl RedisStore {
    pub(super) async fn operate(
        &self,
        operation: &OperatorOperation,
        on: &Connection,
    ) -> Result<Outcome, SendError> {
        let outcome = match operation {
            OperatorOperation::Inspect(inspect) => self.inspect(inspect, on).await?,
            OperatorOperation::Force(force) => self.force(force, on).await?,
            OperatorOperation::Scan(scan) => self.scan(scan, on).await?.map(Scanned::into_outcome),
            OperatorOperation::ReadCard(name) => {
                let manager = CardName::from(name.address.manager());
                let mut identity = self.read_card(name, on).await?;
                if identity.is_none() && manager.address != name.address {
                    identity = self.read_card(&manager, on).await?;
                }
                Some(OperatorOutcome::Card(identity))
            }
            OperatorOperation::WriteCard(name, identity) => {
                on.send(&card(&self.names, name, identity)).await?;
                Some(OperatorOutcome::Told(Told::Maybe))
            }
            OperatorOperation::Ask(question) => {
                let Some(to) = question.holder.address() else {
                    return Ok(Outcome::Operator(OperatorOutcome::Told(Told::NoReceiver)));
                };
                let lock = self.names.lock(&question.key);
                self.tell_holder(to, &question_text(question, &lock), on)
                    .await?
            }
            OperatorOperation::Answer(answer) => {
                let lock = self.names.lock(&answer.key);
                self.tell(answer.to, &answer_text(answer, &lock), on)
                    .await?
            }
        };
        Ok(outcome.map_or_else(reply::not_understood, Outcome::Operator))
    }

    async fn inspect(
        &self,
        inspect: &Inspect,
        on: &Connection,
    ) -> Result<Option<OperatorOutcome>, SendError> {
        let keys = self.keys(&inspect.key, inspect.register.is_some());
        let register = inspect.register.map(|it| it.to_string());
        let answer = scripts::INSPECT
            .run(
                on,
                &keys.each_ref().map(String::as_str),
                &[
                    register.as_deref().unwrap_or_default(),
                    &NAMED_WAITERS.to_string(),
                    &NAMED_SHARES.to_string(),
                ],
            )
            .await?;
        let inspected = operator_reply::inspected(&answer);
        Ok(inspected.map(|it| OperatorOutcome::Inspected(Box::new(it))))
    }

    async fn force(
        &self,
        force: &Force,
        on: &Connection,
    ) -> Result<Option<OperatorOutcome>, SendError> {
        let keys = self.keys(&force.key, force.register.is_some());
        let (register, number) = match force.register {
            Some((register, number)) => (register.to_string(), format!("{number:016}")),
            None => Default::default(),
        };
        let bytes = keys.iter().map(String::len).sum::<usize>() + force.holder.as_bytes().len();
        let bytes = bytes + self.names.channels().len() + 64;
        let mut command = self.scripts.force.command(keys.len(), 6, bytes);
        for key in &keys {
            command.arg(key);
        }
        command.arg(force.holder.as_bytes());
        push_fence(force.fence, &mut command);
        command
            .arg(self.names.channels())
            .arg(millis(force.grace))
            .arg(register)
            .arg(number);
        let answer = self.scripts.force.ask(on, &command).await?;
        let forced = operator_reply::forced(&answer);
        if force.register.is_none() {
            match forced {
                Some(Forced::Freed) => self.handed_off.note_key(&force.key, Duration::ZERO),
                Some(Forced::Told) => self.handed_off.note_key(&force.key, force.grace),
                Some(Forced::Changed) | None => {}
            }
        }
        Ok(forced.map(OperatorOutcome::Forced))
    }

    /// The keys of both scripts.
    fn keys(&self, key: &str, is_node: bool) -> [String; 4] {
        let mark = match is_node {
            true => self.names.registers().to_owned(),
            false => self.names.mark_for(key).into_owned(),
        };
        [
            self.names.lock(key),
            mark,
            self.names.queue(key),
            self.names.shares(key),
        ]
    }

    async fn tell(
        &self,
        to: Address,
        message: &str,
        on: &Connection,
    ) -> Result<Option<OperatorOutcome>, SendError> {
        let mut publish = cmd("PUBLISH");
        let answer = on
            .send(publish.arg(self.names.channel(to)).arg(message))
            .await?;
        // A node of a cluster counts the receivers on its own connections only.
        let counts = !self.topology.is_cluster();
        Ok(match answer {
            Value::Int(0) if counts => Some(OperatorOutcome::Told(Told::NoReceiver)),
            Value::Int(_) => Some(OperatorOutcome::Told(Told::Maybe)),
            _ => None,
        })
    }

    async fn tell_holder(
        &self,
        holder: Address,
        message: &str,
        on: &Connection,
    ) -> Result<Option<OperatorOutcome>, SendError> {
        let told = self.tell(holder, message, on).await?;
        match (told, holder.manager()) {
            (Some(OperatorOutcome::Told(Told::NoReceiver)), manager) if manager != holder => {
                self.tell(manager, message, on).await
            }
            (told, _) => Ok(told),
        }
    }

    async fn read_card(
        &self,
        name: &CardName,
        on: &Connection,
    ) -> Result<Option<Identity>, SendError> {
        let mut get = cmd("GET");
        let answer = on.send(get.arg(self.names.card(name))).await?;
        Ok(reply::text(&answer).and_then(Identity::parse))
    }

    /// Lists the next keys of one server.
    async fn scan(&self, scan: &Scan, on: &Connection) -> Result<Option<Scanned>, SendError> {
        let mut command = cmd("SCAN");
        command
            .arg(scan.from.cursor)
            .arg("MATCH")
            .arg(scan.pattern.glob(self.names.namespace()))
            .arg("COUNT")
            .arg(SCANNED)
            .arg("TYPE")
            .arg("string");
        let answer = on.send(&command).await?;
        let Some((cursor, found)) = operator_reply::scanned(&answer) else {
            return Ok(None);
        };
        // The kit's own keys begin with `!`, and no lock's does.
        let keys = found.filter_map(|name| self.names.key(name));
        let keys = keys.filter(|key| !key.is_empty() && !key.starts_with('!'));
        let next = (cursor != 0).then_some(ScanCursor {
            cursor,
            ..scan.from.clone()
        });
        Ok(Some(Scanned {
            keys: keys.map(Arc::from).collect(),
            next,
        }))
    }

    /// Lists the next keys of a cluster, one master after the other.
    pub(super) async fn scan_cluster(&self, scan: &Scan, lane: Lane) -> Outcome {
        match self.scan_master(scan, lane).await {
            Ok(Some(scanned)) => Outcome::Operator(scanned.into_outcome()),
            Ok(None) => reply::not_understood(),
            Err(trouble) => Outcome::Failed(trouble.into_failure()),
        }
    }

    async fn scan_master(&self, scan: &Scan, lane: Lane) -> Result<Option<Scanned>, SendError> {
        let Some(cluster) = self.topology.cluster() else {
            return Ok(None);
        };
        // The place is one above the number of the master that was listed last, or is being listed.
        let number = |place: usize| ServerId(u32::try_from(place).unwrap_or(u32::MAX));
        let before = scan.from.place.checked_sub(1).map(number);
        let node = match (scan.from.cursor, before) {
            (0, before) => cluster
                .next_master(before)
                .await
                .map_err(SendError::Failed)?,
            (_, node) => node,
        };
        let Some(node) = node else {
            return Ok(Some(Scanned {
                keys: Vec::new(),
                next: None,
            }));
        };
        let connection = self.connection(lane, node).await;
        let connection = connection.map_err(SendError::Failed)?;
        let Some(scanned) = self.scan(scan, &connection).await? else {
            return Ok(None);
        };
        let cursor = scanned.next.map_or(0, |next| next.cursor);
        let next = ScanCursor {
            place: node.0 as usize + 1,
            cursor,
            ..scan.from.clone()
        };
        Ok(Some(Scanned {
            next: Some(next),
            ..scanned
        }))
    }
}

impl Scanned {
    fn into_outcome(self) -> OperatorOutcome {
        OperatorOutcome::Scanned(self)
    }
}

/// `w <token> <address of the reply> <number> <lock>`
fn question_text(question: &Question, lock: &str) -> String {
    let token = String::from_utf8_lossy(question.holder.as_bytes());
    let Question {
        reply_to, number, ..
    } = question;
    format!("w {token} {reply_to} {number} {lock}")
}

/// `a <number> <held in ms> <fencing token> <lock>`, with `-` for both where the process does not hold the key.
fn answer_text(answer: &Answer, lock: &str) -> String {
    let number = answer.number;
    match answer.held {
        Some(held) => {
            let held_for = in_millis(held.held_for);
            format!("a {number} {held_for} {} {lock}", held.fence)
        }
        None => format!("a {number} - - {lock}"),
    }
}
