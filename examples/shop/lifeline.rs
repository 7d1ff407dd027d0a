//! How a child of a pair knows that its parent has gone: its standard input ends. That holds for
//! Ctrl-C, `kill` and `kill -9` of the parent alike, without a signal of any one system.

use std::io::BufRead;
use std::thread;

use tokio::sync::mpsc;

/// What the parent says, a line at a time; its end is the end of the parent.
#[derive(Debug)]
pub(crate) struct Lifeline {
    lines: mpsc::UnboundedReceiver<String>,
}

impl Lifeline {
    /// A thread of its own reads: a runtime would wait for it when it shuts down.
    pub(crate) fn to_parent() -> Self {
        let (says, lines) = mpsc::unbounded_channel();
        thread::spawn(move || {
            for line in std::io::stdin().lock().lines() {
                let Ok(line) = line else { break };
                if says.send(line).is_err() {
                    break;
                }
            }
        });
        Self { lines }
    }

    /// The next line, or `None` when the parent has gone.
    pub(crate) async fn next(&mut self) -> Option<String> {
        self.lines.recv().await
    }
}
