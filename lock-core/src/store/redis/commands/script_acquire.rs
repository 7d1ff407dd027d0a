//! An acquire by its script, for one that queues, supersedes a lease, or may have been sent before. A first
//! attempt is in `native_acquire.rs`.

use super::RedisStore;
use crate::base::token::Token;
use crate::store::redis::wire::connection::Connection;
use crate::store::redis::wire::reply::acquired;
use crate::store::redis::wire::send_error::SendError;
use crate::store::redis::wire::spans::{grant_in_millis, in_millis, push_fence};
use crate::store::{AcquireCommand, Outcome};

impl RedisStore {
    pub(super) async fn acquire_by_script(
        &self,
        acquire: &AcquireCommand,
        on: &Connection,
    ) -> Result<Outcome, SendError> {
        if acquire.token.share().is_some() {
            return Box::pin(self.acquire_share(acquire, on)).await;
        }
        let mark = self.names.mark_for(&acquire.key);
        let channels = self.names.channels();
        let bytes = 3 * mark.len() + channels.len() + 2 * (acquire.key.len() + Token::LENGTH) + 48;
        let script = &self.scripts.acquire;
        let mut command = script.command(3, 7, bytes);
        self.names.push_lock(&acquire.key, &mut command);
        command.arg(&*mark);
        self.names.push_queue(&acquire.key, &mut command);
        command.arg(acquire.token.text().as_bytes());
        command.arg(in_millis(acquire.ttl));
        command.arg(grant_in_millis(acquire.ttl));
        command.arg(if acquire.queues() { "1" } else { "0" });
        match acquire.replaces {
            Some(before) => command.arg(before.token.text().as_bytes()),
            None => command.arg(""),
        };
        command.arg(channels);
        push_fence(
            acquire.replaces.and_then(|before| before.fence),
            &mut command,
        );
        let answer = script.ask(on, &command).await?;
        let outcome = acquired(&answer, self.pushes_to(acquire.token, on));
        if let Outcome::Busy(_) = outcome {
            self.handed_off.note_refused(acquire);
            self.shared.note_answer(&acquire.key, &answer);
        }
        Ok(outcome)
    }
}
