//! PostgreSQL, without TLS.

use std::collections::HashMap;

use lock_core::LockGuard;
use postgres::error::SqlState;
use postgres::types::ToSql;
use postgres::{Client, NoTls, Statement};

use super::{Session, Written};
use crate::Result;

pub(super) struct Postgres {
    client: Client,
    /// Each statement is prepared once, as a pool of connections does it.
    prepared: HashMap<String, Statement>,
}

impl Postgres {
    pub(super) fn connect(url: &str) -> Result<Postgres> {
        let client = Client::connect(url, NoTls)?;
        Ok(Postgres {
            client,
            prepared: HashMap::new(),
        })
    }

    fn prepare(&mut self, statement: &str) -> Result<Statement> {
        if let Some(prepared) = self.prepared.get(statement) {
            return Ok(prepared.clone());
        }
        let prepared = self.client.prepare(&numbered(statement))?;
        self.prepared.insert(statement.to_owned(), prepared.clone());
        Ok(prepared)
    }
}

impl Session for Postgres {
    fn run(&mut self, statement: &str) -> Result<()> {
        Ok(self.client.batch_execute(statement)?)
    }

    fn write(&mut self, statement: &str, values: &[i64]) -> Result<Written> {
        let statement = self.prepare(statement)?;
        let done = self.client.execute(&statement, &parameters(values));
        let refusals = [
            &SqlState::UNIQUE_VIOLATION,
            &SqlState::T_R_DEADLOCK_DETECTED,
        ];
        match done {
            Ok(rows) => Ok(Written::Rows(rows)),
            Err(error) if error.code().is_some_and(|code| refusals.contains(&code)) => {
                Ok(Written::Refused)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn read(&mut self, statement: &str, values: &[i64]) -> Result<Option<Vec<i64>>> {
        let statement = self.prepare(statement)?;
        let row = self.client.query_opt(&statement, &parameters(values))?;
        let numbers = row.map(|row| (0..row.len()).map(|column| row.try_get(column)).collect());
        Ok(numbers.transpose()?)
    }

    fn holds(&mut self, guard: &LockGuard) -> Result<bool> {
        let fence = i64::from(guard.fencing_token());
        let sql = guard.check_sql()?;
        let row = self.client.query_opt(sql, &[&guard.key(), &fence])?;
        Ok(row.is_some())
    }
}

fn parameters(values: &[i64]) -> Vec<&(dyn ToSql + Sync)> {
    values.iter().map(|value| value as _).collect()
}

/// Replaces each `?` by `$1`, `$2` and so on.
fn numbered(statement: &str) -> String {
    let mut parts = statement.split('?');
    let mut numbered = parts.next().unwrap_or_default().to_owned();
    for (index, part) in parts.enumerate() {
        numbered += &format!("${}{part}", index + 1);
    }
    numbered
}
