use std::collections::BTreeMap;

use jiff::civil::DateTime;

use super::*;
use crate::ErrorKind;

fn cron(expression: &str, zone: &str) -> Cron {
    Cron::new(expression, zone).expect("an expression and a zone")
}

fn instant(text: &str) -> Timestamp {
    text.parse().expect("an instant")
}

fn system(instant: Timestamp) -> SystemTime {
    let micros = u64::try_from(instant.as_microsecond()).expect("after 1970");
    SystemTime::UNIX_EPOCH + Duration::from_micros(micros)
}

fn next(cron: &Cron, time: Timestamp) -> Timestamp {
    let next = since_epoch(cron.next(system(time))).as_micros();
    Timestamp::from_microsecond(i64::try_from(next).expect("before 9999")).expect("before 9999")
}

/// Returns the first firings after `from`, as local times with their offsets.
fn firings<const COUNT: usize>(expression: &str, zone: &str, from: &str) -> [String; COUNT] {
    let cron = cron(expression, zone);
    let mut last = instant(from);
    std::array::from_fn(|_| {
        last = next(&cron, last);
        let local = last.to_zoned_datetime(cron.zone.clone());
        local.strftime("%a %m-%d %H:%M %:z").to_string()
    })
}

/// Returns the dates of the first firings after the begin of 2027 in UTC.
fn dates<const COUNT: usize>(expression: &str) -> [String; COUNT] {
    let cron = cron(expression, "UTC");
    let mut last = instant("2026-12-31T23:59:59Z");
    std::array::from_fn(|_| {
        last = next(&cron, last);
        last.strftime("%Y-%m-%d").to_string()
    })
}

#[test]
fn a_time_that_the_clock_leaves_out_in_spring_fires_when_the_clock_has_been_changed() {
    assert_eq!(
        firings("30 2 * * *", "Europe/Berlin", "2027-03-27T00:00:00Z"),
        [
            "Sat 03-27 02:30 +01:00",
            "Sun 03-28 03:00 +02:00",
            "Mon 03-29 02:30 +02:00"
        ]
    );
    assert_eq!(
        firings("0 2,14 * * *", "America/New_York", "2027-03-14T00:00:00Z"),
        [
            "Sun 03-14 03:00 -04:00",
            "Sun 03-14 14:00 -04:00",
            "Mon 03-15 02:00 -04:00"
        ]
    );
    assert_eq!(
        firings("15 2 * * *", "Australia/Lord_Howe", "2027-10-02T00:00:00Z"),
        [
            "Sun 10-03 02:30 +11:00",
            "Mon 10-04 02:15 +11:00",
            "Tue 10-05 02:15 +11:00"
        ]
    );
}

#[test]
fn several_times_in_the_hour_that_is_left_out_fire_as_one() {
    assert_eq!(
        firings("0,30,45 2,3 * * *", "Europe/Berlin", "2027-03-28T00:00:00Z"),
        [
            "Sun 03-28 03:00 +02:00",
            "Sun 03-28 03:30 +02:00",
            "Sun 03-28 03:45 +02:00"
        ]
    );
}

#[test]
fn a_time_that_the_clock_shows_twice_in_autumn_fires_at_the_first() {
    assert_eq!(
        firings("30 2 * * *", "Europe/Berlin", "2027-10-30T00:00:00Z"),
        [
            "Sat 10-30 02:30 +02:00",
            "Sun 10-31 02:30 +02:00",
            "Mon 11-01 02:30 +01:00"
        ]
    );
    assert_eq!(
        firings("0,30 1 * * SUN", "America/New_York", "2027-11-07T00:00:00Z"),
        [
            "Sun 11-07 01:00 -04:00",
            "Sun 11-07 01:30 -04:00",
            "Sun 11-14 01:00 -05:00"
        ]
    );
    assert_eq!(
        firings("45 1 * * *", "Australia/Lord_Howe", "2027-04-03T00:00:00Z"),
        [
            "Sun 04-04 01:45 +11:00",
            "Mon 04-05 01:45 +10:30",
            "Tue 04-06 01:45 +10:30"
        ]
    );
}

#[test]
fn an_expression_of_every_hour_fires_once_in_each_hour_that_passes() {
    assert_eq!(
        firings("0 * * * *", "Europe/Berlin", "2027-03-28T00:00:00Z"),
        [
            "Sun 03-28 03:00 +02:00",
            "Sun 03-28 04:00 +02:00",
            "Sun 03-28 05:00 +02:00"
        ]
    );
    assert_eq!(
        firings("0 * * * *", "Europe/Berlin", "2027-10-30T23:00:00Z"),
        [
            "Sun 10-31 02:00 +02:00",
            "Sun 10-31 02:00 +01:00",
            "Sun 10-31 03:00 +01:00"
        ]
    );
    assert_eq!(
        firings(
            "*/30 * * * *",
            "Australia/Lord_Howe",
            "2027-04-03T14:15:00Z"
        ),
        [
            "Sun 04-04 01:30 +11:00",
            "Sun 04-04 01:30 +10:30",
            "Sun 04-04 02:00 +10:30"
        ]
    );
    assert_eq!(
        firings("*/20 2 * * *", "Europe/Berlin", "2027-03-28T00:00:00Z"),
        [
            "Mon 03-29 02:00 +02:00",
            "Mon 03-29 02:20 +02:00",
            "Mon 03-29 02:40 +02:00"
        ],
        "it follows the clock, which does not show these times"
    );
}

