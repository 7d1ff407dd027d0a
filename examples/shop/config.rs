//! Reads the command line and the environment once and checks them.

use std::env;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) const HELP: &str = "\
A small shop that takes one order for a double click, with a web page to try it.

usage: cargo run --example shop [-- --pair]

  --pair       two processes on one store of locks and one database; the page sends one click to each, and
               has buttons that kill one
  --help       this text

environment:
  PORT         where to listen on 127.0.0.1: default 3000, 0 picks a free port and prints it
  REDIS_URL    redis://[user:password@]host:port[/db]; without it the locks live in this process
               (with --pair and none of the two the shop starts a redis-server of its own)
  DATABASE_URL postgres://user@host/database in place of REDIS_URL, with --features postgres
  REDIS_SERVER the program of that server: default redis-server; valkey-server works too
  SHOP_DAY     the length of the shop's day in seconds: default 30. One of all processes writes a
               report at its end
  SHOP_DB      the SQLite file of products and orders; default: a temporary one, gone at the end";

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Help,
    Serve(Config),
    Pair(Config),
    /// One of the two processes of a pair. It ends when its standard input ends.
    Child(Config),
    /// Keeps a redis-server, this program, for a pair, and ends when its standard input ends.
    Redis(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) port: u16,
    /// The place of the locks; `None`: in the process.
    pub(crate) store_url: Option<String>,
    pub(crate) db: Option<PathBuf>,
    /// The time from one nightly report to the next.
    pub(crate) day: Duration,
}

/// Names the mistake and the correct form.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ConfigError(String);

pub(crate) fn from_process() -> Result<Command, ConfigError> {
    let args = env::args_os()
        .skip(1)
        .map(|arg| arg.to_string_lossy().into_owned());
    parse(args, |name| {
        env::var_os(name).map(|value| value.to_string_lossy().into_owned())
    })
}

/// Names the place of the locks for readers, without a user name, a password or a query.
pub(crate) fn store_name(store_url: Option<&str>) -> String {
    let Some((scheme, rest)) = store_url.and_then(|url| url.split_once("://")) else {
        return "in this process".to_owned();
    };
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    if rest[end..].contains('@') {
        // A password may contain `?` and a query `@`. The two are indistinguishable, so neither is
        // shown.
        return format!("in {scheme}://…");
    }
    let place = rest[..end].rsplit('@').next().unwrap_or_default();
    let host = place.split('/').next().unwrap_or_default();
    let port = host
        .rsplit(']')
        .next()
        .and_then(|after| after.rsplit_once(':'));
    if port.is_some_and(|(_, port)| port.parse::<u16>().is_err()) {
        // In `user:password` without a host, the text in the place of the port may be a secret.
        return format!("in {scheme}://…");
    }
    format!("in {scheme}://{place}")
}

fn parse(
    args: impl Iterator<Item = String>,
    env: impl Fn(&str) -> Option<String>,
) -> Result<Command, ConfigError> {
    // Many shells and compose files set a variable to the empty string to unset it.
    let set = |name| env(name).filter(|value| !value.is_empty());
    let mut kind: fn(Config) -> Command = Command::Serve;
    for arg in args {
        kind = match arg.as_str() {
            "--help" | "-h" => return Ok(Command::Help),
            "--pair" => Command::Pair,
            "--pair-child" => Command::Child,
            "--pair-redis" => {
                let program = set("REDIS_SERVER").unwrap_or_else(|| "redis-server".to_owned());
                return Ok(Command::Redis(program));
            }
            other => {
                return Err(ConfigError(format!(
                    "unknown argument {other:?}; try --help"
                )));
            }
        };
    }
    let port = set("PORT").map_or(Ok(3000), |value| {
        value.parse().map_err(|_| {
            ConfigError(format!(
                "PORT must be a number from 0 to 65535, not {value:?}"
            ))
        })
    })?;
    let day = set("SHOP_DAY").map_or(Ok(30), |value| {
        let seconds = value.parse().ok().filter(|seconds| *seconds > 0);
        seconds.ok_or_else(|| {
            ConfigError(format!(
                "SHOP_DAY must be a number of seconds from 1, not {value:?}"
            ))
        })
    })?;
    let store_url = match (set("REDIS_URL"), set("DATABASE_URL")) {
        (Some(_), Some(_)) => {
            let both = "set REDIS_URL or DATABASE_URL, and not both";
            return Err(ConfigError(both.to_owned()));
        }
        (redis, database) => redis.or(database),
    };
    Ok(kind(Config {
        day: Duration::from_secs(day),
        port,
        store_url,
        db: set("SHOP_DB").map(PathBuf::from),
    }))
}

