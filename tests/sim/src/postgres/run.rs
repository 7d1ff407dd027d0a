//! Runs the statements. Each is one step, and no other statement runs meanwhile.

use std::collections::BTreeSet;

use super::rows::Row;
use super::session::Refused;
use super::texts::{Kind, Statement};
use super::wire::{self, Params, Value, flag, int4, int8, text};
use super::{Bytes, Moment, Postgres};
use crate::server::Refusal;

/// The key of the row that names the history of the database.
const HISTORY: &[u8] = b"!history";
/// By so much the numbers rise when the history is another one.
const LOST: i64 = 1 << 24;
/// A fencing token is the number of a write times this.
pub(super) const PASSES: i64 = 64;
/// A row is deleted so many microseconds after its end.
const KEPT: i64 = 60_000_000;

/// The rows of a statement, and whether its commit was not confirmed by a standby.
#[derive(Default)]
pub(super) struct Ran {
    pub(super) rows: Vec<Vec<Value>>,
    pub(super) is_local: bool,
}

/// How a transaction commits.
#[derive(Clone, Copy, PartialEq)]
enum Commit {
    /// It has written nothing.
    Nothing,
    /// It does not wait for the disk.
    Unsynced,
    Synced,
}

/// A change that a statement is asked for.
struct Want {
    place: i64,
    key: Bytes,
    rev: i64,
    /// When the write before was.
    at: i64,
    doc: Bytes,
    ends: i64,
    lasts: i64,
    fence: i64,
    /// What the writer takes for the time.
    since: i64,
    /// When something is over that the writer has seen.
    until: i64,
}

impl Postgres {
    pub(super) fn run(
        &mut self,
        at: Moment,
        statement: &Statement,
        params: &[Option<Bytes>],
    ) -> Result<Ran, Refused> {
        self.statements += 1;
        let kind = statement.kind;
        match self.refusal {
            Some(Refusal::OutOfMemory) if kind.grows() => {
                return Err(Refused::new("53100", "No space left on device"));
            }
            Some(Refusal::ReadOnly) if kind.writes() => {
                return Err(Refused::new("25006", "the transaction is read-only"));
            }
            Some(Refusal::Misconfigured) if kind.needs_the_table() => {
                return Err(Refused::new("42501", "permission denied for table cell"));
            }
            _ => {}
        }
        if kind.needs_the_table() && !self.table.exists {
            return Err(Refused::new(
                "42P01",
                "relation \"lockkit.cell\" does not exist",
            ));
        }
        let params = Params(params);
        let (rows, commit) = match kind {
            Kind::Keeping | Kind::Ending | Kind::Together => self.swap(at, kind, &params)?,
            Kind::Read => (self.read(at, &params), Commit::Nothing),
            Kind::Notify => (self.notify(&params), Commit::Nothing),
            Kind::Tell => (self.tell(&params), Commit::Nothing),
            Kind::Hears => {
                let is_free = self.is_free(params.number(0));
                (vec![vec![flag(is_free)]], Commit::Nothing)
            }
            Kind::Clock => (vec![vec![int8(at.micros)]], Commit::Nothing),
            Kind::List | Kind::ListBehind => (self.list(at, kind, &params), Commit::Nothing),
            Kind::Sweep => self.sweep(at, &params),
            Kind::Persistence => {
                let rows = self.table.exists.then(|| vec![text("p")]);
                (rows.into_iter().collect(), Commit::Nothing)
            }
            Kind::History => (vec![vec![text(&self.history())]], Commit::Nothing),
            Kind::Recorded => {
                let row = self.table.row(HISTORY);
                let row = row.filter(|_| !self.table.is_behind(at.micros));
                let recorded = row.map(|row| row.doc.clone());
                let rows = recorded.map(|doc| vec![Some(doc)]);
                (rows.into_iter().collect(), Commit::Nothing)
            }
            Kind::Findings => {
                let flags = [false; 6].map(flag);
                let row = [int8(at.micros)].into_iter().chain(flags);
                (vec![row.collect()], Commit::Nothing)
            }
            Kind::Create => {
                self.table.exists = true;
                (Vec::new(), Commit::Synced)
            }
            Kind::Raise => (Vec::new(), self.raise(at, &statement.holes)),
            Kind::Session => (vec![vec![text("2s")]], Commit::Nothing),
            Kind::Ping => (Vec::new(), Commit::Nothing),
            Kind::Listen => unreachable!("it waits for a lock"),
        };
        if commit == Commit::Synced {
            self.table.flush();
        }
        let is_local = commit == Commit::Synced && self.refusal == Some(Refusal::NoReplicas);
        Ok(Ran { rows, is_local })
    }

