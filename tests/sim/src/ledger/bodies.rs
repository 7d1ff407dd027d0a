//! The ends of bodies, and work that keeps a lock.

use super::{Answer, Ledger};

/// The end of a body.
#[derive(Clone, Copy, Debug)]
pub struct BodyEnd {
    pub at: u64,
    /// In microseconds of Unix time, by the clock of the first server.
    pub server_time: i64,
    /// For how long it had its lock, by the clock of its process.
    pub held_for: u64,
    pub is_lost: bool,
}

/// Work that keeps the lock of a call.
#[derive(Clone, Copy, Debug)]
pub struct KeptWork {
    pub process: usize,
    pub call: usize,
    /// By the clock of the first server, in microseconds of Unix time.
    pub until: Option<i64>,
}

impl Ledger {
    /// Notes work that keeps a lock. Returns its number.
    pub fn keeps(&mut self, process: usize, call: usize) -> usize {
        self.kept_work.push(KeptWork {
            process,
            call,
            until: None,
        });
        self.kept_work.len() - 1
    }

    /// Notes the end of a body. `is_lost`: by no wish of its own.
    pub fn body_ends(&mut self, call: usize, end: BodyEnd, is_lost: bool) {
        self.ends.insert(call, end);
        let call = &mut self.calls[call];
        call.left = Some(end.at);
        if is_lost {
            call.answer = Answer::Lost;
        }
    }

    /// Notes the answer of a call, unless its body has begun.
    pub fn never_began(&mut self, call: usize, answer: Answer) {
        if self.calls[call].answered.is_none() {
            self.answered(call, answer);
        }
    }

    /// Notes the end of a drain, which waits for kept work.
    pub fn drains(&mut self, process: usize, is_complete: bool) {
        let mut kept = self.kept_work.iter().filter(|it| it.process == process);
        if is_complete && kept.any(|it| it.until.is_none()) {
            self.violates("a drain does not wait for kept work", format!("p{process}"));
        }
        self.drained.push((process, is_complete));
    }
}
