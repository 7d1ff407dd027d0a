//! Runs `--pair`: two processes of the shop on one Redis and one database.
//!
//! This process only starts and ends the two. Each child ends when its standard input ends, so
//! that no child outlives a killed parent.

use std::error::Error;
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};

use crate::config::{Config, store_name};
use crate::shutdown;
use crate::temp::TempFile;

/// The limit for the end of a child, longer than the shops take for their last requests and
/// releases.
const ENDING: Duration = Duration::from_secs(20);

pub(crate) async fn run(config: Config) -> Result<(), Box<dyn Error>> {
    let temporary = TempFile::new("sqlite")?;
    let db = config.db.as_deref().unwrap_or(temporary.path());
    match config.redis_url {
        Some(url) if url.starts_with("memory:") => {
            Err("--pair needs a Redis, because two processes cannot share a store in memory".into())
        }
        Some(url) => serve(config.port, &url, "", db).await,
        None => {
            let mut redis = Process::start(&["--pair-redis"], |_| {}).await?;
            let url = redis.ready.clone();
            let served = serve(config.port, &url, ", started for this run", db).await;
            // Redis ends after the shops, because they release their locks in it when they end.
            redis.say("quit").await.ok();
            redis.end().await;
            served
        }
    }
}

async fn serve(port: u16, url: &str, remark: &str, db: &Path) -> Result<(), Box<dyn Error>> {
    let asked = shutdown::requested();
    let mut first = Process::shop(port, url, db).await?;
    let mut second = Process::shop(next_port(port), url, db).await?;
    first.say(&format!("peer {}", second.ready)).await?;
    second.say(&format!("peer {}", first.ready)).await?;
    println!(
        "shop: open http://127.0.0.1:{}, its twin is http://127.0.0.1:{} (locks {}{remark})",
        first.ready,
        second.ready,
        store_name(Some(url)),
    );
    let asked = until_asked_or_both_gone(asked, &mut first, &mut second).await;
    tokio::join!(first.end(), second.end());
    if asked {
        Ok(())
    } else {
        Err("both processes have ended".into())
    }
}

/// Waits for the request to stop, or until both processes have ended.
///
/// One of them may be killed while the other keeps serving, so that a user can try that.
async fn until_asked_or_both_gone(
    asked: impl Future<Output = ()>,
    first: &mut Process,
    second: &mut Process,
) -> bool {
    let gone = async {
        tokio::join!(first.gone(), second.gone());
    };
    tokio::select! {
        () = asked => true,
        () = gone => false,
    }
}

/// Returns the port after the first one's if it is free.
///
/// So the user can guess the URL.
fn next_port(first: u16) -> u16 {
    let next = if first == 0 {
        0
    } else {
        first.saturating_add(1)
    };
    if TcpListener::bind(("127.0.0.1", next)).is_ok() {
        next
    } else {
        0
    }
}

/// A child: this program with another first argument.
///
/// A dropped child is not killed but loses its lifeline. So it can end the processes that it has
/// started.
struct Process {
    child: Child,
    lifeline: Option<ChildStdin>,
    /// The child's ready line: its port, or the URL of Redis.
    ready: String,
}

impl Process {
    async fn shop(port: u16, redis_url: &str, db: &Path) -> Result<Self, Box<dyn Error>> {
        Self::start(&["--pair-child"], |command| {
            command
                .env("PORT", port.to_string())
                .env("REDIS_URL", redis_url)
                .env("SHOP_DB", db);
        })
        .await
    }

    async fn start(
        args: &[&str],
        set_up: impl FnOnce(&mut Command),
    ) -> Result<Self, Box<dyn Error>> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        // The child has a process group of its own, because Ctrl-C is for this process, which then
        // ends its children in order.
        #[cfg(unix)]
        command.process_group(0);
        set_up(&mut command);
        let mut child = command.spawn()?;
        let lifeline = child.stdin.take();
        let stdout = child
            .stdout
            .take()
            .ok_or("a child without a standard output")?;
        let line = BufReader::new(stdout).lines().next_line().await?;
        // A child that ends without a line has already printed the error on our standard error.
        let ready = line
            .as_deref()
            .and_then(|line| line.strip_prefix("ready "))
            .ok_or("a part of the pair could not start")?;
        let ready = ready.to_owned();
        Ok(Self {
            child,
            lifeline,
            ready,
        })
    }

    async fn say(&mut self, line: &str) -> std::io::Result<()> {
        match &mut self.lifeline {
            Some(lifeline) => lifeline.write_all(format!("{line}\n").as_bytes()).await,
            None => Ok(()),
        }
    }

    async fn gone(&mut self) {
        if let Ok(status) = self.child.wait().await {
            eprintln!(
                "shop: the process on port {} has ended ({status})",
                self.ready
            );
        }
    }

    /// Closes the child's lifeline and waits for the child's end.
    async fn end(&mut self) {
        self.lifeline = None;
        if tokio::time::timeout(ENDING, self.child.wait())
            .await
            .is_err()
        {
            let _ = self.child.kill().await;
        }
    }
}
