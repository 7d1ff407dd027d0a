//! Reading the settings of the server.

use std::time::Duration;

use super::PostgresCells;
use super::failure::failure;
use super::statements::{NOW, Sql};
use crate::audit::{Finding, PostgresFacts, Reading};
use crate::base::clock::Clock;
use crate::store::Failure;

impl PostgresCells {
    /// Logs the findings once, as soon as the server answers.
    pub(super) async fn log_findings(&self) {
        let mut listening = self.listening.subscribe();
        let _ = listening.wait_for(Option::is_some).await;
        if let Ok(findings) = self.findings().await {
            findings.iter().for_each(Finding::warn);
        }
    }

    pub(super) async fn findings(&self) -> Result<Vec<Finding>, Failure> {
        let connection = self.connection().await?;
        let is = |setting: &str, value: &str| format!("current_setting('{setting}') = '{value}'");
        let ask = Sql::new(
            format!(
                "SELECT {fsync} AND NOT {commit}, EXISTS (SELECT FROM pg_stat_replication) AND {names}, {vacuum}, \
                 NOT {length} AND ({all} OR {changes} OR NOT {slow}), {idle}, \
                 coalesce(extract(epoch FROM max(clock_timestamp() - xact_start)), 0)::bigint, {NOW} \
                 FROM pg_stat_activity WHERE datname = current_database()",
                fsync = is("fsync", "on"),
                commit = is("synchronous_commit", "off"),
                names = is("synchronous_standby_names", ""),
                vacuum = is("autovacuum", "on"),
                length = is("log_parameter_max_length", "0"),
                all = is("log_statement", "all"),
                changes = is("log_statement", "mod"),
                slow = is("log_min_duration_statement", "-1"),
                // That of a new session, because this one has its own.
                idle = "(SELECT reset_val = '0' FROM pg_settings WHERE name = 'idle_in_transaction_session_timeout')",
            ),
            &[],
        );
        let before = Clock::System.unix_micros();
        let rows = ask.run(&connection.client, &[]).await;
        let after = Clock::System.unix_micros();
        let rows = rows.map_err(|error| failure(&error))?;
        let row = rows.first().ok_or_else(Failure::not_understood)?;
        let flag = |index: usize| row.try_get(index).unwrap_or(false);
        let number = |index: usize| row.try_get::<_, i64>(index).unwrap_or(0);
        let facts = PostgresFacts {
            syncs: flag(0),
            lags: flag(1),
            vacuums: flag(2),
            logs_keys: flag(3),
            endless: flag(4),
            oldest: Duration::from_secs(number(5).unsigned_abs()),
            listens: *self.listening.borrow() == Some(true),
            clock: Reading {
                before,
                server: number(6).unsigned_abs(),
                after,
            },
        };
        Ok(facts.findings())
    }
}
