//! Runs one process of the shop, from its opening line to its last release.

use std::error::Error;
use std::io::Write;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use lock_core::LockManager;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::app::{self, Shop};
use crate::config::{Config, store_name};
use crate::db::Db;
use crate::lifeline::Lifeline;
use crate::metrics;
use crate::nights;
use crate::pool;
use crate::shutdown;
use crate::sqlite::Sqlite;

/// The time that requests under way have when the shop is asked to stop.
const LAST_REQUESTS: Duration = Duration::from_secs(10);

/// The time that the last releases have after them.
const LAST_RELEASES: Duration = Duration::from_secs(5);

/// Serves until a signal asks the process to stop.
pub(crate) async fn alone(config: Config) -> Result<(), Box<dyn Error>> {
    run(config, None).await
}

/// Serves until the parent has gone or a signal asks the process to stop.
pub(crate) async fn as_child(config: Config) -> Result<(), Box<dyn Error>> {
    run(config, Some(Lifeline::to_parent())).await
}

async fn run(config: Config, parent: Option<Lifeline>) -> Result<(), Box<dyn Error>> {
    let metrics = metrics::install()?;
    let url = config.store_url.as_deref();
    let locks = LockManager::connect(url.unwrap_or("memory:"))
        .await
        .map_err(|error| format!("the store of the locks ({}): {error}", store_name(url)))?;
    // SQLite puts its journal beside the file, so the file has a folder, which is removed at the end.
    let (path, _folder) = match config.db.clone() {
        Some(path) => (path, None),
        None => {
            let folder = tempfile::tempdir()?;
            (folder.path().join("shop.sqlite"), Some(folder))
        }
    };
    let db = Db::open(path.clone()).await?;
    let once = Sqlite::new(pool::open(&path)?);
    lock_core::once::create_table(&once).await?;

    let listener = TcpListener::bind(("127.0.0.1", config.port))
        .await
        .map_err(|error| {
            format!(
                "cannot listen on 127.0.0.1:{}: {error}; PORT=0 picks a free port",
                config.port
            )
        })?;
    let port = listener.local_addr()?.port();

    let shop = Shop {
        db,
        once,
        locks,
        metrics,
        day: config.day,
        store: store_name(url).into(),
        in_pair: parent.is_some(),
        peer: Arc::new(OnceLock::new()),
    };
    let (router, in_flight) = app::router(shop.clone())?;
    tokio::spawn(nights::take_part(shop.clone(), port, config.day));
    let parented = parent.is_some();
    let stop = stop_signal(parent, &shop);
    say_where(port, parented, &config)?;

    let server = axum::serve(listener, router).with_graceful_shutdown(stopped(stop.clone()));
    let served = async {
        server.await?;
        // The server waits for its clients, but not for the requests of clients that have gone. Those
        // end before the locks are drained, because an order under way may still need locks.
        for under_way in in_flight {
            under_way.drain(LAST_REQUESTS).await;
        }
        std::io::Result::Ok(())
    };
    tokio::select! {
        ended = served => ended?,
        () = async { stopped(stop).await; tokio::time::sleep(LAST_REQUESTS).await } => {
            eprintln!("shop: some requests were still under way after {LAST_REQUESTS:?}");
        }
    }
    let left = shop.locks.drain(LAST_RELEASES).await;
    if !left.is_complete() {
        eprintln!(
            "shop: {} locks are still held and {} not yet released; they end with their ttl",
            left.held(),
            left.releasing(),
        );
    }
    Ok(())
}

/// Prints the opening line. A child prints only its port, because the parent prints the line for
/// both.
fn say_where(port: u16, parented: bool, config: &Config) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    if parented {
        writeln!(out, "ready {port}")?;
    } else {
        let store = store_name(config.store_url.as_deref());
        let orders = match &config.db {
            Some(path) => path.display().to_string(),
            None => "a temporary database".to_owned(),
        };
        writeln!(
            out,
            "shop: open http://127.0.0.1:{port} (locks {store}, orders in {orders})"
        )?;
    }
    out.flush()
}

/// Becomes true when it is time to stop. Before that, a child receives the port of its twin here.
fn stop_signal(parent: Option<Lifeline>, shop: &Shop) -> watch::Receiver<bool> {
    let (stop, stopping) = watch::channel(false);
    let peer = Arc::clone(&shop.peer);
    let requested = shutdown::requested();
    tokio::spawn(async move {
        tokio::select! {
            _ = requested => {}
            () = orphaned(parent, &peer) => {}
        }
        let _ = stop.send(true);
    });
    stopping
}

async fn orphaned(parent: Option<Lifeline>, peer: &OnceLock<u16>) {
    let Some(mut parent) = parent else {
        return std::future::pending().await;
    };
    while let Some(line) = parent.next().await {
        if let Some(port) = line
            .strip_prefix("peer ")
            .and_then(|port| port.parse().ok())
        {
            let _ = peer.set(port);
        }
    }
}

async fn stopped(mut stop: watch::Receiver<bool>) {
    // An error means that the sender has gone, which happens only at the end of the runtime.
    let _ = stop.wait_for(|stop| *stop).await;
}
