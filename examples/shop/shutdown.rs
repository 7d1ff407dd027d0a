//! When to stop: Ctrl-C or SIGTERM.

/// A future that ends when somebody asks this process to stop.
///
/// Counts from the call on, not from the first poll: called before the opening line is printed, no
/// one who has read that line can be too early.
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

/// A future that ends when somebody asks this process to stop.
#[cfg(not(unix))]
pub(crate) async fn requested() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
