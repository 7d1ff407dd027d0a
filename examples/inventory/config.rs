//! The settings of a run, from the environment and the arguments.

use std::path::PathBuf;
use std::time::Duration;

use crate::Result;
use crate::db::Database;
use crate::load::Load;

pub(crate) struct Config {
    pub(crate) database: Database,
    pub(crate) redis_url: Option<String>,
    pub(crate) load: Load,
    pub(crate) plot: PathBuf,
}

impl Config {
    pub(crate) fn read() -> Result<Config> {
        let database = match std::env::var("DATABASE_URL") {
            Ok(url) => Database::of_url(&url)?,
            Err(_) => Database::sqlite()?,
        };
        let mut config = Config {
            database,
            redis_url: std::env::var("REDIS_URL").ok(),
            load: Load {
                sellers: 8,
                stock: 1000,
                work: Duration::from_millis(1),
            },
            plot: std::env::temp_dir().join("inventory.svg"),
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or(format!("{name} needs a value"))?;
            match name.as_str() {
                "--sellers" => config.load.sellers = at_least_one(&name, &value)?,
                "--stock" => config.load.stock = at_least_one(&name, &value)?,
                "--work-ms" => config.load.work = Duration::from_millis(value.parse()?),
                "--plot" => config.plot = value.into(),
                _ => return Err(format!("{name} is unknown").into()),
            }
        }
        Ok(config)
    }

    /// Describes the run in one line.
    pub(crate) fn subtitle(&self) -> String {
        let locks = match (&self.redis_url, self.database.locks()) {
            (Some(_), _) => "locks in Redis",
            (None, Some(_)) => "locks there too",
            (None, None) => "locks in the process",
        };
        format!(
            "{}, {locks}: {} sellers, {} items, {} ms of work in each sale",
            self.database.name(),
            self.load.sellers,
            self.load.stock,
            self.load.work.as_millis(),
        )
    }
}

fn at_least_one(name: &str, value: &str) -> Result<u32> {
    match value.parse() {
        Ok(0) | Err(_) => Err(format!("{name} must be a whole number above 0").into()),
        Ok(number) => Ok(number),
    }
}
