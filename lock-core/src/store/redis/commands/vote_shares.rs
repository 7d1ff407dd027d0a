//! The votes of a node for readers: its commands.

use redis::Cmd;

use super::RedisStore;
use super::vote::sixteen_digits;
use crate::base::token::Token;
use crate::store::Release;
use crate::store::redis::wire::scripts;
use crate::store::redis::wire::spans::{grant_in_millis, in_millis};
use crate::store::vote::{BLOCK, Propose};

impl RedisStore {
    pub(super) fn proposing_share(&self, propose: &Propose) -> Cmd {
        let acquire = &propose.acquire;
        let (registers, channels) = (self.names.registers(), self.names.channels());
        let bytes = 4 * (acquire.key.len() + channels.len()) + 2 * Token::LENGTH + 128;
        let mut command = scripts::PROPOSE_SHARE.command(4, 9, bytes);
        self.names.push_lock(&acquire.key, &mut command);
        command.arg(registers);
        self.names.push_queue(&acquire.key, &mut command);
        self.names.push_shares(&acquire.key, &mut command);
        let without_block = sixteen_digits(propose.number.saturating_sub(BLOCK));
        command
            .arg(acquire.token.text().as_bytes())
            .arg(in_millis(acquire.ttl))
            .arg(grant_in_millis(acquire.ttl))
            .arg(channels)
            .arg(propose.register)
            .arg(&sixteen_digits(propose.number)[..])
            .arg(&without_block[..])
            .arg(in_millis(propose.max_ttl))
            .arg(if acquire.queues() { "1" } else { "0" });
        command
    }

    pub(super) fn withdrawing_share(&self, release: &Release, how: &str) -> Cmd {
        let channels = self.names.channels();
        let bytes = 3 * release.key.len() + 4 * channels.len() + Token::LENGTH + 64;
        let mut command = scripts::WITHDRAW_SHARE.command(3, 4, bytes);
        self.names.push_lock(&release.key, &mut command);
        self.names.push_queue(&release.key, &mut command);
        self.names.push_shares(&release.key, &mut command);
        command
            .arg(release.token.text().as_bytes())
            .arg(grant_in_millis(release.ttl))
            .arg(channels)
            .arg(how);
        command
    }
}
