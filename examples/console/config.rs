//! Reads the command line and the environment once and checks them.

use std::env;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

pub(crate) const HELP: &str = "\
Shows who holds locks, and frees them.

usage: cargo run --example console                                  a web page
       cargo run --example console -- list [pattern]                 such as 'order:*'; default: all
       cargo run --example console -- inspect <key>
       cargo run --example console -- force <key> <reason> [--holder <id>] [--yes]

  --holder     frees the key from this holder only; needed if there are several
  --yes        does not ask before it frees the key

exit codes: 0 done, 1 error, 2 wrong usage, 3 nothing was freed

environment:
  REDIS_URL    redis://, redis-sentinel://, redis-cluster:// or redlock://; without it the page shows some
               locks of its own
  DATABASE_URL postgres:// in place of REDIS_URL, with --features postgres
  NAMESPACE    the namespace of the locks; default lockkit:
  OPERATOR     your name, for the log; default the name of your account
  LISTEN       where the page is; default 127.0.0.1:3100. The page has no login: whoever reaches it may free
               any lock. Port 0 picks a free one
  HOST         a name under which a proxy serves the page, such as locks.example.com";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Help,
    Serve,
    List(String),
    Inspect(String),
    Force(Order),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) key: String,
    pub(crate) reason: String,
    pub(crate) holder: Option<String>,
    pub(crate) confirmed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) command: Command,
    pub(crate) store_url: Option<String>,
    pub(crate) namespace: Option<String>,
    pub(crate) operator: String,
    pub(crate) listen: SocketAddr,
    pub(crate) host: Option<String>,
}

/// Names the mistake and the correct form.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ConfigError(String);

pub(crate) fn from_process() -> Result<Config, ConfigError> {
    let args = env::args_os().skip(1);
    let args = args.map(|arg| arg.to_string_lossy().into_owned());
    parse(args, |name| {
        env::var_os(name).map(|value| value.to_string_lossy().into_owned())
    })
}

pub(crate) fn parse(
    args: impl Iterator<Item = String>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Config, ConfigError> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let listen = match set("LISTEN") {
        None => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 3100),
        Some(text) => text.parse().map_err(|_| {
            ConfigError(format!("LISTEN={text} is no address; write 127.0.0.1:3100"))
        })?,
    };
    Ok(Config {
        command: command(args)?,
        store_url: set("REDIS_URL").or_else(|| set("DATABASE_URL")),
        namespace: variable("NAMESPACE"),
        operator: set("OPERATOR")
            .or_else(|| set("USER"))
            .unwrap_or_else(|| "console".to_owned()),
        listen,
        host: set("HOST"),
    })
}

fn command(args: impl Iterator<Item = String>) -> Result<Command, ConfigError> {
    let (mut words, mut holder, mut confirmed) = (Vec::new(), None, false);
    let mut args = args;
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--help" | "-h" => return Ok(Command::Help),
            "--yes" => confirmed = true,
            "--holder" => {
                let id = args.next();
                holder = Some(id.ok_or_else(|| mistake("--holder needs an id"))?);
            }
            option if option.starts_with("--") => {
                return Err(mistake(&format!("there is no option {option}")));
            }
            _ => words.push(arg),
        }
    }
    let is_order = words.first().is_some_and(|word| word == "force");
    if !is_order && (confirmed || holder.is_some()) {
        return Err(mistake("--holder and --yes belong to force"));
    }
    let mut words = words.into_iter();
    let command = match (words.next().as_deref(), words.next(), words.next()) {
        (None, ..) => Command::Serve,
        (Some("list"), pattern, None) => Command::List(pattern.unwrap_or_else(|| "*".to_owned())),
        (Some("inspect"), Some(key), None) => Command::Inspect(key),
        (Some("force"), Some(key), Some(reason)) => Command::Force(Order {
            key,
            reason,
            holder,
            confirmed,
        }),
        (Some("force"), ..) => return Err(mistake("force needs a key and a reason")),
        (Some("inspect"), ..) => return Err(mistake("inspect needs one key")),
        (Some(other), ..) => return Err(mistake(&format!("there is no command {other}"))),
    };
    match words.next() {
        None => Ok(command),
        Some(word) => Err(mistake(&format!(
            "{word} is too much; put a key or a reason with spaces in quotes"
        ))),
    }
}

fn mistake(text: &str) -> ConfigError {
    ConfigError(text.to_owned())
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