#[test]
fn the_last_days_and_the_days_of_leap_years_are_found() {
    assert_eq!(
        dates("0 0 29 2 *"),
        ["2028-02-29", "2032-02-29", "2036-02-29"]
    );
    assert_eq!(
        dates("0 0 31 * *"),
        ["2027-01-31", "2027-03-31", "2027-05-31"]
    );
    assert_eq!(
        dates("0 0 L 11-12 *"),
        ["2027-11-30", "2027-12-31", "2028-11-30"]
    );
    let leap = cron("0 0 29 2 *", "Europe/Berlin");
    assert_eq!(
        next(&leap, instant("2096-03-01T00:00:00Z")),
        instant("2104-02-29T00:00:00+01:00"),
        "2100 is no leap year"
    );
}

#[test]
fn one_of_the_two_fields_of_days_is_enough_unless_one_begins_with_an_asterisk() {
    assert_eq!(
        dates("0 0 13 * FRI"),
        ["2027-01-01", "2027-01-08", "2027-01-13", "2027-01-15"]
    );
    assert_eq!(dates("0 0 13 * *"), ["2027-01-13", "2027-02-13"]);
    assert_eq!(dates("0 0 * * FRI"), ["2027-01-01", "2027-01-08"]);
    assert_eq!(
        dates("0 0 */2 * FRI"),
        ["2027-01-01", "2027-01-15", "2027-01-29", "2027-02-05"]
    );
    assert_eq!(
        dates("0 0 1-31/2 * FRI"),
        ["2027-01-01", "2027-01-03", "2027-01-05"]
    );
}

#[test]
fn the_fields_take_names_ranges_steps_lists_and_nearest_weekdays() {
    assert_eq!(dates("0 0 * feb-mar Mon#1"), ["2027-02-01", "2027-03-01"]);
    assert_eq!(dates("0 0 * * FRI#L"), ["2027-01-29", "2027-02-26"]);
    assert_eq!(dates("0 0 15W 5 *"), ["2027-05-14", "2028-05-15"]);
    assert_eq!(dates("0 0 * * 0"), dates::<5>("0 0 * * 7"));
    assert_eq!(
        firings("5 8-18/5 * * MON-FRI", "UTC", "2027-01-01T09:00:00Z"),
        [
            "Fri 01-01 13:05 +00:00",
            "Fri 01-01 18:05 +00:00",
            "Mon 01-04 08:05 +00:00"
        ]
    );
    for (name, same) in [
        ("@hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@weekly", "0 0 * * SUN"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
    ] {
        let from = "2027-10-29T00:00:00Z";
        let zone = "Europe/Berlin";
        let named: [_; 80] = firings(name, zone, from);
        assert_eq!(named, firings(same, zone, from), "{name}");
    }
}

#[test]
fn the_error_of_a_wrong_expression_says_which_part_is_wrong() {
    for (expression, part) in [
        ("61 * * * *", "the minute \"61\""),
        ("0 24 * * *", "the hour \"24\""),
        ("0 0 0 * *", "the day of the month \"0\""),
        ("0 0 * FOO *", "the month \"FOO\""),
        ("MON 2 * * *", "the minute \"MON\""),
        ("0 2-L * * *", "the hour \"2-L\""),
        ("0 2 MON * *", "the day of the month \"MON\""),
        ("0 2 jan * *", "the day of the month \"jan\""),
        ("0 0 * MON *", "the month \"MON\""),
        ("0 0 * 1JAN *", "the month \"1JAN\""),
        ("0 0 * JAN1 *", "the month \"JAN1\""),
        ("0 0 * * JAN", "the day of the week \"JAN\""),
        ("0 0 * * 1MON", "the day of the week \"1MON\""),
        ("0 0 * * L", "the day of the week \"L\""),
        ("0 0 * * MON,L", "the day of the week \"MON,L\""),
        ("0 0 * * THURSDAY", "the day of the week \"THURSDAY\""),
        ("5-1 * * * *", "the minute \"5-1\""),
        ("*/0 * * * *", "the minute \"*/0\""),
        ("0 0 0 * * *", "has 6 fields"),
        ("0 0 * *", "has 4 fields"),
        ("", "has 0 fields"),
        ("Europe/Berlin", "has 1 fields"),
        ("@midnight", "write @hourly, @daily"),
        ("@daily *", "write @hourly, @daily"),
        ("0 0 30 2 *", "never fires"),
        ("0 0 31 2,4,6,9,11 *", "never fires"),
    ] {
        let error = Cron::new(expression, "UTC").expect_err(expression);
        assert_eq!(error.kind(), ErrorKind::Invalid, "{expression}");
        assert!(error.to_string().contains(part), "{error}");
    }
    for zone in ["", "Europe/Berln", "local", "+01:00", "0 2 * * *"] {
        let error = Cron::new("0 2 * * *", zone).expect_err(zone);
        assert_eq!(error.kind(), ErrorKind::Invalid, "{zone}");
        assert!(error.to_string().contains("no time zone"), "{error}");
    }
}

#[test]
fn a_time_beyond_all_clocks_has_a_later_tick_or_the_latest() {
    let daily = cron("@daily", "Europe/Berlin");
    let far = SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 37);
    assert_eq!(since_epoch(daily.next(far)), LATEST);
}

