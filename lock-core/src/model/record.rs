//! `remember.lua` on the model's server.

use super::fault::ModelFault;
use super::server::{Around, ModelServer, Push, ReleaseReply, StoredValue, Value};

impl<T: Copy + Eq> ModelServer<T> {
    pub(super) fn remember(
        &mut self,
        key: usize,
        token: T,
        fence: Option<u64>,
        millis: u64,
        around: &mut Around<'_, T>,
    ) -> ReleaseReply {
        match self.current(key).map(|(value, _)| value) {
            Some(Value::Done(owner)) if owner == token => return ReleaseReply::Yes,
            Some(Value::Held(owner)) if owner == token => {}
            None if around.has(ModelFault::RecordStoredIfAbsent) => {}
            Some(_) if around.has(ModelFault::RecordDoesNotCompare) => {}
            None => return ReleaseReply::Absent,
            Some(_) => return ReleaseReply::Other,
        }
        let value = Value::Done(token);
        let ends = self.millis() + millis;
        self.keys[key].entry = Some(StoredValue { value, ends });
        self.raise(fence, around);
        if around.has(ModelFault::RecordKeepsItsQueue) {
            return ReleaseReply::Yes;
        }
        for waiting in std::mem::take(&mut self.keys[key].queue) {
            if (around.listens)(waiting.token) {
                around.pushes.push(Push::Next(waiting.token, 0));
            }
        }
        ReleaseReply::Yes
    }
}
