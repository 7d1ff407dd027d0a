//! Collects log lines as text, from this thread or from all threads without a subscriber.

use std::io;
use std::sync::{Arc, Mutex, OnceLock};

use tracing::Dispatch;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::FmtSpan;

/// Collects lines while it lives. It sees the tasks of handlers only in a runtime of one thread.
pub(crate) struct ThisThread {
    log: Log,
    _subscribed: DefaultGuard,
    /// If the process has only one subscriber, tracing asks that of the *calling* thread whether it
    /// records a line when the line is first reached, and caches the answer for all threads. The
    /// thread of another test has no subscriber and would silence the line here.
    _second: Dispatch,
}

impl ThisThread {
    pub(crate) fn listen() -> Self {
        let second = Dispatch::new(tracing_subscriber::fmt().with_writer(io::sink).finish());
        let log = Log::default();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(log.clone())
            .with_max_level(tracing::Level::TRACE)
            .with_span_events(FmtSpan::FULL)
            .with_ansi(false)
            .finish();
        Self {
            log,
            _subscribed: tracing::subscriber::set_default(subscriber),
            _second: second,
        }
    }

    pub(crate) fn text(&self) -> String {
        self.log.text()
    }

    /// Returns the lines that contain these words.
    pub(crate) fn lines(&self, words: &str) -> Vec<String> {
        self.log.lines(words)
    }
}

/// Collects the warnings of lock-core's own threads from all tests together. Search for words that no
/// other test logs.
pub(crate) struct AllThreads(Log);

impl AllThreads {
    pub(crate) fn listen() -> Self {
        static LOG: OnceLock<Log> = OnceLock::new();
        let log = LOG.get_or_init(|| {
            let log = Log::default();
            let subscriber = tracing_subscriber::fmt()
                .with_writer(log.clone())
                .with_max_level(tracing::Level::WARN)
                .with_ansi(false)
                .finish();
            tracing::subscriber::set_global_default(subscriber).expect("set here only");
            log
        });
        Self(log.clone())
    }

    /// Returns the lines that contain these words.
    pub(crate) fn lines(&self, words: &str) -> Vec<String> {
        self.0.lines(words)
    }
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    fn lines(&self, words: &str) -> Vec<String> {
        let text = self.text();
        let lines = text.lines().filter(|line| line.contains(words));
        lines.map(str::to_owned).collect()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}
