//! Reports that the comparison could not run, as `./test.sh` expects it.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::{env, io};

/// Records that the test did not run.
pub fn not_run(why: &str) {
    let line = format!("differential: {why}\n");
    // The test program captures `eprintln!` of a test that passes, but not this handle.
    let _ = io::stderr().write_all(format!("NOT RUN {line}").as_bytes());
    if let Some(file) = env::var_os("LOCK_TESTS_NOT_RUN") {
        let appended = OpenOptions::new().create(true).append(true).open(&file);
        appended
            .and_then(|mut file| file.write_all(line.as_bytes()))
            .expect("the list of tests that did not run can be written");
    }
}

/// Finds the servers to compare: `$REDIS_SERVERS`, with colons between, else `$REDIS_SERVER`, else `redis-server`.
pub fn servers() -> Result<Vec<PathBuf>, String> {
    if let Some(several) = env::var_os("REDIS_SERVERS") {
        return env::split_paths(&several).map(existing).collect();
    }
    let one = env::var_os("REDIS_SERVER").unwrap_or_else(|| "redis-server".into());
    Ok(vec![existing(PathBuf::from(one))?])
}

fn existing(program: PathBuf) -> Result<PathBuf, String> {
    on_search_path(&program).ok_or_else(|| format!("no {}", program.display()))
}

/// Finds the C compiler that builds the servers' clock.
pub fn compiler() -> Result<PathBuf, String> {
    if !cfg!(target_os = "linux") {
        return Err("a server can have a clock of its own on Linux only".to_owned());
    }
    let names = ["cc", "gcc", "clang"];
    let found = names
        .iter()
        .find_map(|name| on_search_path(Path::new(name)));
    found.ok_or_else(|| "no C compiler".to_owned())
}

fn on_search_path(name: &Path) -> Option<PathBuf> {
    if name.is_absolute() {
        return Some(name.to_owned()).filter(|path| path.is_file());
    }
    let folders = env::var_os("PATH")?;
    let mut paths = env::split_paths(&folders).map(|folder| folder.join(name));
    paths.find(|path| path.is_file())
}
