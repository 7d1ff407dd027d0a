//! Starts chromedriver and sets up the browser that it starts.

use std::process::Command;

use fantoccini::wd::Capabilities;
use fantoccini::{Client, ClientBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::json;
use tempfile::TempDir;

use crate::{ChildProcess, Port, folder, missing, wait};

const FLAGS: [&str; 14] = [
    "--headless=new",
    // Containers and root have no sandbox. Containers have little shared memory.
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--window-size=1280,1600",
    // Loopback only: only names of this machine resolve, and the browser sends no request of
    // its own.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost",
    "--no-proxy-server",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
];

/// A driver process and the folder of its browser's profile.
#[derive(Debug)]
pub(super) struct Driver {
    // The process ends before its folder is removed.
    process: ChildProcess,
    port: Port,
    profile: TempDir,
}

impl Driver {
    pub(super) fn start() -> Driver {
        let program = missing::chromedriver().unwrap_or_else(|why| panic!("{why}"));
        let profile = folder::temporary();
        let mut command = Command::new(program);
        // With port 0 the driver takes a port that is free for IPv6, and ends if another server has it for IPv4.
        let port = Port::free();
        command
            .arg(format!("--port={}", port.number()))
            // If the tests end without this browser's end, its watchdog removes the folder.
            .current_dir(profile.path())
            .env("TMPDIR", profile.path())
            .env("HOME", profile.path());
        let process = ChildProcess::spawn(command);
        let started = process.line(wait::PATIENCE, |line| line.contains("started successfully"));
        assert!(started.is_some(), "no driver:\n{}", process.output());
        Driver {
            process,
            port,
            profile,
        }
    }

    pub(super) async fn session(&self) -> Client {
        let profile = self.profile.path().join("profile");
        let flags = FLAGS.iter().map(|flag| (*flag).to_owned());
        let flags: Vec<_> = flags
            .chain([format!("--user-data-dir={}", profile.display())])
            .collect();
        let program = missing::chromium().unwrap_or_else(|why| panic!("{why}"));
        let mut capabilities = Capabilities::new();
        let options = json!({ "args": flags, "binary": program });
        capabilities.insert("goog:chromeOptions".to_owned(), options);

        let session = ClientBuilder::new(HttpConnector::new())
            .capabilities(capabilities)
            .connect(&format!("http://127.0.0.1:{}", self.port.number()))
            .await;
        session.unwrap_or_else(|error| panic!("no browser: {error}\n{}", self.process.output()))
    }
}