    fn history(&self) -> String {
        format!("7300000000000000000/{:08X}", self.table.history)
    }

    /// Returns whether an advisory lock is free, for a moment and beside others that ask so.
    fn is_free(&self, lock: i64) -> bool {
        !self.advisory.contains_key(&lock)
    }

    fn swap(
        &mut self,
        at: Moment,
        kind: Kind,
        params: &Params<'_>,
    ) -> Result<(Vec<Vec<Value>>, Commit), Refused> {
        if self.conflicts && self.rng.one_in(4) {
            let code = self.rng.pick(&["40001", "40P01", "55P03"]);
            return Err(Refused::new(code, "another transaction is in the way"));
        }
        let wants = wants(params);
        for want in &wants {
            self.asked.push((want.key.clone(), at.micros));
        }
        let ears = params.numbers(6).into_iter().zip(params.numbers(7));
        let deaf: Vec<(i64, i64)> = ears.filter(|(_, ear)| self.is_free(*ear)).collect();
        let late = params.number(8);
        let together = kind == Kind::Together;
        let one = self.table.next();
        let mut done: Vec<(&Want, i64)> = Vec::new();
        let mut locked: BTreeSet<i64> = BTreeSet::new();
        for want in &wants {
            if deaf.iter().any(|(place, _)| *place == want.place) {
                continue;
            }
            let is_first = want.rev == 0 && at.micros < late;
            let fits = match self.table.row(&want.key) {
                Some(row) => {
                    let is_seen = (row.rev, row.at) == (want.rev, want.at);
                    is_seen && (want.since..want.until).contains(&at.micros)
                        || is_first && row.ends <= at.micros
                }
                None => is_first,
            };
            if !fits {
                continue;
            }
            // Another transaction has the row for a moment, and this one passes it over.
            if self.conflicts && self.rng.one_in(4) {
                locked.insert(want.place);
                continue;
            }
            let next = if together { one } else { self.table.next() };
            done.push((want, next));
        }
        if together && done.len() < wants.len() {
            done.clear();
        }
        let unsynced = params.flag(9);
        let mut rows: Vec<Vec<Value>> = Vec::new();
        for (want, next) in &done {
            let counted = match want.lasts {
                0 => 0,
                lasts => at.micros + lasts,
            };
            let row = Row {
                rev: *next,
                at: at.micros,
                ends: want.ends.max(counted),
                fence: match want.fence {
                    -1 => None,
                    0 => Some(next * PASSES),
                    fence => Some(fence),
                },
                doc: want.doc.clone(),
            };
            self.table.put(at.now, &want.key, Some(row));
            let off = unsynced.then(|| b"off".to_vec());
            let (rev, written) = (int8(*next), int8(at.micros));
            let now = int8(at.micros);
            rows.push(vec![
                int4(0),
                int8(want.place),
                rev,
                written,
                None,
                now,
                off,
            ]);
        }
        for (place, ear) in &deaf {
            let (place, ear) = (int8(*place), int8(*ear));
            rows.push(vec![int4(1), place, ear, int8(0), None, int8(0), None]);
        }
        for want in &wants {
            let is_done = done.iter().any(|(it, _)| it.place == want.place);
            let is_deaf = deaf.iter().any(|(place, _)| *place == want.place);
            if is_done || is_deaf {
                continue;
            }
            // The answer is from the snapshot of the statement, which may be older than the row that did not fit, but not
            // older than the row that the writer has seen.
            let is_old = self.conflicts && !locked.contains(&want.place) && self.rng.one_in(2);
            let before = self.table.seen_before(&want.key, at.now);
            let row = match before {
                Some(before) if is_old && before.map_or(0, |row| row.rev) >= want.rev => before,
                _ => self.table.row(&want.key),
            };
            let (rev, written) = (row.map(|row| row.rev), row.map(|row| row.at));
            rows.push(vec![
                int4(2),
                int8(want.place),
                rev.and_then(int8),
                written.and_then(int8),
                row.map(|row| row.doc.clone()),
                int8(at.micros),
                None,
            ]);
        }
        if together && !done.is_empty() {
            let (one, zero) = (int8(1), int8(0));
            rows.push(vec![
                int4(3),
                one,
                zero.clone(),
                zero.clone(),
                None,
                zero,
                None,
            ]);
        }
        let commit = match (done.is_empty(), unsynced) {
            (true, _) => Commit::Nothing,
            (false, true) => Commit::Unsynced,
            (false, false) => Commit::Synced,
        };
        Ok((rows, commit))
    }