/// All firings around a change of the clock, found minute by minute.
///
/// `shows` says whether the expression has a time of the clock.
fn expected(
    cron: &Cron,
    from: Timestamp,
    shows: impl Fn(DateTime) -> bool,
) -> BTreeMap<Timestamp, DateTime> {
    let minutes = (0..4 * 24 * 60).map(|minute| from + SignedDuration::from_mins(minute));
    let mut fires = BTreeMap::new();
    let mut first = BTreeMap::new();
    for minute in minutes {
        let clock = cron.zone.to_datetime(minute);
        first.entry(clock).or_insert(minute);
        if matches!(cron.changes, Changes::FollowTheClock) && shows(clock) {
            fires.insert(minute, clock);
        }
    }
    if matches!(cron.changes, Changes::FireOnce) {
        let (begin, end) = (first.first_key_value(), first.last_key_value());
        let (mut clock, end) = (*begin.expect("minutes").0, *end.expect("minutes").0);
        while clock <= end {
            if shows(clock) {
                let (_, minute) = first.range(clock..).next().expect("the end comes later");
                fires.insert(*minute, clock);
            }
            clock += SignedDuration::from_mins(1);
        }
    }
    fires
}

#[test]
fn ticks_are_contiguous_ordered_and_those_of_a_clock_that_is_watched_minute_by_minute() {
    type Shows = fn(DateTime) -> bool;
    let expressions: [(&str, Shows); 8] = [
        ("0 2 * * *", |clock| {
            (clock.hour(), clock.minute()) == (2, 0)
        }),
        ("30 1 * * *", |clock| {
            (clock.hour(), clock.minute()) == (1, 30)
        }),
        ("0 0 * * *", |clock| {
            (clock.hour(), clock.minute()) == (0, 0)
        }),
        ("15,45 0-3 * * *", |clock| {
            clock.hour() <= 3 && matches!(clock.minute(), 15 | 45)
        }),
        ("59 23 * * SUN", |clock| {
            let sunday = clock.weekday() == civil::Weekday::Sunday;
            sunday && (clock.hour(), clock.minute()) == (23, 59)
        }),
        ("*/15 * * * *", |clock| clock.minute() % 15 == 0),
        ("*/10 2 * * *", |clock| {
            clock.hour() == 2 && clock.minute() % 10 == 0
        }),
        ("30 */2 * * *", |clock| {
            clock.hour() % 2 == 0 && clock.minute() == 30
        }),
    ];
    let zones = [
        "UTC",
        "Europe/Berlin",
        "America/New_York",
        "Australia/Lord_Howe",
        // The clock is changed by two hours.
        "Antarctica/Troll",
        // At midnight, in both directions.
        "America/Havana",
        "Asia/Beirut",
        // The offset is no whole hour, and it is never changed.
        "Asia/Kathmandu",
    ];
    for zone in zones {
        for (expression, shows) in expressions {
            let cron = cron(expression, zone);
            let year = instant("2027-01-01T00:00:00Z");
            let changes = cron.zone.following(year).take(2);
            let changes: Vec<_> = changes.map(|change| change.timestamp()).collect();
            for change in changes.into_iter().chain([year]) {
                let begin = change - SignedDuration::from_hours(48);
                let fires = expected(&cron, begin, shows);
                let mut fires = fires.into_keys().peekable();
                let mut tick = begin - SignedDuration::from_secs(1);
                while let Some(fire) = fires.next() {
                    let context = format!("{expression} in {zone} after {tick}");
                    assert_eq!(next(&cron, tick), fire, "{context}");
                    // Each time of the tick has the same end.
                    let length = fire.duration_since(tick);
                    for part in 1..8 {
                        let inside = tick + length * part / 8;
                        assert_eq!(next(&cron, inside), fire, "{context}, at {inside}");
                    }
                    let last = fire - SignedDuration::from_micros(1);
                    assert_eq!(next(&cron, last), fire, "{context}");
                    tick = fire;
                    if fires.peek().is_none() {
                        assert!(next(&cron, tick) > begin + SignedDuration::from_hours(95));
                    }
                }
            }
        }
    }
}
