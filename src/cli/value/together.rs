//! What processes of one run are told: which part is whose, and when it begins.

use std::time::Duration;

use super::{integer, not, seconds};
use crate::plan::{Error, Share};
use crate::run_file::WallTime;

/// When the first measured request of a run is planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartAt {
    /// So long after all is ready.
    After(Duration),
    /// When all shares are ready.
    Together,
    /// At that time.
    Wall(WallTime),
}

/// A share of a run, `I/N`; `None` for `auto` and `none`, which name no share.
///
/// # Errors
/// Whatever else; whether there is such a share is the plan's to say.
pub fn share(option: &str, text: &str) -> Result<Option<Share>, Error> {
    if matches!(text, "auto" | "none") {
        return Ok(None);
    }
    let parts = text.split_once('/');
    let read = |part: &str| integer::<u32>(option, part).ok();
    parts
        .and_then(|(index, of)| Some(Some(Share { index: read(index)?, of: read(of)? })))
        .ok_or_else(|| not(option, text, "a share", "2/4, the second of four, none or auto"))
}

/// `together`, `+10s`, a time of RFC 3339 in UTC or with an offset, or seconds since 1970.
///
/// # Errors
/// Whatever else; a time that does not say of which zone it is, which hosts may differ in.
pub fn start_at(option: &str, text: &str) -> Result<StartAt, Error> {
    let plain = text.trim();
    let wrong = || {
        let remedy = "give one as 2026-12-01T18:00:00Z, seconds since 1970, +10s, or together";
        Error::new(option, format!("'{text}' is no time to start at"), remedy)
    };
    if plain == "together" {
        return Ok(StartAt::Together);
    }
    if let Some(after) = plain.strip_prefix('+') {
        let after = Duration::try_from_secs_f64(seconds(option, after).map_err(|_| wrong())?);
        return after.map(StartAt::After).map_err(|_| wrong());
    }
    if let Some(time) = WallTime::parse(plain).or_else(|| in_zone(plain)) {
        return Ok(StartAt::Wall(time));
    }
    if WallTime::parse(&format!("{plain}Z")).is_some() {
        let remedy = format!("write {plain}Z if it is UTC, or add the zone, as in {plain}+01:00");
        return Err(Error::new(option, format!("'{text}' does not say of which time zone it is"), remedy));
    }
    // Digits are read apart: a float has no room for the nanoseconds of today.
    let (whole, fraction) = plain.split_once('.').unwrap_or((plain, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !all_digits(whole) || !all_digits(fraction) || fraction.len() > 9 {
        return Err(wrong());
    }
    let nanos = format!("{fraction:0<9}").parse::<u64>().map_err(|_| wrong())?;
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    let all = whole.checked_mul(1_000_000_000).and_then(|whole| whole.checked_add(nanos));
    all.map(|ns| StartAt::Wall(WallTime::from_unix_nanos(ns))).ok_or_else(wrong)
}

/// What is said of a start at `at` that is so far ahead, where that is long enough to look like a program that hangs.
#[must_use]
pub fn waiting(at: WallTime, ahead: Duration) -> Option<String> {
    if ahead < LONG {
        return None;
    }
    let s = ahead.as_secs();
    let (days, hours, minutes, seconds) = (s / 86_400, s / 3600 % 24, s / 60 % 60, s % 60);
    let parts = [(days, "d"), (hours, "h"), (minutes, "min"), (seconds, "s")];
    // The two largest units say when to look again.
    let parts = parts.into_iter().skip_while(|(n, _)| *n == 0).take(2);
    let span: Vec<String> = parts.map(|(n, unit)| format!("{n} {unit}")).collect();
    let time = at.to_string();
    let time = time.split('.').next().unwrap_or_default();
    Some(format!("the run starts at {time}Z (UTC), in {}: Ctrl-C ends the waiting", span.join(" ")))
}

/// Shorter waits are over before anybody wonders.
const LONG: Duration = Duration::from_secs(3);

/// A time as `2026-12-01T19:00:00+01:00`.
fn in_zone(text: &str) -> Option<WallTime> {
    let (time, zone) = text.split_at_checked(text.len().checked_sub(6)?)?;
    let (sign, zone) = zone.split_at_checked(1)?;
    let (hours, minutes) = zone.split_once(':')?;
    let number = |text: &str| (text.len() == 2).then(|| text.parse::<u64>().ok())?;
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    let away = (hours * 3600 + minutes * 60) * 1_000_000_000;
    let local = WallTime::parse(&format!("{time}Z"))?.unix_nanos();
    let ns = match sign {
        "+" if hours < 24 && minutes < 60 => local.checked_sub(away)?,
        "-" if hours < 24 && minutes < 60 => local.checked_add(away)?,
        _ => return None,
    };
    Some(WallTime::from_unix_nanos(ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_a_time_in_any_of_its_forms() {
        let at = |text: &str| start_at("--start-at", text);
        let noon = StartAt::Wall(WallTime::from_unix_nanos(1_796_126_400_000_000_000));
        for text in [
            "2026-12-01T12:00:00Z",
            "2026-12-01T13:00:00+01:00",
            "2026-12-01T06:30:00-05:30",
            "1796126400",
            "1796126400.0",
        ] {
            assert_eq!(at(text), Ok(noon), "{text}");
        }
        let late = StartAt::Wall(WallTime::from_unix_nanos(1_796_126_400_250_000_000));
        assert_eq!(at("1796126400.25"), Ok(late));
        assert_eq!(at("+10s"), Ok(StartAt::After(Duration::from_secs(10))));
        assert_eq!(at("+0.5"), Ok(StartAt::After(Duration::from_millis(500))));
        assert_eq!(at("together"), Ok(StartAt::Together));
        let huge = format!("{}", u64::MAX);
        for text in
            ["", "+", "+-1", "soon", "12:00", "-5", "1e9", "2026-12-01T12:00:00+25:00", "é:00:00", &huge]
        {
            assert!(
                at(text).is_err_and(|error| error.to_string().contains("2026-12-01T18:00:00Z")),
                "{text}"
            );
        }
    }

    #[test]
    fn a_time_without_a_zone_is_refused_with_both_ways_to_write_it() {
        let error = start_at("--start-at", "2026-12-01T18:00:00").unwrap_err().to_string();
        for part in ["of which time zone", "2026-12-01T18:00:00Z", "2026-12-01T18:00:00+01:00"] {
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_long_wait_is_said_with_its_end_and_its_length() {
        let noon = WallTime::from_unix_nanos(1_796_126_400_250_000_000);
        let said = |s: u64| waiting(noon, Duration::from_secs(s));
        assert_eq!(said(2), None);
        let of = |span: &str| {
            Some(format!("the run starts at 2026-12-01T12:00:00Z (UTC), in {span}: Ctrl-C ends the waiting"))
        };
        assert_eq!(said(45), of("45 s"));
        assert_eq!(said(3 * 3600 + 12 * 60 + 7), of("3 h 12 min"));
        assert_eq!(said(86_400 * 400 + 3), of("400 d 0 h"));
    }

    #[test]
    fn words_in_the_place_of_a_share_name_none() {
        assert_eq!(share("--share", "2/4"), Ok(Some(Share { index: 2, of: 4 })));
        assert_eq!((share("--share", "auto"), share("--share", "none")), (Ok(None), Ok(None)));
        assert!(share("--share", "all").is_err());
    }
}
