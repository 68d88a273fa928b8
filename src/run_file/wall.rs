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

    /// The time that `text` says in the form that is displayed, the digits behind the point being optional; `None` if it
    /// is of another form, or before 1970.
    #[must_use]
    pub fn parse(text: &str) -> Option<WallTime> {
        let (seconds, fraction) = match text.strip_suffix('Z')?.split_once('.') {
            Some((seconds, fraction)) => (seconds, fraction),
            None => (text.strip_suffix('Z')?, ""),
        };
        let digits =
            |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?;
        let (date, time) = seconds.split_once('T')?;
        let of = |text: &str, mark: char| -> Option<[u64; 3]> {
            let parts: Option<Vec<u64>> = text.split(mark).map(digits).collect();
            parts?.try_into().ok()
        };
        let ([year, month, day], [hour, minute, second]) = (of(date, '-')?, of(time, ':')?);
        let valid = (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
        if !valid || hour > 23 || minute > 59 || second > 60 || fraction.len() > 9 {
            return None;
        }
        let nanos = digits(&format!("{fraction:0<9}"))?;
        let days = days_of(year, month, day).checked_sub(DAYS_TO_1970)?;
        let seconds = days * DAY + hour * 3600 + minute * 60 + second;
        Some(WallTime(seconds.checked_mul(NANOS)?.checked_add(nanos)?))
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

/// Days from 0000-03-01 to a day: the reverse of [`WallTime::date`].
fn days_of(year: u64, month: u64, day: u64) -> u64 {
    // January and February are the last months of the year before.
    let (year, from_march) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, year_of_era) = (year / 400, year % 400);
    era * ERA + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + (153 * from_march + 2) / 5 + day - 1
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
    fn what_was_written_is_read() {
        for day in (0..60_000).chain([106_751]) {
            let time = WallTime(day * DAY * NANOS + day * 1_234_567_891 % (DAY * NANOS));
            assert_eq!(WallTime::parse(&time.to_string()), Some(time), "{time}");
        }
        assert_eq!(WallTime::parse("1970-01-01T00:00:01Z"), Some(WallTime(NANOS)));
        assert_eq!(WallTime::parse("1970-01-01T00:00:01.5Z"), Some(WallTime(NANOS + NANOS / 2)));
        for text in [
            "",
            "Z",
            "1969-12-31T23:59:59Z",
            "1970-01-01 00:00:01Z",
            "1970-13-01T00:00:01Z",
            "1970-01-01T00:00:01",
            "1970-01-01T+0:00:01Z",
            "1970-01-01T00:00:01.0000000001Z",
            "99999-01-01T00:00:01Z",
        ] {
            assert_eq!(WallTime::parse(text), None, "{text}");
        }
    }

    #[test]
    fn file_names_carry_the_second() {
        assert_eq!(WallTime::from_unix_nanos(1_796_071_493 * NANOS + 7).compact(), "20261130T204453Z");
    }
}
