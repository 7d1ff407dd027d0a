//! Turns the settings of a PostgreSQL server into findings. Pure.

use std::time::Duration;

use super::{Finding, FindingKind, Reading};

/// The age of a transaction that is reported.
const LONG: Duration = Duration::from_secs(60);
/// The difference between the clocks that is reported.
const FAR_APART: Duration = Duration::from_secs(10);

/// The settings that were read from the server.
#[derive(Clone, Debug)]
pub(crate) struct PostgresFacts {
    /// The server syncs its log, and commits wait for that.
    pub(crate) syncs: bool,
    /// Standbys are connected, and commits wait for none of them.
    pub(crate) lags: bool,
    pub(crate) vacuums: bool,
    /// The log of the server shows the parameters of statements, which are keys.
    pub(crate) logs_keys: bool,
    /// A session may leave a transaction open for ever.
    pub(crate) endless: bool,
    /// The age of the oldest transaction of the database that this role may see.
    pub(crate) oldest: Duration,
    /// Messages arrive.
    pub(crate) listens: bool,
    pub(crate) clock: Reading,
}

impl PostgresFacts {
    pub(crate) fn findings(&self) -> Vec<Finding> {
        let away = self.clock.difference();
        let judged = [
            (
                !self.syncs,
                FindingKind::UnsyncedLog,
                "a crash of the server loses the last locks, because `fsync` or `synchronous_commit` is off for this role; \
                 set both to on"
                    .to_owned(),
            ),
            (
                self.lags,
                FindingKind::AsynchronousStandby,
                "standbys are connected and none is synchronous, so a key can have two owners after a failover; set \
                 `synchronous_standby_names`"
                    .to_owned(),
            ),
            (
                !self.vacuums,
                FindingKind::NoVacuum,
                "`autovacuum` is off, so the table of the locks grows without end; set it to on".to_owned(),
            ),
            (
                self.logs_keys,
                FindingKind::LogsKeys,
                "the log of the server shows the keys of locks; set `log_parameter_max_length` to 0 for this role"
                    .to_owned(),
            ),
            (
                self.endless,
                FindingKind::EndlessTransactions,
                "`idle_in_transaction_session_timeout` is 0 for this database, so the transaction of a stopped process keeps \
                 old rows, and a key that it has checked, for ever; set it to a few minutes"
                    .to_owned(),
            ),
            (
                self.oldest >= LONG,
                FindingKind::OldTransaction,
                format!(
                    "a transaction of this database is {:?} old, and the table of the locks grows and slows down while it \
                     lasts; end it, or give the locks a database of their own",
                    self.oldest
                ),
            ),
            (
                !self.listens,
                FindingKind::MayNotSubscribe,
                "no messages arrive, so waiters poll a lock; behind a pooler name a direct way by `?listen=`".to_owned(),
            ),
            (
                away >= FAR_APART,
                FindingKind::ClockDiffers,
                format!(
                    "its clock and this machine's differ by {away:?}; locks end by the server's clock, so if that clock is \
                     corrected by a step, locks end at once or last too long; run chrony or ntpd on both"
                ),
            ),
        ];
        let found = judged.into_iter().filter(|(is_found, ..)| *is_found);
        let findings = found.map(|(_, kind, text)| Finding::new(kind, None, text));
        findings.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_that_endangers_locks_is_one_finding() {
        let good = PostgresFacts {
            syncs: true,
            lags: false,
            vacuums: true,
            logs_keys: false,
            endless: false,
            oldest: Duration::from_secs(59),
            listens: true,
            clock: Reading {
                before: 20_000_000,
                server: 25_000_000,
                after: 20_001_000,
            },
        };
        let kinds = |facts: &PostgresFacts| -> Vec<FindingKind> {
            facts.findings().iter().map(Finding::kind).collect()
        };
        assert_eq!(kinds(&good), []);
        let bad = PostgresFacts {
            syncs: false,
            lags: true,
            vacuums: false,
            logs_keys: true,
            endless: true,
            oldest: LONG,
            listens: false,
            clock: Reading {
                server: 50_000_000,
                ..good.clock
            },
        };
        let all = [
            FindingKind::UnsyncedLog,
            FindingKind::AsynchronousStandby,
            FindingKind::NoVacuum,
            FindingKind::LogsKeys,
            FindingKind::EndlessTransactions,
            FindingKind::OldTransaction,
            FindingKind::MayNotSubscribe,
            FindingKind::ClockDiffers,
        ];
        assert_eq!(kinds(&bad), all);
    }
}
