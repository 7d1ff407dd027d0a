//! Reports tests that could not run.

use std::any::type_name_of_val;
use std::env;
use std::fs;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Returns from the test when a part of the machine is missing.
///
/// The macro records the test and the reason.
///
/// Use: `needs!(redis)`, `needs!(browser)`.
///
/// The names are those of the functions of [`missing`](crate::missing) that look for the part. The test command
/// counts the records and fails, because a test that did not run has not passed.
#[macro_export]
macro_rules! needs {
    ($part:ident) => {
        if let Err(why) = $crate::missing::$part() {
            $crate::missing::not_run(&|| (), &why);
            return;
        }
    };
}

/// Finds the redis-server to start: `$REDIS_SERVER`, a path or a name, else `redis-server` on the search path.
///
/// # Errors
///
/// Names the missing part.
pub fn redis() -> Result<PathBuf, String> {
    chosen_or_found("REDIS_SERVER", &["redis-server"])
}

/// Checks that redis-server is Redis 7.0.5 or later, or Valkey.
///
/// An older one does not answer `SET … NX GET` and `PEXPIRETIME`, has no rights to read only, and reports no changes of
/// keys that a script has read.
///
/// # Errors
///
/// Names the missing part.
pub fn redis_7() -> Result<(), String> {
    static IS_7: OnceLock<Result<(), String>> = OnceLock::new();
    let look = || {
        let said = Command::new(redis()?).arg("--version").output();
        let said = said.map_err(|error| format!("redis-server does not start: {error}"))?;
        let said = String::from_utf8_lossy(&said.stdout);
        let version = said
            .split_whitespace()
            .find_map(|word| word.strip_prefix("v="));
        let numbers = version
            .unwrap_or_default()
            .split('.')
            .map_while(|it| it.parse().ok());
        match numbers.collect::<Vec<u32>>() >= vec![7, 0, 5] {
            true => Ok(()),
            false => Err("no redis-server of version 7.0.5 or later".to_owned()),
        }
    };
    IS_7.get_or_init(look).clone()
}

/// Checks that redis-server speaks TLS, because some builds do not.
///
/// # Errors
///
/// Names the missing part.
pub fn redis_with_tls() -> Result<(), String> {
    static SPEAKS: OnceLock<Result<(), String>> = OnceLock::new();
    let look = || {
        // The server ends at once in both cases, because it has no certificate.
        let ended = Command::new(redis()?)
            .args(["--port", "0", "--tls-port", "1"])
            .output();
        let ended = ended.map_err(|error| format!("redis-server does not start: {error}"))?;
        if String::from_utf8_lossy(&ended.stdout).contains("No tls-cert-file configured") {
            Ok(())
        } else {
            Err("no redis-server that was built with TLS".to_owned())
        }
    };
    SPEAKS.get_or_init(look).clone()
}

/// Finds the C compiler that builds the stepping clock of a [`ServerClock`](crate::ServerClock).
///
/// Only on Linux can a server have another clock.
///
/// # Errors
///
/// Names the missing part.
pub fn server_clock() -> Result<PathBuf, String> {
    if !cfg!(target_os = "linux") {
        return Err("a server can have a clock of its own on Linux only".to_owned());
    }
    let compilers = ["cc", "gcc", "clang"];
    let found = compilers.iter().find_map(|name| on_search_path(name));
    found.ok_or_else(|| "no C compiler".to_owned())
}

/// Checks that there are a browser and a driver for it: see [`chromium`] and [`chromedriver`].
///
/// # Errors
///
/// Names the missing part.
pub fn browser() -> Result<(), String> {
    chromium().and(chromedriver()).map(drop)
}

/// Finds the Chromium to drive: `$CHROMIUM`, else the first one found.
///
/// # Errors
///
/// Names the missing part.
pub fn chromium() -> Result<PathBuf, String> {
    const NAMES: [&str; 7] = [
        "chromium",
        "chromium-browser",
        "google-chrome",
        "google-chrome-stable",
        "chrome",
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
        "/Applications/Chromium.app/Contents/MacOS/Chromium",
    ];
    chosen_or_found("CHROMIUM", &NAMES)
}

