//! A second look at a document that the strict parser refused.
//!
//! It rewrites what a lenient reader takes and simd-json does not: bad UTF-8, unpaired surrogate escapes, numbers
//! that do not fit. It does not judge the syntax; the parser reads the result again and has the last word. Cold: it
//! allocates.

/// `text` with those things rewritten; `None` where there were none.
#[cold]
pub(super) fn repaired(text: &[u8]) -> Option<Vec<u8>> {
    let clean = String::from_utf8_lossy(text);
    let mut repair = Repair { rest: clean.as_bytes(), out: Vec::with_capacity(clean.len()), changed: false };
    repair.document();
    (repair.changed || clean.len() != text.len() || clean.as_bytes() != text).then_some(repair.out)
}

struct Repair<'t> {
    /// Not yet looked at.
    rest: &'t [u8],
    out: Vec<u8>,
    /// Whether `out` differs from what was read.
    changed: bool,
}

impl Repair<'_> {
    fn document(&mut self) {
        while let Some(&byte) = self.rest.first() {
            match byte {
                b'"' => self.string(),
                b'-' | b'0'..=b'9' => self.number(),
                _ => self.copy(1),
            }
        }
    }

    /// From the opening quote to the closing one, or to the end of the text.
    fn string(&mut self) {
        self.copy(1);
        while let Some(&byte) = self.rest.first() {
            match byte {
                b'"' => return self.copy(1),
                b'\\' => self.escape(),
                _ => self.copy(1),
            }
        }
    }

    fn escape(&mut self) {
        match (code_unit(self.rest), self.rest.get(6..).and_then(code_unit)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => self.copy(12),
            (Some(0xD800..=0xDFFF), _) => self.replace(6, r"\ufffd"),
            (Some(_), _) => self.copy(6),
            (None, _) => self.copy(2),
        }
    }

    /// A number with an exponent, or long enough to overflow, is written anew: as the nearest float that every
    /// parser takes.
    fn number(&mut self) {
        let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
        let size = self.rest.iter().take_while(|byte| is_part(byte)).count();
        let token = &self.rest[..size];
        let unusual = size > SAFE_DIGITS || token.iter().any(|byte| matches!(byte, b'e' | b'E'));
        match (unusual && is_json_number(token)).then(|| nearest(token)).flatten() {
            Some(number) => self.replace(size, &format!("{number:e}")),
            None => self.copy(size),
        }
    }

    fn copy(&mut self, size: usize) {
        let (done, rest) = self.rest.split_at(size.min(self.rest.len()));
        self.out.extend_from_slice(done);
        self.rest = rest;
    }

    fn replace(&mut self, size: usize, by: &str) {
        self.out.extend_from_slice(by.as_bytes());
        self.rest = &self.rest[size..];
        self.changed = true;
    }
}

/// The code unit of an escape `\uXXXX` at the start of `text`.
fn code_unit(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(br"\u")?.get(..4)?;
    digits.iter().try_fold(0, |unit, digit| Some(unit * 16 + char::from(*digit).to_digit(16)?))
}

/// Held to the grammar of RFC 8259: Rust's own float parser takes more (`1.`, `+1`, `01`).
fn is_json_number(token: &[u8]) -> bool {
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut rest = token.strip_prefix(b"-").unwrap_or(token);
    let whole = digits(rest);
    if whole == 0 || (whole > 1 && rest[0] == b'0') {
        return false;
    }
    rest = &rest[whole..];
    if let Some(fraction) = rest.strip_prefix(b".") {
        let size = digits(fraction);
        if size == 0 {
            return false;
        }
        rest = &fraction[size..];
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        let exponent = exponent.strip_prefix(b"+").or(exponent.strip_prefix(b"-")).unwrap_or(exponent);
        let size = digits(exponent);
        return size > 0 && size == exponent.len();
    }
    rest.is_empty()
}

/// The value of a number, cut to a range in which no parser gives up.
fn nearest(token: &[u8]) -> Option<f64> {
    let number: f64 = str::from_utf8(token).ok()?.parse().ok()?;
    Some(if number.abs() < TINY { 0.0 } else { number.clamp(-HUGE, HUGE) })
}

/// Digits that always fit into 64 bits with a sign.
const SAFE_DIGITS: usize = 18;

/// Numbers beyond are as good as this one: nothing that is counted comes near.
const HUGE: f64 = 1e300;

/// Numbers closer to zero are as good as zero.
const TINY: f64 = 1e-300;
