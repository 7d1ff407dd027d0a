//! Standbys, and their promotion.

use std::net::SocketAddr;
use std::process::Command;

use super::{Kind, SqlServer, as_account, own_folder};
use crate::wait;

impl SqlServer {
    /// Starts a standby of a PostgreSQL with these settings. It copies the server at `address`, which may be a proxy in front
    /// of this one, and follows it on this way.
    ///
    /// # Panics
    ///
    /// When the copy fails, or when the standby does not follow.
    #[track_caller]
    pub fn standby(&self, address: SocketAddr, settings: &[&str]) -> SqlServer {
        let folder = own_folder();
        let data = folder.path().join("data").display().to_string();
        let way = format!("postgres://locks@{address}/postgres");
        let mut copy = as_account(&self.program.with_file_name("pg_basebackup"), folder.path());
        copy.args(["--dbname", &way, "--pgdata", &data]);
        copy.args(["--write-recovery-conf", "--wal-method=stream"]);
        run(copy.args(["--checkpoint=fast", "--no-sync"]));
        let standby = SqlServer::postgres_in(folder, self.program.clone(), settings);
        wait::until("the standby follows", || {
            self.value("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'") != "0"
        });
        standby
    }

    /// Has each commit wait for one of the standbys, whichever it is.
    ///
    /// # Panics
    ///
    /// When the server does not take the setting.
    #[track_caller]
    pub fn waits_for_a_standby(&self) {
        self.sql("ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (*)'");
        self.sql("SELECT pg_reload_conf()");
        wait::until("the standby is synchronous", || {
            self.value("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'quorum'")
                != "0"
        });
    }

    /// Makes a standby the primary, and returns when it takes writes.
    ///
    /// # Panics
    ///
    /// When it does not become one.
    #[track_caller]
    pub fn promote(&self) {
        assert_eq!(self.kind, Kind::Postgres, "only a PostgreSQL");
        let mut promote = as_account(&self.program.with_file_name("pg_ctl"), self.folder.path());
        promote.args(["promote", "--wait", "--pgdata"]);
        run(promote.arg(self.folder.path().join("data")));
    }
}

#[track_caller]
fn run(command: &mut Command) {
    let done = command.output().expect("a program of the server starts");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{command:?} fails:\n{said}");
}
