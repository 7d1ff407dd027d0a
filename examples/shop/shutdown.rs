//! Waits for Ctrl-C or SIGTERM.

/// Returns a future that ends when a signal asks this process to stop.
///
/// The signal handlers are installed at the call and not at the first poll. The shop calls it
/// before it prints the opening line, so that no signal after that line is missed.
#[cfg(unix)]
pub(crate) fn requested() -> impl Future<Output = ()> {
    use tokio::signal::unix::{SignalKind, signal};

    let heard = |kind| {
        let signals = signal(kind);
        async move {
            match signals {
                Ok(mut signals) => {
                    signals.recv().await;
                }
                Err(_) => std::future::pending().await,
            }
        }
    };
    let (interrupted, terminated) = (
        heard(SignalKind::interrupt()),
        heard(SignalKind::terminate()),
    );
    async {
        tokio::select! {
            () = interrupted => {}
            () = terminated => {}
        }
    }
}

/// Returns when a signal asks this process to stop.
#[cfg(not(unix))]
pub(crate) async fn requested() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
