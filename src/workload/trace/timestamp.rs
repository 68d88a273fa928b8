//! Dates with a time of day, as the Azure traces write them, in nanoseconds since 1970.
//!
//! Owns the text form and the Gregorian calendar. Leap seconds do not exist here, as they do not in the files.

use super::error::Reason;

/// Reads `2023-11-16 09:30:46.6805900`: a blank or `T` in between, up to nine digits of a second or none, and no zone,
/// `Z`, `+00:00`, `+0000` or `+00`. A time without a zone is taken as UTC; what counts are differences.
pub(super) fn nanos(text: &str) -> Result<u64, Reason> {
    let mut rest = Cursor(text.trim_matches([' ', '\t']).as_bytes());
    if rest.0.is_empty() {
        return Err(Reason::Empty);
    }
    let day = date(&mut rest).ok_or(Reason::NotATime)?;
    let (second, fraction) = time_of_day(&mut rest).ok_or(Reason::NotATime)?;
    let zone = zone_seconds(&mut rest).ok_or(Reason::NotATime)?;
    if !rest.0.is_empty() {
        return Err(Reason::NotATime);
    }
    let seconds = day * 86_400 + i64::from(second) - zone;
    let seconds = u64::try_from(seconds).map_err(|_| Reason::Negative)?;
    let nanos = seconds.checked_mul(1_000_000_000).and_then(|nanos| nanos.checked_add(u64::from(fraction)));
    nanos.ok_or(Reason::TooLarge)
}

/// Days since 1970.
fn date(rest: &mut Cursor<'_>) -> Option<i64> {
    let year = rest.number(4)?;
    rest.one_of(b"-")?;
    let month = rest.number(2)?;
    rest.one_of(b"-")?;
    let day = rest.number(2)?;
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days_of = |month| match month {
        2 => 28 + u32::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if !(1..=12).contains(&month) || !(1..=days_of(month)).contains(&day) {
        return None;
    }
    let leap_days_before = |year: i64| year / 4 - year / 100 + year / 400;
    let years = i64::from(year) - 1;
    let days_before_year = years * 365 + leap_days_before(years) - DAYS_TO_1970;
    let days_before_month: u32 = (1..month).map(days_of).sum();
    Some(days_before_year + i64::from(days_before_month) + i64::from(day) - 1)
}

/// The second of the day, and nanoseconds of it.
fn time_of_day(rest: &mut Cursor<'_>) -> Option<(u32, u32)> {
    rest.one_of(b" T")?;
    let hour = rest.number(2)?;
    rest.one_of(b":")?;
    let minute = rest.number(2)?;
    rest.one_of(b":")?;
    let second = rest.number(2)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let fraction = match rest.one_of(b".") {
        Some(_) => rest.fraction()?,
        None => 0,
    };
    Some((hour * 3600 + minute * 60 + second, fraction))
}

/// Seconds that the zone is ahead of UTC.
fn zone_seconds(rest: &mut Cursor<'_>) -> Option<i64> {
    let sign = match rest.one_of(b"Z+-") {
        None | Some(b'Z') => return Some(0),
        Some(b'-') => -1,
        Some(_) => 1,
    };
    let hours = rest.number(2)?;
    let has_minutes = rest.one_of(b":").is_some() || !rest.0.is_empty();
    let minutes = if has_minutes { rest.number(2)? } else { 0 };
    (hours <= 23 && minutes <= 59).then_some(sign * i64::from(hours * 3600 + minutes * 60))
}

/// What has not been read yet.
struct Cursor<'t>(&'t [u8]);

impl Cursor<'_> {
    fn one_of(&mut self, wanted: &[u8]) -> Option<u8> {
        let (first, rest) = self.0.split_first().filter(|(first, _)| wanted.contains(first))?;
        self.0 = rest;
        Some(*first)
    }

    /// Exactly so many digits.
    fn number(&mut self, digits: usize) -> Option<u32> {
        let (number, rest) = self.0.split_at_checked(digits)?;
        let is_number = number.iter().all(u8::is_ascii_digit);
        self.0 = rest;
        is_number.then(|| number.iter().fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0')))
    }

    /// One to nine digits behind the point, as nanoseconds.
    fn fraction(&mut self) -> Option<u32> {
        let end = self.0.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(self.0.len());
        let scale = 9_u32.checked_sub(u32::try_from(end).ok()?)?;
        (end > 0).then(|| self.number(end))?.map(|number| number * 10_u32.pow(scale))
    }
}

/// From the first day of year 1 to that of 1970.
const DAYS_TO_1970: i64 = 719_162;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_all_written_forms_are_exact() {
        for (text, expected) in [
            ("1970-01-01 00:00:00", 0),
            ("1970-01-01T00:00:00.000000001Z", 1),
            ("2000-03-01 00:00:00", 951_868_800_000_000_000),
            ("2023-11-16 09:30:46.6805900", 1_700_127_046_680_590_000),
            ("2024-02-29 23:59:59.999999999", 1_709_251_199_999_999_999),
            ("2024-05-12 00:00:00.001200+00:00", 1_715_472_000_001_200_000),
            ("2024-05-12 00:00:01+00:00", 1_715_472_001_000_000_000),
            ("2024-05-12 02:00:01.5+02:00", 1_715_472_001_500_000_000),
            ("2024-05-11 18:30:01.5-0530", 1_715_472_001_500_000_000),
            ("2024-05-12 01:00:01.5+01", 1_715_472_001_500_000_000),
            (" 2024-05-12 00:00:01 ", 1_715_472_001_000_000_000),
            ("2554-07-21 23:34:33.709551615", u64::MAX),
        ] {
            assert_eq!(nanos(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for (text, reason) in [
            ("", Reason::Empty),
            ("NaN", Reason::NotATime),
            ("2023-11-16", Reason::NotATime),
            ("2023-02-29 00:00:00", Reason::NotATime),
            ("2100-02-29 00:00:00", Reason::NotATime),
            ("2023-00-10 00:00:00", Reason::NotATime),
            ("2023-13-10 00:00:00", Reason::NotATime),
            ("2023-11-31 00:00:00", Reason::NotATime),
            ("2023-11-16 24:00:00", Reason::NotATime),
            ("2023-11-16 00:60:00", Reason::NotATime),
            ("2023-11-16 00:00:60", Reason::NotATime),
            ("2023-11-16 00:00:00.", Reason::NotATime),
            ("2023-11-16 00:00:00.0000000001", Reason::NotATime),
            ("2023-11-16 00:00:00+", Reason::NotATime),
            ("2023-11-16 00:00:00+00:0", Reason::NotATime),
            ("2023-11-16 00:00:00+24:00", Reason::NotATime),
            ("2023-11-16 00:00:00 UTC", Reason::NotATime),
            ("2023-1-16 00:00:00", Reason::NotATime),
            ("1969-12-31 23:59:59", Reason::Negative),
            ("0000-01-01 00:00:00", Reason::Negative),
            ("2554-07-21 23:34:33.709551616", Reason::TooLarge),
            ("9999-12-31 00:00:00", Reason::TooLarge),
        ] {
            assert_eq!(nanos(text), Err(reason), "{text}");
        }
    }
}
