//! Owners that leave a record, and its arrival at the server.

use std::sync::Arc;

use super::{Cooling, Limits, Message, World, Wrong};
use crate::lease::Phase;
use crate::model::fault::ModelFault;
use crate::model::message::Name;
use crate::model::server::Value;
use crate::protocol::Way;

impl World {
    /// Ends the owner, and leaves a record in its key.
    pub(super) fn remember(&mut self, index: u8, limits: &Limits) -> Result<(), Wrong> {
        let now = self.now();
        let process = &mut self.processes[usize::from(index)];
        let Some(mut owned) = process.owned.take() else {
            return Ok(());
        };
        let (name, fence) = (owned.name, Some(owned.fence));
        self.net
            .retain(|message| !matches!(message, Message::Extended(other, ..) if *other == name));
        if limits.has(ModelFault::RecordPassedOn)
            && process.line > 0
            && let Some(next) = owned.pass(limits.options(), now, limits.fault)
        {
            process.line -= 1;
            self.cooling = Some(Cooling { name, ends: None });
            return self.holds(index, next);
        }
        // A lease that was lost by its own clock asks too, because the token in the store decides.
        let before = owned.lease.close(now);
        self.net.push(Message::Remember(name, fence));
        process.leaves(name, fence, limits.has(ModelFault::RecordSuperseded));
        // The second release follows once the record has arrived.
        process.cools_with_late_duplicate = owned.late_duplicate;
        if owned.late_duplicate && limits.has(ModelFault::UndoBesideRecord) {
            self.net.push(Message::Release(name, fence));
        }
        if before == Phase::Held {
            self.cooling = Some(Cooling { name, ends: None });
        }
        self.promote(index, limits);
        Ok(())
    }

    /// Delivers a record.
    pub(super) fn recorded(
        &mut self,
        name: Name,
        fence: Option<u64>,
        limits: &Limits,
    ) -> Result<(), Wrong> {
        let millis = limits.cooldown_millis.unwrap_or(0);
        let cooling = self.cooling.take_if(|cooling| cooling.name == name);
        let found = self.server.current().map(|(value, _)| value);
        let record = Way::Remember {
            record: Arc::default(),
            lifetime: millis,
            ttl: limits.ttl_millis,
        };
        self.serves_end(name, fence, record, limits)?;
        self.closed(name, fence);
        let done = Some(Value::Done(name));
        let stands = self.server.current().map(|(value, _)| value) == done;
        if stands && found != done {
            if self.forgotten == Some(name) {
                return Err(Wrong::RecordCameBack);
            }
            let ends = Some(self.server.millis() + millis);
            self.cooling = Some(Cooling { name, ends });
        } else if cooling.is_some_and(|cooling| cooling.ends.is_some()) {
            // The record arrived twice.
            self.cooling = cooling;
        }
        Ok(())
    }

    /// Deletes the record.
    pub(super) fn forget(&mut self) {
        if let Some((Value::Done(name), _)) = self.server.current() {
            self.server.document.forget();
            self.forgotten = Some(name);
            self.cooling = None;
        }
    }
}
