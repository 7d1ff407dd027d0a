//! Records which task owned a lock at which time, and computes the figures.

use crate::machine::median;

/// One task's ownership of the lock, in nanoseconds of the machine's clock.
#[derive(Clone, Copy)]
pub(crate) struct Tenure {
    process: usize,
    task: u32,
    asked: u64,
    granted: u64,
    /// The time at which its release began.
    released: u64,
}

impl Tenure {
    pub(crate) fn new(task: u32, asked: u64, granted: u64, released: u64) -> Self {
        Self {
            process: 0,
            task,
            asked,
            granted,
            released,
        }
    }

    pub(crate) fn parse(process: usize, line: &str) -> Option<Self> {
        let numbers: Option<Vec<u64>> = line.split(' ').map(|word| word.parse().ok()).collect();
        let [task, asked, granted, released] = numbers?.try_into().ok()?;
        Some(Self {
            process,
            ..Self::new(u32::try_from(task).ok()?, asked, granted, released)
        })
    }

    pub(crate) fn line(&self) -> String {
        format!(
            "{} {} {} {}",
            self.task, self.asked, self.granted, self.released
        )
    }
}

/// The record of one turn.
pub(crate) struct Round {
    /// All tenures, ordered by their grants.
    tenures: Vec<Tenure>,
    /// The measured span, in which all tasks were active, without the beginning and the end.
    from: u64,
    to: u64,
}

impl Round {
    pub(crate) fn new(mut tenures: Vec<Tenure>, start: u64, end: u64) -> Self {
        tenures.sort_by_key(|tenure| tenure.granted);
        for pair in tenures.windows(2) {
            assert!(
                pair[0].released <= pair[1].granted,
                "two owners of one lock at the same time"
            );
        }
        Self {
            tenures,
            from: start + (end - start) / 10,
            to: end,
        }
    }

    fn counted(&self) -> &[Tenure] {
        let first = self.tenures.partition_point(|it| it.granted < self.from);
        let end = self.tenures.partition_point(|it| it.granted < self.to);
        assert!(end > first + 1, "no task got the lock");
        &self.tenures[first..end]
    }

    /// Counts all tenures, including those outside the measured span.
    pub(crate) fn all(&self) -> f64 {
        self.tenures.len() as f64
    }

    /// Returns the acquisitions per second.
    pub(crate) fn rate(&self) -> f64 {
        let counted = self.counted();
        let span = counted[counted.len() - 1].granted - counted[0].granted;
        (counted.len() - 1) as f64 * 1e9 / span as f64
    }

    /// Returns the mean measured length of a hold, in µs.
    pub(crate) fn hold(&self) -> f64 {
        mean(self.counted().iter().map(|it| it.released - it.granted))
    }

    /// Returns the mean time from a release to the next grant, in µs.
    ///
    /// No task has the lock in that time.
    pub(crate) fn dead(&self) -> f64 {
        let pairs = self.counted().windows(2);
        mean(pairs.map(|pair| pair[1].granted - pair[0].released))
    }

    /// Returns the median of those times.
    pub(crate) fn dead_median(&self) -> f64 {
        let pairs = self.counted().windows(2);
        median(
            pairs
                .map(|pair| (pair[1].granted - pair[0].released) as f64 / 1e3)
                .collect(),
        )
    }

    /// Returns the times from a release in one process to the grant in another, in µs.
    pub(crate) fn wakes(&self) -> Vec<f64> {
        let pairs = self.counted().windows(2);
        let changes = pairs.filter(|pair| pair[0].process != pair[1].process);
        changes
            .map(|pair| (pair[1].granted - pair[0].released) as f64 / 1e3)
            .collect()
    }

    /// Returns the share of grants that went to another process than the one before.
    pub(crate) fn changes(&self) -> f64 {
        self.wakes().len() as f64 / (self.counted().len() - 1) as f64
    }

    /// Returns the grants of the most served task divided by those of the least served.
    pub(crate) fn unfairness(&self) -> f64 {
        let mut served = std::collections::BTreeMap::new();
        for tenure in &self.tenures {
            served.entry((tenure.process, tenure.task)).or_insert(0_u32);
        }
        for tenure in self.counted() {
            *served.entry((tenure.process, tenure.task)).or_insert(0) += 1;
        }
        let most = served.values().max().copied().unwrap_or_default();
        let least = served.values().min().copied().unwrap_or_default();
        f64::from(most) / f64::from(least)
    }

    /// Returns the longest wait of that share of the tasks, in µs.
    pub(crate) fn wait(&self, part: f64) -> f64 {
        let mut waits: Vec<u64> = self
            .counted()
            .iter()
            .map(|tenure| tenure.granted - tenure.asked)
            .collect();
        waits.sort_unstable();
        let rank = (part * waits.len() as f64).ceil() as usize;
        waits[rank.clamp(1, waits.len()) - 1] as f64 / 1e3
    }
}

/// Returns the median of a figure over the rounds.
pub(crate) fn of(rounds: &[Round], what: impl Fn(&Round) -> f64) -> f64 {
    median(rounds.iter().map(what).collect())
}

fn mean(nanos: impl ExactSizeIterator<Item = u64>) -> f64 {
    let count = nanos.len();
    nanos.sum::<u64>() as f64 / count as f64 / 1e3
}
