//! Ends a child when its test process is killed and cannot do so itself.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The first line names the process group to guard, the second the folder it works in. There is no
/// third one: the pipe's end means that whoever held the other side is gone, and cannot remove the
/// folder either if it is one of this harness.
const SCRIPT: &str = r#"read -r group || exit 0
read -r folder || exit 0
read -r _
kill -s KILL -- "-$group" 2>/dev/null
case "$folder" in */lock-tests-*) rm -rf -- "$folder" ;; esac"#;

/// A shell that waits on a pipe from this process and kills a process group when the pipe ends.
///
/// A pipe ends with its holder for every reason there is, `kill -9` included, on every Unix, and
/// without unsafe code; Linux's parent-death signal has none of these three.
#[derive(Debug)]
pub(crate) struct Watchdog(Child);

impl Watchdog {
    /// Starts the shell, before the child, so that the child is unguarded for one write only.
    pub(crate) fn start() -> io::Result<Watchdog> {
        let shell = Command::new("sh")
            .args(["-c", SCRIPT])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C in a terminal ends the test process and must not end its watchdog first.
            .process_group(0)
            .spawn()?;
        Ok(Watchdog(shell))
    }

    /// Names the process group to kill, and the folder it works in.
    pub(crate) fn guard(&mut self, group: u32, folder: Option<&Path>) -> io::Result<()> {
        let pipe = self.0.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        let folder = folder.map(|folder| folder.display().to_string());
        writeln!(pipe, "{group}\n{}", folder.unwrap_or_default())
    }
}

impl Drop for Watchdog {
    /// Called off: the shell is killed before its pipe ends.
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
