//! Tells a child of a pair that its parent has gone.
//!
//! The child's standard input ends then.
//!
//! That holds for Ctrl-C, `kill` and `kill -9` of the parent alike, and needs no signal of a
//! particular system.

use std::io::BufRead;
use std::thread;

use tokio::sync::mpsc;

/// The lines that the parent sends. Their end is the end of the parent.
#[derive(Debug)]
pub(crate) struct Lifeline {
    lines: mpsc::UnboundedReceiver<String>,
}

impl Lifeline {
    /// Reads on a thread of its own.
    ///
    /// A runtime would wait for the read when it shuts down.
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

    /// Returns the next line, or `None` when the parent has gone.
    pub(crate) async fn next(&mut self) -> Option<String> {
        self.lines.recv().await
    }
}
