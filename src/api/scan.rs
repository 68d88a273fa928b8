//! The usual chunk of a stream, known without the full parser.
//!
//! A strict walk over the whole document. It either says "exactly this", and then the full parser would report the
//! same, or nothing at all, and then the full parser is asked. It may therefore be as ignorant as it likes but never
//! wrong: unknown keys, a key twice, floats, escapes other than the simplest, a second choice, anything that is not
//! null where null is usual, all go to the full parser. The law is held by [`fuzz_json_scan`].

#[cfg(test)]
mod tests;

use super::{Channel, Dialect, Finish, Reader, Usage};
use crate::wire::json::Json;

/// An event that is known to report at most one piece of text and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known<'t> {
    /// The choice that it belongs to.
    pub(super) choice: u32,
    /// The piece; `None` for an event without text (the role alone). Its text is empty where none is wanted.
    pub(super) piece: Option<(Channel, &'t str)>,
}

/// Walks over one event; `None` is "ask the full parser".
#[inline]
pub(super) fn scan(dialect: Dialect, data: &[u8], wants_text: bool) -> Option<Known<'_>> {
    if data.len() > CHUNK_BYTES_MAX {
        return None;
    }
    let mut walk = Walk { rest: data };
    let mut seen = Seen(0);
    let mut choice = None;
    walk.object(|walk, key| match key {
        b"choices" => {
            choice = walk.only_choice(dialect);
            choice.is_some() && seen.first(Seen::CHOICES)
        }
        b"object" => walk.plain_text().is_some_and(|text| text != b"error") && seen.first(Seen::OBJECT),
        b"created" => walk.integer().is_some(),
        b"id" | b"model" | b"system_fingerprint" | b"service_tier" | b"obfuscation" | b"provider" => {
            walk.text_or_null()
        }
        b"usage" | b"error" | b"prompt_token_ids" | b"prompt_text" | b"kv_transfer_params" => walk.null(),
        _ => false,
    })?;
    walk.end()?;
    choice?.known(wants_text)
}

/// What the only choice of an event says.
#[derive(Clone, Copy, Default)]
struct Choice<'t> {
    index: u32,
    piece: Option<(Channel, Text<'t>)>,
}

impl<'t> Choice<'t> {
    fn known(self, wants_text: bool) -> Option<Known<'t>> {
        let piece = match self.piece {
            None => None,
            Some((channel, _)) if !wants_text => Some((channel, "")),
            Some((_, text)) if text.escaped => return None,
            Some((channel, text)) => Some((channel, str::from_utf8(text.bytes).ok()?)),
        };
        Some(Known { choice: self.index, piece })
    }

    /// Takes the value of a field of text: a second text that is not empty makes the event unusual.
    fn say(&mut self, channel: Channel, text: Option<Option<Text<'t>>>) -> bool {
        match text {
            None => false,
            Some(Some(text)) if !text.bytes.is_empty() => self.piece.replace((channel, text)).is_none(),
            Some(_) => true,
        }
    }
}

/// A string as it stands between its quotes.
#[derive(Clone, Copy)]
struct Text<'t> {
    bytes: &'t [u8],
    /// Whether a backslash stands in it.
    escaped: bool,
}

/// The keys met so far in one object. Only those that are read need be noted, and of them only those that may hold
/// more than null: of equal names the last one counts, and this walk knows the first.
struct Seen(u8);

impl Seen {
    const OBJECT: u8 = 1;
    const CHOICES: u8 = 1 << 1;
    const INDEX: u8 = 1;
    const TEXTS: u8 = 1 << 1;

    /// Notes a key; `false` if it was there before.
    fn first(&mut self, key: u8) -> bool {
        let is_first = self.0 & key == 0;
        self.0 |= key;
        is_first
    }
}

/// A position in the document. `None` and `false` alike are "not as expected": the walk is then given up, wherever
/// it stands.
struct Walk<'t> {
    rest: &'t [u8],
}