impl std::error::Error for ConfigError {}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Command, Config, parse, store_name};

    fn with(args: &[&str], env: &[(&str, &str)]) -> Result<Command, super::ConfigError> {
        let env: Vec<_> = env
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        parse(args.iter().map(|a| (*a).to_owned()), move |name| {
            env.iter().find(|(k, _)| k == name).map(|(_, v)| v.clone())
        })
    }

    #[test]
    fn without_settings_the_shop_serves_on_3000_with_locks_in_the_process() {
        let plain = Config {
            port: 3000,
            store_url: None,
            db: None,
            day: Duration::from_secs(30),
        };
        assert_eq!(with(&[], &[]), Ok(Command::Serve(plain.clone())));
        assert_eq!(
            with(&[], &[("PORT", ""), ("REDIS_URL", "")]),
            Ok(Command::Serve(plain))
        );
    }

    #[test]
    fn the_locks_are_in_the_redis_or_in_the_database_and_not_in_both() {
        let url = |env: &[_]| match with(&[], env) {
            Ok(Command::Serve(config)) => config.store_url,
            other => panic!("{other:?}"),
        };
        let redis = ("REDIS_URL", "redis://127.0.0.1:6379");
        let database = ("DATABASE_URL", "postgres://me@127.0.0.1/shop");
        assert_eq!(url(&[redis]).as_deref(), Some(redis.1));
        assert_eq!(url(&[database]).as_deref(), Some(database.1));
        let both = with(&[], &[redis, database]).expect_err("refused");
        assert!(both.to_string().contains("not both"), "{both}");
    }

    #[test]
    fn a_variable_names_the_server_that_a_pair_starts() {
        let server = |env: &[_]| with(&["--pair-redis"], env);
        let redis = Ok(Command::Redis("redis-server".to_owned()));
        assert_eq!(server(&[]), redis);
        assert_eq!(server(&[("REDIS_SERVER", "")]), redis);
        let valkey = Command::Redis("valkey-server".to_owned());
        assert_eq!(server(&[("REDIS_SERVER", "valkey-server")]), Ok(valkey));
    }

    #[test]
    fn bad_input_says_what_to_write() {
        for port in ["http", "-1", "65536", "3000 "] {
            let error = with(&[], &[("PORT", port)])
                .expect_err("refused")
                .to_string();
            assert!(error.contains("from 0 to 65535"), "{error}");
        }
        for day in ["0", "night", "-1"] {
            let error = with(&[], &[("SHOP_DAY", day)]).expect_err("refused");
            assert!(error.to_string().contains("seconds from 1"), "{error}");
        }
        let error = with(&["--pairs"], &[]).expect_err("refused").to_string();
        assert!(
            error.contains("--pairs") && error.contains("--help"),
            "{error}"
        );
    }

    #[test]
    fn the_name_of_the_store_holds_no_password() {
        assert_eq!(store_name(None), "in this process");
        assert_eq!(store_name(Some("memory:shop")), "in this process");
        assert_eq!(
            store_name(Some("redis://127.0.0.1:6379")),
            "in redis://127.0.0.1:6379"
        );
        assert_eq!(
            store_name(Some("rediss://me:p@ss@db.example/1?x=secret")),
            "in rediss://db.example/1"
        );
        assert_eq!(
            store_name(Some("redis://:pa?ss@db.example")),
            "in redis://…"
        );
        assert_eq!(store_name(Some("redis://me:secret")), "in redis://…");
        assert_eq!(store_name(Some("redis://[::1]")), "in redis://[::1]");
        assert_eq!(
            store_name(Some("redis://[::1]:6379/2")),
            "in redis://[::1]:6379/2"
        );
    }
}
