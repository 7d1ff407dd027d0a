//! The end of the job, for the operator and for the program that started it.

use std::{fmt, io};

use lock_core::{Error, ErrorKind};

/// The ways in which the process ends.
#[derive(Debug)]
pub(crate) enum Outcome {
    Done,
    Failed(io::Error),
    /// The lock was not acquired, or it was lost.
    NoLock(Error),
    /// The number of the signal.
    Stopped(u8),
    WrongArgument,
}

impl Outcome {
    /// Returns a code that tells the causes apart, with the numbers of `sysexits.h`.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Outcome::Done => 0,
            Outcome::Failed(_) => 1,
            Outcome::NoLock(error) => match error.kind() {
                ErrorKind::Busy => 75,
                ErrorKind::Unavailable => 69,
                ErrorKind::Lost => 70,
                _ => 78,
            },
            Outcome::Stopped(signal) => 128 + signal,
            Outcome::WrongArgument => 78,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Done => write!(f, "done"),
            Outcome::Failed(error) => write!(f, "the job failed: {error}"),
            Outcome::NoLock(error) => match error.kind() {
                ErrorKind::Busy if error.is_cooling_down() => {
                    write!(f, "the job has been done already, nothing to do")
                }
                ErrorKind::Busy => write!(f, "another machine runs the job, nothing to do"),
                ErrorKind::Unavailable => write!(f, "the job did not begin: {error}"),
                ErrorKind::Lost => write!(f, "the job was stopped: {error}"),
                _ => write!(f, "a setting is wrong: {error}"),
            },
            Outcome::Stopped(signal) => write!(f, "stopped by signal {signal}"),
            Outcome::WrongArgument => write!(f, "the argument is the number of steps"),
        }
    }
}
