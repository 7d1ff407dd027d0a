//! Sleeps for an exact time.
//!
//! A task holds its lock as if it waited for a database: its core is free for others, and its
//! runtime handles other events. The runtime's own timer is late by up to a millisecond. This timer
//! is the kernel's, and late by some microseconds.

use std::os::fd::OwnedFd;

use rustix::io::read;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;

/// A sleep for a task.
pub(crate) struct Nap(AsyncFd<OwnedFd>);

impl Nap {
    #[expect(
        deprecated,
        reason = "its successor is unsafe, because of types whose descriptor changes, and this one does not change"
    )]
    pub(crate) fn new() -> Self {
        Self(AsyncFd::new(timer(TimerfdFlags::NONBLOCK)).expect("a runtime with a driver"))
    }

    pub(crate) async fn take(&self, nanos: u64) {
        set(self.0.get_ref(), nanos);
        loop {
            let mut ready = self.0.readable().await.expect("a timer");
            let rung = ready.try_io(|timer| Ok(read(timer.get_ref(), &mut [0_u8; 8])?));
            if let Ok(rung) = rung {
                rung.expect("a timer");
                return;
            }
        }
    }
}

/// A sleep for a thread.
pub(crate) struct BlockingNap(OwnedFd);

impl BlockingNap {
    pub(crate) fn new() -> Self {
        Self(timer(TimerfdFlags::empty()))
    }

    pub(crate) fn take(&self, nanos: u64) {
        set(&self.0, nanos);
        read(&self.0, &mut [0_u8; 8]).expect("a timer");
    }
}

fn timer(flags: TimerfdFlags) -> OwnedFd {
    timerfd_create(TimerfdClockId::Monotonic, flags | TimerfdFlags::CLOEXEC).expect("a timer")
}

fn set(timer: &OwnedFd, nanos: u64) {
    let zero = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let value = Timespec {
        tv_sec: i64::try_from(nanos / 1_000_000_000).expect("a short time"),
        tv_nsec: i64::try_from(nanos % 1_000_000_000).expect("a short time"),
    };
    let once = Itimerspec {
        it_interval: zero,
        it_value: value,
    };
    timerfd_settime(timer, TimerfdTimerFlags::empty(), &once).expect("a timer");
}
