//! Collects the log lines of a test, whose runtime has one thread.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use tracing::Dispatch;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;

pub(super) struct ThisThread {
    lines: Lines,
    _subscribed: DefaultGuard,
    /// With one subscriber in the process, tracing would cache what the thread that reaches a line first records.
    _second: Dispatch,
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl ThisThread {
    pub(super) fn listen() -> Self {
        let second = Dispatch::new(tracing_subscriber::fmt().with_writer(io::sink).finish());
        let lines = Lines::default();
        let subscriber = tracing_subscriber::fmt().with_writer(lines.clone());
        let subscriber = subscriber.with_ansi(false).finish();
        Self {
            lines,
            _subscribed: tracing::subscriber::set_default(subscriber),
            _second: second,
        }
    }

    /// Returns the lines that contain these words.
    pub(super) fn lines(&self, words: &str) -> Vec<String> {
        let text = self.lines.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&text);
        let lines = text.lines().filter(|line| line.contains(words));
        lines.map(str::to_owned).collect()
    }
}

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Lines {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}
