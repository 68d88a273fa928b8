//! Decimal numbers without a float in between: lengths, and times to the nanosecond.
//!
//! What JSON and CSV call a number is read here alike, since spreadsheets write lengths as `377.0` and times as
//! `1.94401125e7`.

use super::error::Reason;

/// A count of 32 bits: `377`, `377.0`, `3.77e2`.
pub(super) fn count(text: &str) -> Result<u32, Reason> {
    let decimal = Decimal::read(text)?;
    let (whole, is_exact) = decimal.unsigned(0)?;
    if !is_exact {
        return Err(Reason::Fraction);
    }
    u32::try_from(whole).map_err(|_| Reason::TooLarge)
}

/// An identifier of 64 bits: digits alone.
pub(super) fn id(text: &str) -> Result<u64, Reason> {
    let (whole, is_exact) = Decimal::read(text)?.unsigned(0)?;
    if is_exact { Ok(whole) } else { Err(Reason::Fraction) }
}

/// A time in nanoseconds. What is below one is rounded, half up.
pub(super) fn nanos(text: &str, unit: Unit) -> Result<u64, Reason> {
    Ok(Decimal::read(text)?.unsigned(unit as i32)?.0)
}

/// The unit of a time, as the power of ten that makes nanoseconds of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Milliseconds = 6,
    Seconds = 9,
}

/// The parts of a number's text.
struct Decimal<'t> {
    is_negative: bool,
    whole: &'t [u8],
    fraction: &'t [u8],
    exponent: i32,
}

