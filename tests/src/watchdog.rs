//! Ends a child when its test process is killed and cannot end the child itself.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The first line names the process group to guard, the second the folder that it works in. There
/// is no third line: the end of the pipe means that the test process has gone. That process cannot
/// remove the folder then, so the script removes it if it is one of this harness.
const SCRIPT: &str = r#"read -r group || exit 0
read -r folder || exit 0
read -r _
kill -s KILL -- "-$group" 2>/dev/null
case "$folder" in */lock-tests-*) rm -rf -- "$folder" ;; esac"#;

/// A shell that waits on a pipe from this process and kills a process group when the pipe ends.
///
/// A pipe ends with its holder in every case, `kill -9` included, on every Unix, and without
/// unsafe code. Linux's parent-death signal fulfils none of these three.
#[derive(Debug)]
pub(crate) struct Watchdog(Child);

impl Watchdog {
    /// Starts the shell before the child, so that the child is unguarded for one write only.
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
    /// Calls the watchdog off, by killing the shell before its pipe ends.
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