impl<'t> Walk<'t> {
    /// `[{...}]`: the array of choices with its only one.
    fn only_choice(&mut self, dialect: Dialect) -> Option<Choice<'t>> {
        let mut choice = Choice::default();
        let mut seen = Seen(0);
        self.take(b'[')?;
        self.object(|walk, key| match key {
            b"index" => {
                let index = walk.integer().and_then(|index| u32::try_from(index).ok());
                choice.index = index.unwrap_or_default();
                index.is_some() && seen.first(Seen::INDEX)
            }
            b"delta" if dialect == Dialect::OpenaiChat => {
                seen.first(Seen::TEXTS) && walk.delta(&mut choice).is_some()
            }
            b"text" if dialect == Dialect::Openai => {
                seen.first(Seen::TEXTS) && choice.say(Channel::Content, walk.nullable_text())
            }
            b"finish_reason"
            | b"logprobs"
            | b"token_ids"
            | b"stop_reason"
            | b"matched_stop"
            | b"native_finish_reason"
            | b"prompt_token_ids"
            | b"hidden_states" => walk.null(),
            _ => false,
        })?;
        self.take(b']')?;
        Some(choice)
    }

    fn delta(&mut self, choice: &mut Choice<'t>) -> Option<()> {
        let mut seen = Seen(0);
        self.object(|walk, key| {
            let (bit, channel) = match key {
                b"content" => (1, Channel::Content),
                b"reasoning_content" => (2, Channel::Reasoning),
                b"reasoning" => (4, Channel::Reasoning),
                b"refusal" => (8, Channel::Refusal),
                b"role" => return walk.text_or_null(),
                b"tool_calls" | b"function_call" | b"audio" => return walk.null(),
                _ => return false,
            };
            seen.first(bit) && choice.say(channel, walk.nullable_text())
        })
    }

    /// An object whose every field is taken by `field`, which gets the key and stands at the value.
    fn object(&mut self, mut field: impl FnMut(&mut Walk<'t>, &'t [u8]) -> bool) -> Option<()> {
        self.take(b'{')?;
        if self.take(b'}').is_some() {
            return Some(());
        }
        loop {
            let key = self.plain_text()?;
            self.take(b':')?;
            if !field(self, key) {
                return None;
            }
            match self.next()? {
                b',' => {}
                b'}' => return Some(()),
                _ => return None,
            }
        }
    }

    /// Nothing but blanks is left.
    fn end(&mut self) -> Option<()> {
        self.skip_blanks();
        self.rest.is_empty().then_some(())
    }

    /// The next byte that is no blank. Line ends and tabs are blanks too in JSON, but no server that was seen writes
    /// them into a stream.
    fn next(&mut self) -> Option<u8> {
        self.skip_blanks();
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(byte)
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        self.skip_blanks();
        self.rest = self.rest.strip_prefix(&[byte])?;
        Some(())
    }

    fn skip_blanks(&mut self) {
        while let [b' ', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    fn null(&mut self) -> bool {
        self.skip_blanks();
        let rest = self.rest.strip_prefix(b"null");
        self.rest = rest.unwrap_or_default();
        rest.is_some()
    }

    fn text_or_null(&mut self) -> bool {
        self.nullable_text().is_some()
    }

    fn nullable_text(&mut self) -> Option<Option<Text<'t>>> {
        self.skip_blanks();
        if self.rest.first() == Some(&b'n') { self.null().then_some(None) } else { self.text().map(Some) }
    }

    /// A string without escapes.
    fn plain_text(&mut self) -> Option<&'t [u8]> {
        self.text().filter(|text| !text.escaped).map(|text| text.bytes)
    }

    /// A string. Bytes beyond ASCII are taken as they are: the full parser replaces a bad sequence of them and never
    /// touches an ASCII byte, so where the string ends does not depend on them.
    fn text(&mut self) -> Option<Text<'t>> {
        self.take(b'"')?;
        let all = self.rest;
        let mut at = 0;
        let mut escaped = false;
        loop {
            at += plain_run(&all[at..]);
            match all[at..] {
                [b'"', ref rest @ ..] => {
                    self.rest = rest;
                    return Some(Text { bytes: &all[..at], escaped });
                }
                [b'\\', b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => {
                    escaped = true;
                    at += 2;
                }
                _ => return None,
            }
        }
    }

    /// A whole number without sign, exponent or leading zero, of at most 18 digits.
    fn integer(&mut self) -> Option<u64> {
        self.skip_blanks();
        let digits = self.rest.iter().take(19).take_while(|byte| byte.is_ascii_digit()).count();
        let (token, rest) = self.rest.split_at(digits);
        if digits == 0 || digits > 18 || (digits > 1 && token[0] == b'0') {
            return None;
        }
        // What must not follow a number (`1.5`, `1e3`, `1x`) is refused by whoever looks at the next byte.
        self.rest = rest;
        Some(token.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
    }
}

