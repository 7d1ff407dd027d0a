//! Writes the workers' journal: lines of a file to which all workers append.
//!
//! A line is `<time> <worker> <life> <task> <call> <word> <arguments…>`. All processes share the clock of the
//! times, and no fault steps it.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use crate::ledger::now;

/// A task of a worker. A worker that replaces a killed one has another life.
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

    /// Writes that something happened at that time.
    pub(super) fn say_of(&self, time: u64, who: Who, call: u64, words: &str) {
        let Who { worker, life, task } = who;
        let line = format!("{time} {worker} {life} {task} {call} {words}\n");
        // One write keeps the lines of concurrent processes whole.
        (&self.0).write_all(line.as_bytes()).expect("a journal");
    }

    /// Writes that something happens now.
    pub(super) fn say(&self, who: Who, call: u64, words: &str) {
        self.say_of(now(), who, call, words);
    }
}

/// A line of the journal.
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

/// Reads all lines so far, without a line that is still being written.
pub(super) fn read(folder: &Path) -> Vec<Entry> {
    let text = std::fs::read_to_string(folder.join("journal")).expect("a journal");
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole
        .lines()
        .map(|line| Entry::of(line).unwrap_or_else(|| panic!("a line: {line}")))
        .collect()
}
