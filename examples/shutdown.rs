//! Waits for Ctrl-C or SIGTERM.

/// Returns a future that ends with the number of the signal that asks this process to stop.
///
/// The call installs the handlers, before the first poll. The shop makes the call before it prints its opening line. So the shop
/// notices each signal that is sent behind that line.
#[cfg(unix)]
pub(crate) fn requested() -> impl Future<Output = u8> {
    use tokio::signal::unix::{SignalKind, signal};

    let heard = |kind: SignalKind, number| {
        let signals = signal(kind);
        async move {
            match signals {
                Ok(mut signals) => signals.recv().await,
                Err(_) => std::future::pending().await,
            };
            number
        }
    };
    let interrupted = heard(SignalKind::interrupt(), 2);
    let terminated = heard(SignalKind::terminate(), 15);
    async {
        tokio::select! {
            number = interrupted => number,
            number = terminated => number,
        }
    }
}

/// Returns when Ctrl-C asks this process to stop.
#[cfg(not(unix))]
pub(crate) async fn requested() -> u8 {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
    2
}
