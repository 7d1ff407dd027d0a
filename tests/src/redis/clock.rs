//! Gives servers a clock that a test can step.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::{RedisOptions, folder, missing};

/// The time of day of the servers that were started with [`RedisOptions::clock`].
///
/// The clock is that of the machine until a test steps it. Say [`needs!(server_clock)`](crate::needs) first.
#[derive(Debug, Clone)]
pub struct ServerClock(Arc<Clock>);

#[derive(Debug)]
struct Clock {
    folder: TempDir,
    /// A file of eight bytes, which the servers map.
    file: File,
    ahead: AtomicI64,
}

impl ServerClock {
    /// Makes a clock that is right.
    ///
    /// # Panics
    ///
    /// When the library that the servers load cannot be compiled.
    #[track_caller]
    pub fn new() -> ServerClock {
        let compiler = missing::server_clock().unwrap_or_else(|why| panic!("{why}"));
        let folder = folder::temporary();
        let source = folder.path().join("clock.c");
        fs::write(&source, include_str!("clock.c")).expect("a folder to write in");
        let compiled = Command::new(compiler)
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .arg(folder.path().join("clock.so"))
            .arg(&source)
            .output()
            .expect("a compiler");
        let said = String::from_utf8_lossy(&compiled.stderr);
        assert!(
            compiled.status.success(),
            "clock.c does not compile:\n{said}"
        );
        let file = File::create(folder.path().join("step")).expect("a folder to write in");
        let clock = ServerClock(Arc::new(Clock {
            folder,
            file,
            ahead: AtomicI64::new(0),
        }));
        clock.step(0);
        clock
    }

    /// Steps the clock forward.
    pub fn step_ahead(&self, by: Duration) {
        self.step(i64::try_from(by.as_micros()).expect("a step of less than an age"));
    }

    /// Steps the clock back.
    pub fn step_back(&self, by: Duration) {
        self.step(-i64::try_from(by.as_micros()).expect("a step of less than an age"));
    }

    /// Makes the process that the command starts take its time of day from this clock.
    pub fn applies_to(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", self.path("clock.so"))
            .env("LOCK_TESTS_CLOCK", self.path("step"));
    }

    fn step(&self, micros: i64) {
        let Clock { file, ahead, .. } = &*self.0;
        let ahead = ahead.fetch_add(micros, Ordering::SeqCst) + micros;
        file.write_all_at(&ahead.to_ne_bytes(), 0)
            .expect("a folder to write in");
        // Valkey 9.1 reads the time of day once in a millisecond of the monotonic clock, which does not step.
        thread::sleep(Duration::from_millis(2));
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.folder.path().join(name)
    }
}

impl Default for ServerClock {
    fn default() -> Self {
        ServerClock::new()
    }
}

impl RedisOptions {
    /// Makes the server take its time from this clock.
    #[must_use]
    pub fn clock(mut self, clock: &ServerClock) -> Self {
        self = self.env("LD_PRELOAD", &clock.path("clock.so").display().to_string());
        self = self.env(
            "LOCK_TESTS_CLOCK",
            &clock.path("step").display().to_string(),
        );
        self.clock = Some(clock.clone());
        self
    }
}
