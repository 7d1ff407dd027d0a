//! Reading the settings of the server.

use std::time::Duration;

use super::PostgresCells;
use super::statements::{NOW, Sql};
use crate::audit::{Finding, FindingKind, Reading};
use crate::base::clock::Clock;
use crate::store::Failure;

/// The difference between the clocks that is reported.
const FAR_APART: Duration = Duration::from_secs(10);
/// What endangers locks, the SQL by which the server says whether it is so, and advice.
const DANGERS: [(FindingKind, &str, &str); 6] = [
    (
        FindingKind::UnsyncedLog,
        "current_setting('fsync') = 'off' OR current_setting('synchronous_commit') = 'off' \
         OR current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') AND current_setting('synchronous_standby_names') <> ''",
        "a crash of the server, or a failover, loses the last locks, because `fsync` or `synchronous_commit` is not `on` for this \
         role; set both to on",
    ),
    (
        FindingKind::AsynchronousStandby,
        "EXISTS (SELECT FROM pg_stat_replication) AND current_setting('synchronous_standby_names') = ''",
        "standbys are connected and none is synchronous, so a key can have two owners after a failover; set \
         `synchronous_standby_names`",
    ),
    (
        FindingKind::NoVacuum,
        "current_setting('autovacuum') = 'off'",
        "`autovacuum` is off, so the table of the locks grows without end; set it to on",
    ),
    (
        FindingKind::LogsKeys,
        "current_setting('log_parameter_max_length', true) IS DISTINCT FROM '0' AND (current_setting('log_statement') IN ('all', 'mod') \
         OR current_setting('log_min_duration_statement') <> '-1')",
        "the log of the server shows the keys of locks; set `log_parameter_max_length` to 0 for this role",
    ),
    (
        FindingKind::EndlessTransactions,
        "current_setting('idle_in_transaction_session_timeout') = '0'",
        "`idle_in_transaction_session_timeout` is 0 for this database, so the transaction of a stopped process keeps old rows, \
         and a key that it has checked, for ever; set it to a few minutes",
    ),
    (
        FindingKind::OldTransaction,
        "EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() \
         AND xact_start < clock_timestamp() - interval '1 minute')",
        "a transaction of this database is more than a minute old, and the table of the locks grows and slows down while it \
         lasts; end it, or give the locks a database of their own",
    ),
];

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
        let conditions = DANGERS.map(|(_, condition, _)| condition);
        let ask = Sql::new(format!("SELECT {NOW}, {}", conditions.join(", ")), &[]);
        let before = Clock::System.unix_micros();
        let rows = self.ask(&ask, &[]).await?;
        let after = Clock::System.unix_micros();
        let row = rows.first().ok_or_else(Failure::not_understood)?;
        let clock = Reading {
            before,
            server: row.try_get::<_, i64>(0).unwrap_or(0).unsigned_abs(),
            after,
        };
        let mut findings = Vec::new();
        let mut found = |kind, advice: &str| {
            findings.push(Finding::new(kind, None, advice.to_owned()));
        };
        for ((kind, _, advice), place) in DANGERS.into_iter().zip(1..) {
            if row.try_get(place).unwrap_or(false) {
                found(kind, advice);
            }
        }
        if *self.listening.borrow() != Some(true) {
            found(
                FindingKind::MayNotSubscribe,
                "no messages arrive, so waiters poll a lock; behind a pooler name a direct way to the same database by `?listen=`",
            );
        }
        let away = clock.difference();
        if away >= FAR_APART {
            let advice = format!(
                "its clock and this machine's differ by {away:?}; locks end by the server's clock, so if that clock is corrected \
                 by a step, locks end at once or last too long; run chrony or ntpd on both"
            );
            found(FindingKind::ClockDiffers, &advice);
        }
        Ok(findings)
    }
}
