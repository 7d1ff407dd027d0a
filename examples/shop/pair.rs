//! Runs `--pair`: two processes of the shop on one Redis and one database.
//!
//! This process only starts and ends the two. It starts each again when it has ended, and kills one that
//! asks for it. Each child ends when its standard input ends, so that no child outlives a killed parent.

use std::error::Error;
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::config::{Config, store_name};
use crate::kill;
use crate::shutdown;

/// The pause before a child is started again.
///
/// A browser repeats a request at once if its connection ends without an answer. It must find no process on the port then,
/// because this request may be the one that has the process killed.
const AWAY: Duration = Duration::from_secs(1);

/// The limit for the end of a child, longer than the shops take for their last requests and
/// releases.
const ENDING: Duration = Duration::from_secs(20);

pub(crate) async fn run(config: Config) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let temporary = folder.path().join("shop.sqlite");
    let db = config.db.as_deref().unwrap_or(&temporary);
    match config.store_url {
        Some(url) if url.starts_with("memory:") => {
            Err("--pair needs a Redis or a PostgreSQL, because two processes cannot share a store in memory".into())
        }
        Some(url) => serve(config.port, &url, "", db).await,
        None => {
            let mut redis = Process::spawn(&["--pair-redis"], |_| {})?;
            let url = redis.ready().await?;
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
    let mut first = Process::shop(port, url, db)?;
    let here: u16 = first.ready().await?.parse()?;
    let mut second = Process::shop(next_port(port), url, db)?;
    let twin: u16 = second.ready().await?.parse()?;
    first.say_peer(twin).await?;
    second.say_peer(here).await?;
    println!(
        "shop: open http://127.0.0.1:{here}, its twin is http://127.0.0.1:{twin} (locks {}{remark})",
        store_name(Some(url)),
    );
    tokio::select! {
        _ = asked => {}
        () = keep(&mut first, here, twin, url, db) => {}
        () = keep(&mut second, twin, here, url, db) => {}
    }
    tokio::join!(first.end(), second.end());
    Ok(())
}

/// Starts a shop again whenever it has ended. The other one keeps serving meanwhile.
async fn keep(shop: &mut Process, port: u16, peer: u16, url: &str, db: &Path) {
    loop {
        let status = shop.ended().await;
        eprintln!("shop: the process on port {port} has ended ({status})");
        tokio::time::sleep(AWAY).await;
        match start_again(shop, port, peer, url, db).await {
            Ok(()) => eprintln!("shop: the process on port {port} is back"),
            Err(error) => eprintln!("shop: the process on port {port} is not back: {error}"),
        }
    }
}

async fn start_again(
    shop: &mut Process,
    port: u16,
    peer: u16,
    url: &str,
    db: &Path,
) -> Result<(), Box<dyn Error>> {
    *shop = Process::shop(port, url, db)?;
    shop.ready().await?;
    Ok(shop.say_peer(peer).await?)
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
    says: Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn shop(port: u16, store_url: &str, db: &Path) -> Result<Self, Box<dyn Error>> {
        Self::spawn(&["--pair-child"], |command| {
            command
                .env("PORT", port.to_string())
                .env("REDIS_URL", store_url)
                .env_remove("DATABASE_URL")
                .env("SHOP_DB", db);
        })
    }

    fn spawn(args: &[&str], set_up: impl FnOnce(&mut Command)) -> Result<Self, Box<dyn Error>> {
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
        let stdout = child.stdout.take();
        let stdout = stdout.ok_or("a child without a standard output")?;
        Ok(Self {
            lifeline: child.stdin.take(),
            says: BufReader::new(stdout).lines(),
            child,
        })
    }

    /// Waits for the child's ready line, and returns its port, or the URL of Redis.
    async fn ready(&mut self) -> Result<String, Box<dyn Error>> {
        let line = self.says.next_line().await?;
        // A child that ends without a line has already printed the error on our standard error.
        let ready = line
            .as_deref()
            .and_then(|line| line.strip_prefix("ready "))
            .ok_or("a part of the pair could not start")?;
        Ok(ready.to_owned())
    }

    async fn say(&mut self, line: &str) -> std::io::Result<()> {
        match &mut self.lifeline {
            Some(lifeline) => lifeline.write_all(format!("{line}\n").as_bytes()).await,
            None => Ok(()),
        }
    }

    async fn say_peer(&mut self, port: u16) -> std::io::Result<()> {
        self.say(&format!("peer {port}")).await
    }

    /// Waits for the end of the child, and kills it as soon as it asks for that.
    async fn ended(&mut self) -> String {
        while let Ok(Some(line)) = self.says.next_line().await {
            if line == kill::LINE {
                let _ended_by_itself = self.child.start_kill();
            }
        }
        let status = self.child.wait().await;
        status.map_or_else(|error| error.to_string(), |status| status.to_string())
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
