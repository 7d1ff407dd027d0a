//! MySQL and MariaDB, without TLS.

use mysql::prelude::Queryable;
use mysql::{Conn, Error, Opts, OptsBuilder, Params, Row, Value};

use super::{Session, Written};
use crate::Result;

/// The numbers of the errors "duplicate entry" and "deadlock found".
const REFUSALS: [u16; 2] = [1062, 1213];

pub(super) struct MySql(Conn);

impl MySql {
    pub(super) fn connect(url: &str) -> Result<MySql> {
        let options = OptsBuilder::from_opts(Opts::from_url(url)?);
        // Without this flag the server counts only rows whose values have changed.
        let found_rows = mysql::consts::CapabilityFlags::CLIENT_FOUND_ROWS;
        let options = options.additional_capabilities(found_rows);
        Ok(MySql(Conn::new(options)?))
    }
}

impl Session for MySql {
    fn run(&mut self, statement: &str) -> Result<()> {
        Ok(self.0.query_drop(statement)?)
    }

    fn write(&mut self, statement: &str, values: &[i64]) -> Result<Written> {
        match self.0.exec_drop(statement, parameters(values)) {
            Ok(()) => Ok(Written::Rows(self.0.affected_rows())),
            Err(Error::MySqlError(error)) if REFUSALS.contains(&error.code) => Ok(Written::Refused),
            Err(error) => Err(error.into()),
        }
    }

    fn read(&mut self, statement: &str, values: &[i64]) -> Result<Option<Vec<i64>>> {
        let row: Option<Row> = self.0.exec_first(statement, parameters(values))?;
        let numbers = |row: Row| {
            let values = row.unwrap().into_iter();
            values
                .map(|value| Ok(mysql::from_value_opt(value)?))
                .collect()
        };
        row.map(numbers).transpose()
    }
}

fn parameters(values: &[i64]) -> Params {
    match values {
        // The driver refuses an empty list.
        [] => Params::Empty,
        values => Params::Positional(values.iter().map(|value| Value::from(*value)).collect()),
    }
}
