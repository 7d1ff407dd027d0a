//! Parses durations such as `"500ms"`, `"10s"`, `"2m"` and `"1h"` at compile time.

use std::time::Duration;

const UNITS: &str = "`ms`, `s`, `m` or `h`, as in `\"500ms\"`, `\"10s\"`, `\"2m\"`, `\"1h\"`";

pub(crate) const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The bounds of a duration, which depend on its argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// A ttl is between 10 ms and 24 h, as in lock-core.
    Ttl,
    /// A wait may be zero, which ends at once.
    Any,
    /// A longest hold is not zero, because that would end every body before it began.
    Positive,
    /// A cooldown is not zero, and is at most one day, as in lock-core.
    UpToADay,
    /// The life of a record is not zero, and may be given in days. Its other bounds depend on where the record is kept.
    Lifetime,
}

const UNITS_WITH_DAYS: &str =
    "`ms`, `s`, `m`, `h` or `d`, as in `\"30s\"`, `\"90m\"`, `\"24h\"`, `\"7d\"`";

impl Bound {
    fn units(self) -> &'static str {
        match self {
            Bound::Lifetime => UNITS_WITH_DAYS,
            _ => UNITS,
        }
    }

    /// Returns the milliseconds of a unit.
    fn milliseconds(self, unit: &str) -> Option<u64> {
        match (self, unit) {
            (Bound::Lifetime, "d") => Some(86_400_000),
            _ => milliseconds(unit),
        }
    }
}

/// Parses a duration. The error is the message for the literal.
pub(crate) fn parse(text: &str, bound: Bound) -> Result<Duration, String> {
    let duration = read(text, bound)?;
    check(duration, bound).map_err(|problem| format!("`\"{text}\"` {problem}"))?;
    Ok(duration)
}

fn read(text: &str, bound: Bound) -> Result<Duration, String> {
    let units = bound.units();
    if text.is_empty() {
        return Err(format!("a duration is a whole number and a unit: {units}"));
    }
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    if number.is_empty() {
        return Err(without_number(text, units));
    }
    let Some(milliseconds) = bound.milliseconds(unit) else {
        return Err(wrong_unit(text, number, unit, bound));
    };
    number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(milliseconds))
        .map(Duration::from_millis)
        .ok_or_else(|| format!("`\"{text}\"` is longer than the longest duration"))
}

fn without_number(text: &str, units: &str) -> String {
    if text.starts_with('-') {
        return format!(
            "`\"{text}\"` is negative; a duration is a whole number and a unit: {units}"
        );
    }
    if text.contains(['(', ':']) {
        return format!("`\"{text}\"` is code; write it without quotes");
    }
    format!(
        "`\"{text}\"` does not begin with a number; a duration is a whole number and a unit: {units}"
    )
}

fn wrong_unit(text: &str, number: &str, rest: &str, bound: Bound) -> String {
    let units = bound.units();
    if rest.is_empty() {
        return format!("`\"{text}\"` has no unit; write {units}");
    }
    if rest.starts_with(['.', ',']) {
        return format!(
            "`\"{text}\"` is not a whole number; use a smaller unit, as in `\"1500ms\"` for one and a half seconds"
        );
    }
    if let Some(sum) = sum(text) {
        return format!("`\"{text}\"` has two units; write it in one: `\"{sum}\"`");
    }
    if let Some(unit) = unit(rest) {
        let all = match bound {
            Bound::Lifetime => "`ms`, `s`, `m`, `h` and `d`",
            _ => "`ms`, `s`, `m` and `h`",
        };
        return format!(
            "`\"{text}\"` has an unknown unit; did you mean `\"{number}{unit}\"`? The units are {all}"
        );
    }
    match rest.trim().to_lowercase().as_str() {
        "d" | "day" | "days" if bound == Bound::Lifetime => {
            format!("`\"{text}\"` has an unknown unit; did you mean `\"{number}d\"`?")
        }
        "d" | "day" | "days" => format!(
            "`\"{text}\"` has an unknown unit; write days in hours, as in `\"24h\"` for one day"
        ),
        _ => format!("`\"{text}\"` has an unknown unit; write {units}"),
    }
}

/// Returns the unit for a longer word or another spelling.
pub(crate) fn unit(written: &str) -> Option<&'static str> {
    match written.trim().to_lowercase().as_str() {
        "ms" | "msec" | "msecs" | "millis" | "millisecond" | "milliseconds" => Some("ms"),
        "s" | "sec" | "secs" | "second" | "seconds" => Some("s"),
        "m" | "min" | "mins" | "minute" | "minutes" => Some("m"),
        "h" | "hr" | "hrs" | "hour" | "hours" => Some("h"),
        _ => None,
    }
}

/// Adds up a duration such as `1m30s`, in the unit of its last part.
fn sum(text: &str) -> Option<String> {
    let is_digit = |c: char| c.is_ascii_digit();
    let mut rest = text;
    let mut total: u64 = 0;
    let (mut parts, mut last) = (0, ("s", 1_000));
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|c| !is_digit(c))?);
        let (word, after) = after.split_at(after.find(is_digit).unwrap_or(after.len()));
        let unit = unit(word)?;
        last = (unit, milliseconds(unit)?);
        total = total.checked_add(number.parse::<u64>().ok()?.checked_mul(last.1)?)?;
        parts += 1;
        rest = after;
    }
    let (unit, size) = last;
    (parts > 1 && total.is_multiple_of(size)).then(|| format!("{}{unit}", total / size))
}

