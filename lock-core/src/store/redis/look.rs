//! Whether anybody stands in a key's queue: asked for a lease that goes on from task to task.

use redis::{Pipeline, Value, cmd};

use super::connection::Connection;
use super::reply::{self, time_above};
use super::send_error::Trouble;
use super::{RedisStore, scripts};
use crate::lease::cohort::MOST;
use crate::store::{Outcome, Release};

impl RedisStore {
    pub(super) async fn look(&self, lease: &Release, on: &Connection) -> Result<Outcome, Trouble> {
        let mark_name = self.names.mark(&self.names.lock(&lease.key)).into_owned();
        let mut commands = Pipeline::with_capacity(3);
        commands
            .add_command(cmd("EXISTS").arg(self.names.queue(&lease.key)).take())
            .add_command(cmd("GET").arg(&mark_name).take())
            .add_command(cmd("TIME"));
        let [exists, mark, time] = on.send_all(&commands).await?;
        match Trouble::of(&exists).or_else(|| Trouble::of(&mark)) {
            None => {}
            // Each key may be on either side: given back as if somebody waited.
            Some(Trouble::Elsewhere(elsewhere)) if elsewhere.is_for_now() => {
                return Ok(Outcome::Waiting(true));
            }
            Some(trouble) => return Err(trouble),
        }
        if time_above(&mark, &time, on.least_mark()).is_none() {
            self.reserve(lease, &mark_name, on).await?;
        }
        Ok(reply::waiting(&exists))
    }

    /// The clock stands behind the mark: what the lease may use until the next look, and on its way
    /// there until this one is answered, is written down.
    async fn reserve(&self, lease: &Release, mark: &str, on: &Connection) -> Result<(), Trouble> {
        let used = lease.fence.map_or(0, u64::from);
        let highest = (used + 2 * u64::from(MOST)).to_string();
        match scripts::RESERVE.run(on, &[mark], &[&highest]).await? {
            Value::Int(1) => Ok(()),
            _ => Err(Trouble::Failed(crate::store::Failure::not_understood())),
        }
    }
}