impl<'t> Decimal<'t> {
    fn read(text: &'t str) -> Result<Decimal<'t>, Reason> {
        let text = text.trim_matches([' ', '\t']);
        let (is_negative, unsigned) = match text.as_bytes() {
            [] => return Err(Reason::Empty),
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        let (whole, rest) = digits(unsigned);
        let (fraction, rest) = rest.strip_prefix(b".").map_or((&rest[..0], rest), digits);
        if whole.is_empty() && fraction.is_empty() {
            return Err(if names_no_number(unsigned) { Reason::NotFinite } else { Reason::NotANumber });
        }
        let exponent = match rest {
            [] => 0,
            [b'e' | b'E', rest @ ..] => read_exponent(rest)?,
            _ => return Err(Reason::NotANumber),
        };
        Ok(Decimal { is_negative, whole, fraction, exponent })
    }

    /// The number times `10^scale`, rounded half up, and whether that is exact.
    fn unsigned(&self, scale: i32) -> Result<(u64, bool), Reason> {
        let is_zero = |digits: &[u8]| digits.iter().all(|digit| *digit == b'0');
        if is_zero(self.whole) && is_zero(self.fraction) {
            return Ok((0, true));
        }
        if self.is_negative {
            return Err(Reason::Negative);
        }
        let shift = i64::from(self.exponent) + i64::from(scale);
        let mut left = self.whole.len() as i64 + shift;
        let mut digits = self.whole.iter().chain(self.fraction);
        let mut value = 0_u64;
        // Where the digits end first, one of them was not 0: the zeros for the rest of the shift soon overflow.
        while left > 0 {
            let digit = digits.next().map_or(0, |digit| u64::from(digit - b'0'));
            value = value.checked_mul(10).and_then(|v| v.checked_add(digit)).ok_or(Reason::TooLarge)?;
            left -= 1;
        }
        if left < 0 {
            return Ok((value, false));
        }
        let round_up = digits.clone().next().is_some_and(|digit| *digit >= b'5');
        let is_exact = digits.all(|digit| *digit == b'0');
        Ok((value.checked_add(u64::from(round_up)).ok_or(Reason::TooLarge)?, is_exact))
    }
}

/// Splits the digits at the beginning from the rest.
fn digits(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

/// Exponents beyond what a number of 64 bits could have are cut to a million: they end up as zero or too large alike.
fn read_exponent(text: &[u8]) -> Result<i32, Reason> {
    let (sign, text) = match text {
        [b'-', rest @ ..] => (-1, rest),
        [b'+', rest @ ..] => (1, rest),
        rest => (1, rest),
    };
    let (digits, rest) = digits(text);
    if digits.is_empty() || !rest.is_empty() {
        return Err(Reason::NotANumber);
    }
    let magnitude =
        digits.iter().fold(0, |sum: i32, digit| (sum * 10 + i32::from(digit - b'0')).min(1_000_000));
    Ok(sign * magnitude)
}

fn names_no_number(text: &[u8]) -> bool {
    ["nan", "inf", "infinity"].iter().any(|word| text.eq_ignore_ascii_case(word.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_whole_numbers_of_32_bits_however_they_are_written() {
        for (text, expected) in [
            ("377", Ok(377)),
            (" 377 ", Ok(377)),
            ("+377.0", Ok(377)),
            ("3.77e2", Ok(377)),
            ("37700E-2", Ok(377)),
            ("0", Ok(0)),
            ("-0.0", Ok(0)),
            ("0e999999999999", Ok(0)),
            ("000000000000000000000000000007", Ok(7)),
            ("4294967295", Ok(u32::MAX)),
            ("4294967296", Err(Reason::TooLarge)),
            ("1e999999999999", Err(Reason::TooLarge)),
            ("99999999999999999999999999", Err(Reason::TooLarge)),
            ("1.5", Err(Reason::Fraction)),
            ("1e-1", Err(Reason::Fraction)),
            ("1e-999999999999", Err(Reason::Fraction)),
            ("-1", Err(Reason::Negative)),
            ("-0.1", Err(Reason::Negative)),
            ("NaN", Err(Reason::NotFinite)),
            ("-inf", Err(Reason::NotFinite)),
            ("Infinity", Err(Reason::NotFinite)),
            ("", Err(Reason::Empty)),
            (".", Err(Reason::NotANumber)),
            ("1e", Err(Reason::NotANumber)),
            ("1e+", Err(Reason::NotANumber)),
            ("1 2", Err(Reason::NotANumber)),
            ("0x10", Err(Reason::NotANumber)),
            ("1,000", Err(Reason::NotANumber)),
            ("\u{0663}", Err(Reason::NotANumber)),
        ] {
            assert_eq!(count(text), expected, "{text:?}");
        }
    }

    #[test]
    fn times_are_exact_to_the_nanosecond() {
        for (text, unit, expected) in [
            ("61.1", Unit::Seconds, Ok(61_100_000_000)),
            ("19440112.5", Unit::Seconds, Ok(19_440_112_500_000_000)),
            ("9007199254.740993", Unit::Seconds, Ok(9_007_199_254_740_993_000)),
            ("250", Unit::Milliseconds, Ok(250_000_000)),
            ("0.0000014", Unit::Milliseconds, Ok(1)),
            ("0.0000015", Unit::Milliseconds, Ok(2)),
            ("61.25000000000001", Unit::Seconds, Ok(61_250_000_000)),
            ("0.00000000049999999999999", Unit::Seconds, Ok(0)),
            ("18446744073.709551615", Unit::Seconds, Ok(u64::MAX)),
            ("18446744073.7095516155", Unit::Seconds, Err(Reason::TooLarge)),
            ("18446744073.709551616", Unit::Seconds, Err(Reason::TooLarge)),
            ("-0.1", Unit::Seconds, Err(Reason::Negative)),
        ] {
            assert_eq!(nanos(text, unit), expected, "{text:?}");
        }
    }

    #[test]
    fn ids_have_64_bits() {
        assert_eq!(id("18446744073709551615"), Ok(u64::MAX));
        assert_eq!(id("18446744073709551616"), Err(Reason::TooLarge));
        assert_eq!(id("-1"), Err(Reason::Negative));
        assert_eq!(id("1.5"), Err(Reason::Fraction));
    }
}