fn milliseconds(unit: &str) -> Option<u64> {
    match unit {
        "ms" => Some(1),
        "s" => Some(1_000),
        "m" => Some(60_000),
        "h" => Some(3_600_000),
        _ => None,
    }
}

fn check(duration: Duration, bound: Bound) -> Result<(), &'static str> {
    match bound {
        Bound::Ttl if duration.is_zero() => Err("is zero; a ttl is at least `\"10ms\"`"),
        Bound::Ttl if duration < Duration::from_millis(10) => {
            Err("is too short; a ttl is at least `\"10ms\"`")
        }
        Bound::Ttl if duration > DAY => Err("is too long; a ttl is at most `\"24h\"`"),
        Bound::Positive if duration.is_zero() => {
            Err("is zero, so the body could never run; remove `max_hold` for no limit")
        }
        Bound::UpToADay if duration.is_zero() => Err("is zero; remove `cooldown` for no cooldown"),
        Bound::Lifetime if duration.is_zero() => {
            Err("is zero, so the next call would run again; write for example `\"24h\"`")
        }
        Bound::UpToADay if duration > DAY => Err("is too long; a cooldown is at most `\"24h\"`"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ttl(text: &str) -> Result<Duration, String> {
        parse(text, Bound::Ttl)
    }

    #[test]
    fn every_unit_is_read() {
        assert_eq!(ttl("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(ttl("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(ttl("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(ttl("1h"), Ok(Duration::from_secs(3600)));
    }

    #[test]
    fn the_bounds_of_a_ttl_are_inclusive() {
        assert!(ttl("10ms").is_ok());
        assert!(ttl("24h").is_ok());
        assert!(ttl("9ms").unwrap_err().contains("too short"));
        assert!(ttl("86400001ms").unwrap_err().contains("too long"));
        assert!(ttl("0s").unwrap_err().contains("zero"));
    }

    #[test]
    fn a_wait_may_be_zero_and_a_longest_hold_may_not() {
        assert_eq!(parse("0s", Bound::Any), Ok(Duration::ZERO));
        assert!(parse("0ms", Bound::Positive).is_err());
        assert!(parse("0ms", Bound::UpToADay).is_err());
        assert!(parse("25h", Bound::UpToADay).unwrap_err().contains("24h"));
    }

    #[test]
    fn only_the_life_of_a_record_has_days_and_it_is_not_zero() {
        let life = |text| parse(text, Bound::Lifetime);
        assert_eq!(life("7d"), Ok(7 * DAY));
        assert_eq!(life("24h"), Ok(DAY));
        assert!(life("0d").unwrap_err().contains("zero"));
        assert!(life("7 days").unwrap_err().contains("`\"7d\"`"));
        assert!(life("7").unwrap_err().contains("`d`"));
        let error = life("30 min").unwrap_err();
        assert!(error.ends_with("`ms`, `s`, `m`, `h` and `d`"), "{error}");
        assert!(!ttl("30 min").unwrap_err().contains("`d`"));
        assert!(ttl("7d").unwrap_err().contains("hours"));
    }

    #[test]
    fn a_missing_unit_lists_the_units() {
        let error = ttl("10").unwrap_err();
        assert!(
            error.contains("no unit") && error.contains("`\"500ms\"`"),
            "{error}"
        );
    }

    #[test]
    fn a_long_unit_is_answered_with_the_short_one() {
        assert!(ttl("10 s").unwrap_err().contains("`\"10s\"`"));
        assert!(ttl("10sec").unwrap_err().contains("`\"10s\"`"));
        assert!(ttl("5min").unwrap_err().contains("`\"5m\"`"));
        assert!(ttl("1d").unwrap_err().contains("hours"));
        assert!(ttl("7us").unwrap_err().contains("unknown unit"));
    }

    #[test]
    fn two_units_are_added_up() {
        assert!(ttl("1m30s").unwrap_err().contains("`\"90s\"`"));
        assert!(ttl("1h 30min").unwrap_err().contains("`\"90m\"`"));
        assert!(ttl("1s500ms").unwrap_err().contains("`\"1500ms\"`"));
        assert!(ttl("500ms1s").unwrap_err().contains("unknown unit"));
        assert!(
            ttl("18446744073709551615h1s")
                .unwrap_err()
                .contains("unknown unit")
        );
    }

    #[test]
    fn code_and_words_have_different_messages() {
        assert!(ttl("Duration::from_secs(1)").unwrap_err().contains("code"));
        assert!(ttl("ten").unwrap_err().contains("does not begin"));
    }

    #[test]
    fn fractions_signs_empty_text_and_overflow_have_different_messages() {
        assert!(ttl("1.5s").unwrap_err().contains("1500ms"));
        assert!(ttl("-1s").unwrap_err().contains("negative"));
        assert!(ttl("").unwrap_err().contains("whole number"));
        assert!(ttl("s").unwrap_err().contains("does not begin"));
        assert!(ttl("18446744073709551615h").unwrap_err().contains("longer"));
        assert!(ttl("99999999999999999999s").unwrap_err().contains("longer"));
    }
}