/// Number of bytes before the first quote, backslash or control character: eight at a time, since the strings of a
/// chunk are too short for a call of memchr to pay.
fn plain_run(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(eight) = text[at..].first_chunk::<8>() {
        let found = special_bytes(u64::from_le_bytes(*eight));
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    at + text[at..].iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1F)).count()
}

/// The high bit of the first byte that is special, counted from the low end. Those above it may be wrong: a borrow
/// runs upwards.
fn special_bytes(eight: u64) -> u64 {
    const ONES: u64 = u64::MAX / 0xFF;
    const HIGH: u64 = ONES * 0x80;
    let zero = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    let quote = zero(eight ^ (ONES * u64::from(b'"')));
    let backslash = zero(eight ^ (ONES * u64::from(b'\\')));
    let control = eight.wrapping_sub(ONES * 0x20) & !eight & HIGH;
    quote | backslash | control
}

/// Longer events are not usual, and the full parser has a limit to enforce.
const CHUNK_BYTES_MAX: usize = 64 << 10;

/// Holds the law of this file for any bytes: where the scan knows the event, the full parser reports the same.
///
/// # Panics
/// If it does not.
#[doc(hidden)]
pub fn fuzz_json_scan(data: &[u8]) {
    let mut json = Json::new();
    for dialect in [Dialect::OpenaiChat, Dialect::Openai] {
        compare::<true>(dialect, &mut json, data);
        compare::<false>(dialect, &mut json, data);
    }
}

fn compare<const TEXT: bool>(dialect: Dialect, json: &mut Json, data: &[u8]) {
    let mut fast = Log::<TEXT>::default();
    let mut full = Log::<TEXT>::default();
    let known = scan(dialect, data, TEXT);
    let fast_outcome = dialect.read_event(json, data, &mut fast);
    let full_outcome = dialect.read_event_in_full(json, data, &mut full);
    assert_eq!((fast_outcome, &fast), (full_outcome, &full), "the scan was wrong: {known:?}");
}

/// Every report in its order.
#[derive(Debug, Default, PartialEq)]
struct Log<const TEXT: bool>(Vec<Said>);

#[derive(Debug, PartialEq)]
enum Said {
    Piece(u32, Channel, String),
    Finish(u32, Finish),
    Tokens(u32, u32),
    Usage(Usage, u32),
    Error(String),
}

impl<const TEXT: bool> Reader for Log<TEXT> {
    const WANTS_TEXT: bool = TEXT;

    fn piece(&mut self, choice: u32, channel: Channel, text: &str) {
        self.0.push(Said::Piece(choice, channel, text.to_owned()));
    }

    fn finish(&mut self, choice: u32, reason: Finish) {
        self.0.push(Said::Finish(choice, reason));
    }

    fn tokens(&mut self, choice: u32, count: u32) {
        self.0.push(Said::Tokens(choice, count));
    }

    fn usage(&mut self, usage: Usage, choices: u32) {
        self.0.push(Said::Usage(usage, choices));
    }

    fn error(&mut self, message: &str) {
        self.0.push(Said::Error(message.to_owned()));
    }
}