/// Finds the driver for Chromium: `$CHROMEDRIVER`, else the one on the search path.
///
/// # Errors
///
/// Names the missing part.
pub fn chromedriver() -> Result<PathBuf, String> {
    chosen_or_found("CHROMEDRIVER", &["chromedriver"])
}

/// Finds curl, which plays clients that know nothing of the kit.
///
/// # Errors
///
/// Names the missing part.
pub fn curl() -> Result<PathBuf, String> {
    chosen_or_found("CURL", &["curl"])
}

/// Finds the server of PostgreSQL: `$POSTGRES`, else the one on the search path or in a usual folder.
///
/// # Errors
///
/// Names the missing part.
pub fn postgres() -> Result<PathBuf, String> {
    // Systems that can have several versions keep them off the search path.
    const FOLDERS: [&str; 3] = ["/usr/lib/postgresql", "/opt/homebrew/opt", "/usr/local/opt"];
    let versions = FOLDERS
        .iter()
        .filter_map(|folder| fs::read_dir(folder).ok());
    let paths = versions.flatten().flatten().map(|entry| entry.path());
    let newest = paths
        .map(|path| path.join("bin/postgres"))
        .filter(|path| path.is_file())
        .max();
    match (chosen_or_found("POSTGRES", &["postgres"]), newest) {
        (Err(_), Some(newest)) if env::var_os("POSTGRES").is_none() => Ok(newest),
        (found, _) => found,
    }
}

/// Finds pgbouncer: `$PGBOUNCER`, else the one on the search path or in its usual folder.
///
/// # Errors
///
/// Names the missing part.
pub fn pgbouncer() -> Result<PathBuf, String> {
    chosen_or_found("PGBOUNCER", &["pgbouncer", "/usr/sbin/pgbouncer"])
}

/// Finds the server of MariaDB: `$MARIADB`, else the one on the search path or in its usual folder.
///
/// # Errors
///
/// Names the missing part.
pub fn mariadb() -> Result<PathBuf, String> {
    chosen_or_found("MARIADB", &["mariadbd", "/usr/sbin/mariadbd"])
}

/// Records that the test which made `here` did not run. [`needs!`](crate::needs) calls it.
///
/// # Panics
///
/// When the line cannot be written, because a test that could not run must not pass unnoticed.
pub fn not_run(here: &impl Fn(), why: &str) {
    let line = format!("{}: {why}\n", test_name(type_name_of_val(here)));
    // libtest captures `eprintln!` of a test that passes, but not this handle.
    let _ = std::io::stderr().write_all(format!("NOT RUN {line}").as_bytes());

    if let Some(file) = env::var_os("LOCK_TESTS_NOT_RUN") {
        let appended = OpenOptions::new().create(true).append(true).open(&file);
        // One write keeps the lines of concurrent tests whole.
        appended
            .and_then(|mut file| file.write_all(line.as_bytes()))
            .unwrap_or_else(|error| panic!("{} cannot be written: {error}", file.display()));
    }
}

fn test_name(closure: &str) -> &str {
    // The body of an async test is itself a closure.
    closure.trim_end_matches("::{{closure}}")
}

fn chosen_or_found(variable: &str, names: &[&str]) -> Result<PathBuf, String> {
    if let Some(chosen) = env::var_os(variable) {
        // The tests run in other folders than the caller, so a relative path would name another file.
        let name = chosen.to_string_lossy();
        return on_search_path(&name).ok_or_else(|| {
            format!(
                "${variable} is {name:?}, neither an absolute path nor a program on the search path"
            )
        });
    }
    let found = names.iter().find_map(|name| on_search_path(name));
    found.ok_or_else(|| format!("no {}", names[0]))
}

fn on_search_path(name: &str) -> Option<PathBuf> {
    if Path::new(name).is_absolute() {
        return Some(PathBuf::from(name)).filter(|path| path.is_file());
    }
    let folders = env::var_os("PATH")?;
    env::split_paths(&folders)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}
