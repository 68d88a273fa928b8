//! The wall-clock time of a run, as text. It reads no clock: the caller hands in what `sys` read once.

use std::fmt;

/// Nanoseconds since 1970-01-01T00:00:00 UTC, leap seconds not counted.
///
/// Displays as RFC 3339 with nine digits: `2026-11-30T20:44:53.000000042Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WallTime(u64);

impl WallTime {
    /// The time `ns` nanoseconds after 1970-01-01T00:00:00 UTC.
    #[must_use]
    pub const fn from_unix_nanos(ns: u64) -> WallTime {
        WallTime(ns)
    }

    /// Nanoseconds since 1970-01-01T00:00:00 UTC.
    #[must_use]
    pub const fn unix_nanos(self) -> u64 {
        self.0
    }

    /// The time to the second without separators, for file names: `20261130T204453Z`.
    #[must_use]
    pub fn compact(self) -> String {
        let (year, month, day) = self.date();
        let (hour, minute, second) = self.time();
        format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
    }

    fn time(self) -> (u64, u64, u64) {
        let seconds = self.0 / NANOS % DAY;
        (seconds / 3600, seconds / 60 % 60, seconds % 60)
    }

    /// Year, month, day of the Gregorian calendar.
    ///
    /// Counts days from 0000-03-01, so that the leap day is the last of its year and 400-year eras are all alike.
    fn date(self) -> (u64, u64, u64) {
        let days = self.0 / NANOS / DAY + DAYS_TO_1970;
        let (era, day_of_era) = (days / ERA, days % ERA);
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / (ERA - 1)) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        // Months from March: their lengths repeat 31 30 31 30 31, which this straight line reproduces.
        let from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * from_march + 2) / 5 + 1;
        let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
        (era * 400 + year_of_era + u64::from(month <= 2), month, day)
    }
}

impl fmt::Display for WallTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.date();
        let (hour, minute, second) = self.time();
        let nanos = self.0 % NANOS;
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nanos:09}Z")
    }
}

const NANOS: u64 = 1_000_000_000;
const DAY: u64 = 86_400;
/// Days of 400 years.
const ERA: u64 = 146_097;
/// Days from 0000-03-01 to 1970-01-01.
const DAYS_TO_1970: u64 = 719_468;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64, nanos: u64) -> String {
        WallTime::from_unix_nanos(seconds * NANOS + nanos).to_string()
    }

    #[test]
    fn known_seconds_are_known_dates() {
        assert_eq!(at(0, 0), "1970-01-01T00:00:00.000000000Z");
        assert_eq!(at(951_782_399, 999_999_999), "2000-02-28T23:59:59.999999999Z");
        assert_eq!(at(951_782_400, 0), "2000-02-29T00:00:00.000000000Z");
        assert_eq!(at(1_796_071_493, 42), "2026-11-30T20:44:53.000000042Z");
        assert_eq!(at(4_107_542_400, 0), "2100-03-01T00:00:00.000000000Z");
    }

    #[test]
    fn every_day_follows_its_yesterday() {
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for number in 1..60_000 {
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let length = match month {
                2 => 28 + u64::from(leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            day += 1;
            if day > length {
                (day, month) = (1, month + 1);
            }
            if month > 12 {
                (month, year) = (1, year + 1);
            }
            assert_eq!(WallTime(number * DAY * NANOS).date(), (year, month, day));
        }
    }

    #[test]
    fn file_names_carry_the_second() {
        assert_eq!(WallTime::from_unix_nanos(1_796_071_493 * NANOS + 7).compact(), "20261130T204453Z");
    }
}
