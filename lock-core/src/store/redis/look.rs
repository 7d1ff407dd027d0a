//! Whether anybody stands in a key's queue: asked for a lease that goes on from task to task.

use redis::{Pipeline, Value};

use super::acquire::{question, time_above};
use super::answers::{self, Trouble};
use super::connection::Connection;
use super::{RedisStore, scripts};
use crate::cohort::MOST;
use crate::store::{Outcome, Release};

impl RedisStore {
    pub(super) async fn look(&self, lease: &Release, on: &Connection) -> Result<Outcome, Trouble> {
        let mut commands = Pipeline::with_capacity(3);
        commands
            .add_command(question("EXISTS", &self.names.queue(&lease.key)))
            .add_command(question("GET", self.names.mark()))
            .add_command(question("TIME", ""));
        let [exists, mark, time] = on.send_all(&commands).await?;
        if time_above(&mark, &time).is_none() {
            self.reserve(lease, on).await?;
        }
        Ok(answers::waiting(&exists))
    }

    /// The clock stands behind the mark: what the lease may use until the next look, and on its way
    /// there until this one is answered, is written down.
    async fn reserve(&self, lease: &Release, on: &Connection) -> Result<(), Trouble> {
        let used = lease.fence.map_or(0, u64::from);
        let highest = (used + 2 * u64::from(MOST)).to_string();
        let mark = self.names.mark();
        match scripts::RESERVE.run(on, &[mark], &[&highest]).await? {
            Value::Int(1) => Ok(()),
            _ => Err(Trouble::Failed(crate::store::Failure::not_understood())),
        }
    }
}