    fn read(&mut self, at: Moment, params: &Params<'_>) -> Vec<Vec<Value>> {
        let mut rows = vec![vec![None, None, None, int8(at.micros), int8(0)]];
        for (key, place) in params.array(0).into_iter().zip(1..) {
            let row = self.table.row(&key);
            let (rev, written) = (row.map(|row| row.rev), row.map(|row| row.at));
            let doc = row.map(|row| row.doc.clone());
            rows.push(vec![
                rev.and_then(int8),
                written.and_then(int8),
                doc,
                None,
                int8(place),
            ]);
            self.asked.push((key, at.micros));
        }
        rows
    }

    fn notify(&mut self, params: &Params<'_>) -> Vec<Vec<Value>> {
        let messages = params.array(0).into_iter().zip(params.array(1));
        let as_text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        let messages: Vec<_> = messages
            .map(|(channel, message)| (as_text(channel), as_text(message)))
            .collect();
        for (channel, message) in &messages {
            self.tells(channel, message);
        }
        let row = vec![Some(Bytes::new()), text("off")];
        vec![row; messages.len()]
    }

    /// Asks whether a process listens, and sends it a message.
    fn tell(&mut self, params: &Params<'_>) -> Vec<Vec<Value>> {
        let is_deaf = self.is_free(params.number(0));
        if !is_deaf {
            self.tells(&params.text(1), &params.text(2));
        }
        vec![vec![flag(is_deaf), (!is_deaf).then(Bytes::new)]]
    }

    fn tells(&mut self, channel: &str, message: &str) {
        let listeners = self.channels.get(channel).into_iter().flatten();
        for listener in listeners {
            let notification = wire::notification(channel, message);
            self.out.push((*listener, notification));
        }
    }

    fn list(&self, at: Moment, kind: Kind, params: &Params<'_>) -> Vec<Vec<Value>> {
        let (from, until) = (params.bytes(0), params.bytes(1));
        let rows = self.table.rows_from(from);
        let rows = rows.filter(|(key, _)| kind == Kind::List || *key != from);
        let rows = rows.take_while(|(key, _)| *key < until).take(1_000);
        rows.map(|(key, row)| vec![Some(key.clone()), flag(row.ends > at.micros)])
            .collect()
    }

    fn sweep(&mut self, at: Moment, params: &Params<'_>) -> (Vec<Vec<Value>>, Commit) {
        let after = [params.bytes(0).as_slice(), &[0]].concat();
        let page = self.table.rows_from(&after).take(1_000);
        let page: Vec<(Bytes, bool)> = page
            .map(|(key, row)| (key.clone(), row.ends.max(row.at) < at.micros - KEPT))
            .collect();
        let mut commit = Commit::Nothing;
        for (key, _) in page.iter().filter(|(_, is_over)| *is_over) {
            self.table.put(at.now, key, None);
            commit = Commit::Unsynced;
        }
        let last = page.into_iter().next_back();
        let rows = last.map(|(key, _)| vec![Some(key), text("off")]);
        (rows.into_iter().collect(), commit)
    }

    /// Raises the numbers where the history is another one, and where they are behind the clock. The holes are that history, twice.
    fn raise(&mut self, at: Moment, holes: &[String]) -> Commit {
        let history = holes[0].as_bytes();
        assert_eq!(holes[0], holes[1], "one history");
        let is_same = (self.table.row(HISTORY)).is_some_and(|row| row.doc == history);
        if !is_same || self.table.is_behind(at.micros) {
            let number = self.table.next() + if is_same { 0 } else { LOST };
            self.table.set_sequence(number.max(at.micros / PASSES));
        }
        if is_same {
            return Commit::Synced;
        }
        let row = Row {
            rev: 1,
            at: at.micros,
            ends: i64::MAX,
            fence: None,
            doc: history.to_vec(),
        };
        self.table.put(at.now, HISTORY, Some(row));
        Commit::Synced
    }
}

fn wants(params: &Params<'_>) -> Vec<Want> {
    let (keys, docs) = (params.array(0), params.array(2));
    let [revs, ends, lasts, fences, since, until, times] =
        [1, 3, 4, 5, 10, 11, 12].map(|at| params.numbers(at));
    let keys = keys.into_iter().zip(docs).enumerate();
    keys.map(|(index, (key, doc))| Want {
        place: index as i64 + 1,
        key,
        rev: revs[index],
        at: times[index],
        doc,
        ends: ends[index],
        lasts: lasts[index],
        fence: fences[index],
        since: since[index],
        until: until[index],
    })
    .collect()
}
