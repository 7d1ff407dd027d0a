//! Runs the parts of the network that a test plays on a runtime of their own.

use std::thread::JoinHandle;

use tokio::sync::oneshot;

/// A future on a thread and runtime of its own, which end when this value is dropped.
///
/// Many tests block, pause or shut down their own runtime, and the network must not notice.
#[derive(Debug)]
pub(crate) struct NetworkThread {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl NetworkThread {
    pub(crate) fn spawn(work: impl Future<Output = ()> + Send + 'static) -> NetworkThread {
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                tokio::select! {
                    () = work => {}
                    _ = stopped => {}
                }
            });
        });
        NetworkThread {
            stop: Some(stop),
            thread: Some(thread),
        }
    }
}

impl Drop for NetworkThread {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
