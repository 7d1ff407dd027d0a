//! What workers say about themselves: lines of a file that all of them append to.
//!
//! `<time> <worker> <life> <task> <call> <word> <arguments…>`. The times are of a clock that all processes
//! share and no fault steps.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use crate::ledger::now;

/// Which task of which worker does something. A worker that takes the place of a killed one has another life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Who {
    pub(super) worker: usize,
    pub(super) life: u64,
    pub(super) task: usize,
}

#[derive(Debug)]
pub(super) struct Journal(File);

impl Journal {
    pub(super) fn open(folder: &Path) -> Journal {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(folder.join("journal"));
        Journal(file.expect("a journal"))
    }

    /// Says that something happened at that time.
    pub(super) fn say_of(&self, time: u64, who: Who, call: u64, words: &str) {
        let Who { worker, life, task } = who;
        let line = format!("{time} {worker} {life} {task} {call} {words}\n");
        // One write, so that lines of several processes stay whole.
        (&self.0).write_all(line.as_bytes()).expect("a journal");
    }

    /// Says that something happens now.
    pub(super) fn say(&self, who: Who, call: u64, words: &str) {
        self.say_of(now(), who, call, words);
    }
}

/// A line.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) time: u64,
    pub(super) who: Who,
    pub(super) call: u64,
    pub(super) words: Vec<String>,
}

impl Entry {
    pub(super) fn number(&self, index: usize) -> u64 {
        let word = self.words.get(index).and_then(|word| word.parse().ok());
        word.unwrap_or_else(|| panic!("no number {index} in {self:?}"))
    }

    pub(super) fn of(line: &str) -> Option<Entry> {
        let mut words = line.split(' ').map(str::to_owned);
        let mut number = || words.next()?.parse::<u64>().ok();
        let (time, worker, life, task, call) =
            (number()?, number()?, number()?, number()?, number()?);
        let index = |number: u64| usize::try_from(number).ok();
        Some(Entry {
            time,
            who: Who {
                worker: index(worker)?,
                life,
                task: index(task)?,
            },
            call,
            words: words.collect(),
        })
    }
}

/// All lines so far; one that is being written is left out.
pub(super) fn read(folder: &Path) -> Vec<Entry> {
    let text = std::fs::read_to_string(folder.join("journal")).expect("a journal");
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole
        .lines()
        .map(|line| Entry::of(line).unwrap_or_else(|| panic!("a line: {line}")))
        .collect()
}
