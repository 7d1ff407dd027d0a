//! The example shop as a process: what `cargo run --example shop` starts.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::{ChildProcess, wait};

/// How to start the shop; [`ShopProcess::options`] makes one.
#[derive(Debug, Clone, Default)]
pub struct ShopOptions {
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
}

impl ShopOptions {
    /// An argument, as `--pair`.
    #[must_use]
    pub fn arg(mut self, argument: &str) -> Self {
        self.arguments.push(argument.to_owned());
        self
    }

    /// A variable in its environment. `PORT` is 0 unless set here, and `REDIS_URL` is unset.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Starts the shop and waits for nothing: it may be one that must not come up.
    ///
    /// # Panics
    ///
    /// When the example cannot be built.
    #[track_caller]
    pub fn spawn(self) -> ChildProcess {
        let mut command = Command::new(binary());
        command
            .env_remove("REDIS_URL")
            .env_remove("SHOP_DB")
            .env("PORT", "0")
            .args(&self.arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)));
        ChildProcess::spawn(command)
    }

    /// Starts the shop and waits for its opening line.
    ///
    /// # Panics
    ///
    /// When the example cannot be built, ends at once or does not say where it listens.
    #[track_caller]
    pub fn start(self) -> ShopProcess {
        let child = self.spawn();
        let opening = child.line(wait::PATIENCE, |line| !ports_in(line).is_empty());
        let opening = opening.unwrap_or_else(|| panic!("no opening line:\n{}", child.output()));
        ShopProcess {
            ports: ports_in(&opening),
            opening,
            child,
        }
    }
}

/// A running shop, ended with its own children when this is dropped.
#[derive(Debug)]
pub struct ShopProcess {
    child: ChildProcess,
    opening: String,
    ports: Vec<u16>,
}

impl ShopProcess {
    /// A shop on its embedded store; panics as [`ShopOptions::start`] does.
    #[track_caller]
    pub fn start() -> ShopProcess {
        ShopProcess::options().start()
    }

    /// The way to a shop with arguments or an environment.
    pub fn options() -> ShopOptions {
        ShopOptions::default()
    }

    /// The line it opened with.
    pub fn opening(&self) -> &str {
        &self.opening
    }

    /// The port it listens on; the first, if its opening line names several.
    pub fn port(&self) -> u16 {
        self.ports[0]
    }

    /// All ports its opening line names.
    pub fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// `http://127.0.0.1:<port>`.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port())
    }

    /// Its process, to be killed, asked to end, frozen or read from.
    pub fn process(&mut self) -> &mut ChildProcess {
        &mut self.child
    }
}

/// The numbers after `http://<host>:` in a line.
fn ports_in(line: &str) -> Vec<u16> {
    let port = |after: &str| {
        let authority = after.split(['/', ' ']).next()?;
        let digits = authority.rsplit_once(':')?.1;
        let end = digits
            .find(|it: char| !it.is_ascii_digit())
            .unwrap_or(digits.len());
        digits[..end].parse().ok()
    };
    line.split("http://").skip(1).filter_map(port).collect()
}

/// The built example, from the source as it is now.
///
/// Cargo builds examples along with the tests of their own package only; a test of this one must
/// not drive a shop of last week. The build is asked for as the test command asks for it, so that
/// there it has nothing to do.
fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let profile_folder = profile_folder();
        // Cargo tells the tests that it runs where it is; without it, there is what there is.
        if let Some(cargo) = env::var_os("CARGO") {
            build(Command::new(cargo), &profile_folder);
        }
        let binary = profile_folder.join("examples").join("shop");
        assert!(binary.is_file(), "{} is not built", binary.display());
        binary
    })
}

/// `target/debug`, from the path of this test: `target/debug/deps/it-<hash>`.
fn profile_folder() -> PathBuf {
    let this = env::current_exe().expect("the test's own path");
    let folder = this.ancestors().nth(2).expect("a folder above deps");
    folder.to_owned()
}

fn build(mut cargo: Command, profile_folder: &Path) {
    let target_folder = profile_folder.parent().expect("a target folder");
    cargo
        .args([
            "build",
            "--workspace",
            "--all-features",
            "--example",
            "shop",
            "--locked",
        ])
        .arg("--target-dir")
        .arg(target_folder)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    if profile_folder.ends_with("release") {
        cargo.arg("--release");
    }
    let built = cargo.output().expect("cargo starts");
    let errors = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "the shop does not build:\n{errors}");
}
