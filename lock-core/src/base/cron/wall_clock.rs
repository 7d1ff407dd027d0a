//! A wall clock that is never changed, as croner's search needs one.

use std::cmp::Ordering;

use croner::errors::CronError;
use croner::{CivilDate, CivilDateTime, CivilTime, CronDateTime, Resolution, Weekday};
use jiff::{SignedDuration, civil};

/// The date and time that the clock shows.
#[derive(Clone)]
pub(super) struct WallClock(pub(super) civil::DateTime);

impl CronDateTime for WallClock {
    fn to_civil(&self) -> CivilDateTime {
        let clock = self.0;
        let [month, day, hour, minute, second] = [
            clock.month(),
            clock.day(),
            clock.hour(),
            clock.minute(),
            clock.second(),
        ]
        .map(|part| u32::from(part.unsigned_abs()));
        CivilDateTime::new(
            CivilDate::from_parts_unchecked(clock.year().into(), month, day),
            CivilTime::from_parts_unchecked(hour, minute, second),
        )
    }

    fn civil_weekday(&self) -> Weekday {
        let days = self.0.weekday().to_sunday_zero_offset();
        Weekday::from_days_from_sunday(days.unsigned_abs().into())
    }

    fn resolve_civil(&self, civil: CivilDateTime) -> Result<Resolution<Self>, CronError> {
        let year = i16::try_from(civil.year()).map_err(|_| CronError::InvalidDate)?;
        let part = |part: u32| i8::try_from(part).map_err(|_| CronError::InvalidDate);
        let date = civil::Date::new(year, part(civil.month())?, part(civil.day())?);
        let time = civil::Time::new(
            part(civil.hour())?,
            part(civil.minute())?,
            part(civil.second())?,
            0,
        );
        match (date, time) {
            (Ok(date), Ok(time)) => Ok(Resolution::Single(Self(date.to_datetime(time)))),
            _ => Err(CronError::InvalidDate),
        }
    }

    fn checked_add_seconds(&self, seconds: i64) -> Option<Self> {
        let later = self.0.checked_add(SignedDuration::from_secs(seconds));
        later.ok().map(Self)
    }

    fn cmp_instant(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}
