//! Keeps browsers for the next test, because a browser takes seconds of a processor to start.

use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fantoccini::Client;
use fantoccini::error::CmdError;
use tokio::runtime::{Builder, Runtime};

use super::driver::Driver;

/// A browser that no test has taken for this time ends.
const LASTS: Duration = Duration::from_secs(10);

/// The browsers that no test uses, and since when.
static IDLE: Mutex<Vec<(Instant, Session)>> = Mutex::new(Vec::new());

/// Runs the tasks of the clients. A client outlives the runtime of the test that has started it.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut builder = Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).enable_all().build();
    runtime.expect("a thread")
});

/// A browser, its driver and its client.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) client: Client,
    _driver: Driver,
}

impl Session {
    /// Takes a browser that no other test uses, or starts one.
    pub(super) async fn idle_or_new() -> Session {
        let idle = idle().pop();
        match idle {
            Some((_, session)) => session,
            None => {
                let driver = Driver::start();
                let started = RUNTIME.spawn(async {
                    Session {
                        client: driver.session().await,
                        _driver: driver,
                    }
                });
                started.await.expect("a browser")
            }
        }
    }

    /// Gives the browser a new window in place of its own one, and keeps it for the next test.
    pub(super) async fn leave_to_the_next_test(self) {
        if self.renew_window().await.is_err() {
            return self.end().await;
        }
        idle().push((Instant::now(), self));
        RUNTIME.spawn(async {
            tokio::time::sleep(LASTS).await;
            let over: Vec<_> = idle()
                .extract_if(.., |(since, _)| since.elapsed() >= LASTS)
                .collect();
            for (_, session) in over {
                session.end().await;
            }
        });
    }

    /// Opens a new window and closes the old one. Chromium forgets with a window the scripts that a test has set for its documents.
    async fn renew_window(&self) -> Result<(), CmdError> {
        self.client.delete_all_cookies().await?;
        let window = self.client.new_window(false).await?;
        self.client.close_window().await?;
        self.client.switch_to_window(window.handle).await
    }

    /// Ends the browser. A browser that is closed in order also removes its files outside the profile. The driver ends it in any
    /// case.
    pub(super) async fn end(self) {
        let _ = self.client.close().await;
    }
}

fn idle() -> MutexGuard<'static, Vec<(Instant, Session)>> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}
