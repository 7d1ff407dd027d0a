//! Runs a redis-server for a pair that has no `REDIS_URL`.
//!
//! The server has a free port, a temporary folder and no persistence, and ends with the pair. If
//! a user kills the server, the shop answers 503 until this process has started it again.

use std::error::Error;
use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use crate::lifeline::Lifeline;

const START: Duration = Duration::from_secs(10);

/// The time in which a user can see 503 answers before the server returns.
const PAUSE_BEFORE_RESTART: Duration = Duration::from_secs(3);

/// The time that the shops have to release their locks when their parent ends without `quit`.
const GRACE_OF_ORPHANS: Duration = Duration::from_secs(3);

/// Runs a redis-server until the parent says `quit` or has gone.
pub(crate) async fn keep(program: &str) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let mut parent = Lifeline::to_parent();
    let (port, mut server) = start_on_a_free_port(program, folder.path()).await?;
    let mut out = std::io::stdout();
    writeln!(out, "ready redis://127.0.0.1:{port}")?;
    out.flush()?;

    let said = loop {
        tokio::select! {
            said = parent.next() => break said,
            status = server.wait() => {
                eprintln!("shop: {program} has ended ({}); the shop starts it again", status?);
                sleep(PAUSE_BEFORE_RESTART).await;
                server = start(program, port, folder.path()).await?;
            }
        }
    };
    if said.is_none() {
        sleep(GRACE_OF_ORPHANS).await;
    }
    server.kill().await?;
    Ok(())
}

/// Starts a server on a free port.
///
/// Another process may take the port between the search and Redis's bind. Then the function tries
/// another port.
async fn start_on_a_free_port(
    program: &str,
    folder: &Path,
) -> Result<(u16, Child), Box<dyn Error>> {
    let mut last = "no free port".into();
    for _ in 0..5 {
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        match start(program, port, folder).await {
            Ok(server) => return Ok((port, server)),
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn start(program: &str, port: u16, folder: &Path) -> Result<Child, Box<dyn Error>> {
    let mut server = Command::new(program)
        .args([
            "--port",
            &port.to_string(),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
        ])
        .arg("--dir")
        .arg(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| {
            format!(
                "cannot start {program} ({error}); install it, name another server program in \
                 REDIS_SERVER, or set REDIS_URL"
            )
        })?;
    let ready = async {
        while !answers(port).await {
            if let Some(status) = server.try_wait()? {
                return Err(format!("{program} on port {port} ended at once ({status})").into());
            }
            sleep(Duration::from_millis(20)).await;
        }
        Ok::<_, Box<dyn Error>>(())
    };
    timeout(START, ready)
        .await
        .map_err(|_| format!("{program} on port {port} did not answer within {START:?}"))??;
    Ok(server)
}

async fn answers(port: u16) -> bool {
    let ping = async {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.write_all(b"PING\r\n").await?;
        let mut pong = [0; 5];
        stream.read_exact(&mut pong).await?;
        std::io::Result::Ok(pong == *b"+PONG")
    };
    matches!(
        timeout(Duration::from_millis(500), ping).await,
        Ok(Ok(true))
    )
}
