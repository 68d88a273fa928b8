//! The usual chunk of a stream, and the usual whole answer, known without the full parser.
//!
//! A strict walk over the whole document. It either says "exactly this", and then the full parser would report the
//! same, or nothing at all, and then the full parser is asked. It may therefore be as ignorant as it likes but never
//! wrong: unknown keys, a key twice, floats, escapes other than the simplest, a second choice, anything that is not
//! null where null is usual, all go to the full parser. The law is held by `law::fuzz_json_scan`.

mod frame;
mod law;
#[cfg(test)]
mod tests;
mod usage;

pub use frame::Frame;
pub use law::fuzz_json_scan;

use super::answer::Part;
use super::{Channel, Finish, Reader, Usage};
use crate::wire::after;

/// An event, or a whole answer, that is known to report this and nothing else, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known<'t> {
    /// Its only choice.
    choice: u32,
    /// The piece; `None` for an event without text (the role alone). Its text is empty where none is wanted.
    piece: Option<(Channel, &'t str)>,
    /// Why the choice ended.
    finish: Option<Finish>,
    /// The token counts.
    usage: Option<Usage>,
}

impl Known<'_> {
    /// Reports it.
    #[inline]
    pub(super) fn report<R: Reader>(&self, to: &mut R) {
        if let Some((channel, text)) = self.piece {
            to.piece(self.choice, channel, text);
        }
        if let Some(reason) = self.finish {
            to.finish(self.choice, reason);
        }
        if let Some(usage) = self.usage {
            to.usage(usage, 1);
        }
    }
}

/// What nearly all events are known to report: a piece of text and nothing else. They are not asked for the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece<'t> {
    choice: u32,
    channel: Channel,
    text: &'t str,
}

/// Reports what one event says, if that is known; if not, it says nothing and the full parser is to be asked. `frame` is
/// that of the answer that the event belongs to.
#[inline]
pub(super) fn event<R: Reader>(part: Part, frame: &mut Frame, data: &[u8], to: &mut R) -> bool {
    if let Some(Piece { choice, channel, text }) = frame.known(data, R::WANTS_TEXT) {
        to.piece(choice, channel, text);
        return true;
    }
    let known = beyond_frame(part, frame, data, R::WANTS_TEXT);
    known.iter().for_each(|known| known.report(to));
    known.is_some()
}

/// An event that its frame does not know, and which then may leave another.
fn beyond_frame<'t>(part: Part, frame: &mut Frame, data: &'t [u8], wants_text: bool) -> Option<Known<'t>> {
    let choice = walk(part, data)?;
    frame.learn(data, &choice);
    choice.known(wants_text)
}

/// Looks at a whole answer, which has no frame: nothing else of it comes.
pub(super) fn whole(part: Part, body: &[u8], wants_text: bool) -> Option<Known<'_>> {
    walk(part, body)?.known(wants_text)
}

/// Walks over one event or answer.
fn walk(part: Part, data: &[u8]) -> Option<Choice<'_>> {
    if data.len() > CHUNK_BYTES_MAX {
        return None;
    }
    let mut walk = Walk { rest: data };
    let mut seen = Seen(0);
    let mut choice = Choice::default();
    walk.object(|walk, name| match name {
        Name::Choices => seen.first(Seen::CHOICES) && walk.only_choice(part, &mut choice).is_some(),
        Name::Object => seen.first(Seen::OBJECT) && walk.harmless_object(),
        Name::Created => walk.whole_number().is_some(),
        Name::Label => walk.nullable_text().is_some(),
        Name::Usage => seen.first(Seen::USAGE) && walk.usage(&mut choice.usage).is_some(),
        Name::Error | Name::AbsentAround => walk.null(),
        _ => false,
    })?;
    walk.end()?;
    seen.has(Seen::CHOICES).then_some(choice)
}

/// What the only choice of an event says, and what stands beside it.
#[derive(Clone, Copy, Default)]
struct Choice<'t> {
    index: u32,
    /// The only text that is not empty, as it stands between its quotes.
    piece: Option<(Channel, &'t [u8])>,
    /// Bytes of the document behind the closing quote of that text.
    left: usize,
    finish: Option<Finish>,
    usage: Usage,
}

impl<'t> Choice<'t> {
    fn known(self, wants_text: bool) -> Option<Known<'t>> {
        let piece = match self.piece {
            None => None,
            Some((channel, text)) => Some((channel, as_wanted(text, wants_text)?)),
        };
        Some(Known { choice: self.index, piece, finish: self.finish, usage: self.usage.told() })
    }

    /// Whether there is more than a piece.
    fn says_more(&self) -> bool {
        self.finish.is_some() || self.usage.told().is_some()
    }

    /// Takes the value of a field of text: a second text that is not empty makes the event unusual.
    fn say(&mut self, channel: Channel, walk: &mut Walk<'t>) -> bool {
        match walk.nullable_text() {
            None => false,
            Some([]) => true,
            Some(text) => {
                self.left = walk.rest.len();
                self.piece.replace((channel, text)).is_none()
            }
        }
    }
}

/// A text as it stands between its quotes, for who wants it; `None` where it would have to be decoded.
#[inline]
fn as_wanted(text: &[u8], wants_text: bool) -> Option<&str> {
    match wants_text {
        false => Some(""),
        true if text.contains(&b'\\') => None,
        true => str::from_utf8(text).ok(),
    }
}

/// The keys met so far in one object. Only those that are read need be noted, and of them only those that may hold
/// more than null: of equal names the last one counts, and this walk knows the first.
struct Seen(u8);

impl Seen {
    const OBJECT: u8 = 1;
    const CHOICES: u8 = 1 << 1;
    const USAGE: u8 = 1 << 2;
    const INDEX: u8 = 1;
    const TEXTS: u8 = 1 << 1;
    const FINISH: u8 = 1 << 2;

    fn has(&self, key: u8) -> bool {
        self.0 & key != 0
    }

    /// Notes a key; `false` if it was there before.
    fn first(&mut self, key: u8) -> bool {
        let is_first = !self.has(key);
        self.0 |= key;
        is_first
    }
}

/// A name that is known, in whichever object. What is unknown goes to the full parser.
#[derive(Clone, Copy)]
enum Name {
    Choices,
    Content,
    Created,
    Delta,
    Error,
    FinishReason,
    Index,
    Message,
    Object,
    Reasoning,
    ReasoningContent,
    Refusal,
    Role,
    Text,
    ToolCalls,
    Usage,
    /// A text or null that nobody reads, beside the choices.
    Label,
    /// Usually null beside the choices or in a choice.
    AbsentAround,
    /// Usually null in a choice.
    AbsentInChoice,
    /// Usually null in a delta.
    AbsentInDelta,
}

/// A position in the document. `None` and `false` alike are "not as expected": the walk is then given up, wherever
/// it stands.
struct Walk<'t> {
    rest: &'t [u8],
}

impl<'t> Walk<'t> {
    /// `[{...}]`: the array of choices with its only one.
    fn only_choice(&mut self, part: Part, choice: &mut Choice<'t>) -> Option<()> {
        let mut seen = Seen(0);
        self.take(b'[')?;
        self.object(|walk, name| match name {
            Name::Index => seen.first(Seen::INDEX) && walk.index(choice),
            Name::Delta if part == Part::Delta => seen.first(Seen::TEXTS) && walk.spoken(choice).is_some(),
            Name::Message if part == Part::Message => {
                seen.first(Seen::TEXTS) && walk.spoken(choice).is_some()
            }
            Name::Text if part == Part::Text => seen.first(Seen::TEXTS) && choice.say(Channel::Content, walk),
            Name::FinishReason => seen.first(Seen::FINISH) && walk.finish_reason(choice),
            Name::AbsentInChoice | Name::AbsentAround => walk.null(),
            _ => false,
        })?;
        self.take(b']')
    }

    /// What is said: a `delta` of a stream, or the `message` of a whole answer.
    fn spoken(&mut self, choice: &mut Choice<'t>) -> Option<()> {
        let mut seen = Seen(0);
        self.object(|walk, name| {
            let (bit, channel) = match name {
                Name::Content => (1, Channel::Content),
                Name::ReasoningContent => (1 << 1, Channel::Reasoning),
                Name::Reasoning => (1 << 2, Channel::Reasoning),
                Name::Refusal => (1 << 3, Channel::Refusal),
                Name::Role => return walk.nullable_text().is_some(),
                Name::ToolCalls => return seen.first(1 << 4) && walk.no_list(),
                Name::AbsentInDelta => return walk.null(),
                _ => return false,
            };
            seen.first(bit) && choice.say(channel, walk)
        })
    }

    /// An object of known names whose every field is taken by `field`, which stands at the value.
    fn object(&mut self, field: impl FnMut(&mut Walk<'t>, Name) -> bool) -> Option<()> {
        self.object_of(Walk::name, field)
    }

    /// The same where the names are those that `name` knows.
    fn object_of<N>(
        &mut self,
        mut name: impl FnMut(&mut Walk<'t>) -> Option<N>,
        mut field: impl FnMut(&mut Walk<'t>, N) -> bool,
    ) -> Option<()> {
        self.take(b'{')?;
        if self.take(b'}').is_some() {
            return Some(());
        }
        loop {
            let name = name(self)?;
            if !field(self, name) {
                return None;
            }
            match self.next()? {
                b',' => {}
                b'}' => return Some(()),
                _ => return None,
            }
        }
    }

    /// The value of `object`, unless it is the one that reports an error or would have to be decoded to know.
    fn harmless_object(&mut self) -> bool {
        self.skip_blanks();
        let usual = after(self.rest, br#""chat.completion.chunk""#);
        if let Some(rest) = usual.or_else(|| after(self.rest, br#""text_completion""#)) {
            self.rest = rest;
            return true;
        }
        self.text().is_some_and(|kind| kind != b"error" && !kind.contains(&b'\\'))
    }

    /// A known key with its colon. Comparing with whole literals, found by their first letter, costs half of looking
    /// for the closing quote first: a chunk has a dozen keys.
    fn name(&mut self) -> Option<Name> {
        self.skip_blanks();
        match self.rest.get(1)? {
            b'a' => None
                .or_else(|| self.if_key(br#""audio":"#, Name::AbsentInDelta))
                .or_else(|| self.if_key(br#""annotations":"#, Name::AbsentInDelta)),
            b'c' => None
                .or_else(|| self.if_key(br#""content":"#, Name::Content))
                .or_else(|| self.if_key(br#""choices":"#, Name::Choices))
                .or_else(|| self.if_key(br#""created":"#, Name::Created)),
            b'd' => self.if_key(br#""delta":"#, Name::Delta),
            b'e' => None
                .or_else(|| self.if_key(br#""error":"#, Name::Error))
                .or_else(|| self.if_key(br#""ec_transfer_params":"#, Name::AbsentAround)),
            b'f' => None
                .or_else(|| self.if_key(br#""finish_reason":"#, Name::FinishReason))
                .or_else(|| self.if_key(br#""function_call":"#, Name::AbsentInDelta)),
            b'h' => self.if_key(br#""hidden_states":"#, Name::AbsentInChoice),
            b'i' => None
                .or_else(|| self.if_key(br#""index":"#, Name::Index))
                .or_else(|| self.if_key(br#""id":"#, Name::Label)),
            b'k' => self.if_key(br#""kv_transfer_params":"#, Name::AbsentAround),
            b'l' => self.if_key(br#""logprobs":"#, Name::AbsentInChoice),
            b'm' => None
                .or_else(|| self.if_key(br#""model":"#, Name::Label))
                .or_else(|| self.if_key(br#""message":"#, Name::Message))
                .or_else(|| self.if_key(br#""matched_stop":"#, Name::AbsentInChoice))
                .or_else(|| self.if_key(br#""metrics":"#, Name::AbsentAround)),
            b'n' => self.if_key(br#""native_finish_reason":"#, Name::AbsentInChoice),
            b'o' => None
                .or_else(|| self.if_key(br#""object":"#, Name::Object))
                .or_else(|| self.if_key(br#""obfuscation":"#, Name::Label)),
            b'p' => None
                .or_else(|| self.if_key(br#""prompt_token_ids":"#, Name::AbsentAround))
                .or_else(|| self.if_key(br#""prompt_text":"#, Name::AbsentAround))
                .or_else(|| self.if_key(br#""prompt_logprobs":"#, Name::AbsentAround))
                .or_else(|| self.if_key(br#""provider":"#, Name::Label)),
            b'r' => None
                .or_else(|| self.if_key(br#""role":"#, Name::Role))
                .or_else(|| self.if_key(br#""reasoning":"#, Name::Reasoning))
                .or_else(|| self.if_key(br#""reasoning_content":"#, Name::ReasoningContent))
                .or_else(|| self.if_key(br#""refusal":"#, Name::Refusal))
                .or_else(|| self.if_key(br#""routed_experts":"#, Name::AbsentInChoice)),
            b's' => None
                .or_else(|| self.if_key(br#""system_fingerprint":"#, Name::Label))
                .or_else(|| self.if_key(br#""stop_reason":"#, Name::AbsentInChoice))
                .or_else(|| self.if_key(br#""service_tier":"#, Name::Label)),
            b't' => None
                .or_else(|| self.if_key(br#""text":"#, Name::Text))
                .or_else(|| self.if_key(br#""token_ids":"#, Name::AbsentInChoice))
                .or_else(|| self.if_key(br#""tool_calls":"#, Name::ToolCalls)),
            b'u' => self.if_key(br#""usage":"#, Name::Usage),
            _ => None,
        }
    }

    /// Steps over `key` if it stands here.
    fn if_key<const SIZE: usize, N>(&mut self, key: &[u8; SIZE], name: N) -> Option<N> {
        self.rest = after(self.rest, key)?;
        Some(name)
    }

    /// Nothing but blanks is left.
    fn end(&mut self) -> Option<()> {
        self.skip_blanks();
        self.rest.is_empty().then_some(())
    }

    /// The next byte that is no blank. Line ends and tabs are blanks too in JSON, but no server that was seen writes
    /// them into a chunk.
    fn next(&mut self) -> Option<u8> {
        self.skip_blanks();
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(byte)
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        self.skip_blanks();
        self.rest = after(self.rest, &[byte])?;
        Some(())
    }

    fn skip_blanks(&mut self) {
        while let [b' ', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    fn null(&mut self) -> bool {
        self.skip_blanks();
        let rest = after(self.rest, b"null");
        self.rest = rest.unwrap_or_default();
        rest.is_some()
    }

    /// `null` or an empty list.
    fn no_list(&mut self) -> bool {
        match self.take(b'[') {
            Some(()) => self.take(b']').is_some(),
            None => self.null(),
        }
    }

    /// The place of a choice.
    fn index(&mut self, choice: &mut Choice<'t>) -> bool {
        let index = self.whole_number().and_then(number);
        choice.index = index.unwrap_or_default();
        index.is_some()
    }

    /// Why a choice ended, or null. What would have to be decoded is no reason that is known.
    fn finish_reason(&mut self, choice: &mut Choice<'t>) -> bool {
        if self.stands_null() {
            return true;
        }
        let plain = |reason: &&[u8]| reason.is_ascii() && !reason.contains(&b'\\');
        let Some(reason) = self.text().filter(plain) else { return false };
        choice.finish = str::from_utf8(reason).ok().and_then(Finish::of);
        true
    }

    /// A string or null; null is as good as the empty string.
    fn nullable_text(&mut self) -> Option<&'t [u8]> {
        if self.stands_null() { Some(b"") } else { self.text() }
    }

    /// Steps over a null, if one stands here.
    fn stands_null(&mut self) -> bool {
        self.skip_blanks();
        self.rest.first() == Some(&b'n') && self.null()
    }

    /// A string, without its quotes. Of escapes only the simple ones are known. Bytes beyond ASCII are taken as they
    /// are: the full parser replaces a bad sequence of them and never touches an ASCII byte, so where the string ends
    /// does not depend on them.
    fn text(&mut self) -> Option<&'t [u8]> {
        self.take(b'"')?;
        self.text_after_quote()
    }

    /// The rest of a string whose opening quote has been taken.
    #[inline]
    fn text_after_quote(&mut self) -> Option<&'t [u8]> {
        let all = self.rest;
        let mut at = 0;
        loop {
            at += plain_run(&all[at..]);
            match all[at..] {
                [b'"', ref rest @ ..] => {
                    self.rest = rest;
                    return Some(&all[..at]);
                }
                [b'\\', b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => at += 2,
                _ => return None,
            }
        }
    }

    /// The digits of a whole number without sign, exponent or leading zero, of at most 18 digits. What must not follow
    /// a number (`1.5`, `1e3`, `1x`) is refused by whoever looks at the next byte.
    fn whole_number(&mut self) -> Option<&'t [u8]> {
        self.skip_blanks();
        let size = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.rest.split_at(size);
        self.rest = rest;
        match digits {
            [] | [b'0', _, ..] => None,
            _ => (size <= 18).then_some(digits),
        }
    }
}

/// The value of digits, if it is not beyond 32 bits.
fn number(digits: &[u8]) -> Option<u32> {
    let number = digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
    u32::try_from(number).ok()
}

/// Number of bytes before the first quote, backslash or control character: eight at a time, since the strings of a
/// chunk are too short for a call of memchr to pay. (Looking for control characters in one pass over the document
/// cost more.)
#[inline]
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
    let quote = eight ^ (ONES * u64::from(b'"'));
    let backslash = eight ^ (ONES * u64::from(b'\\'));
    (quote.wrapping_sub(ONES) | backslash.wrapping_sub(ONES) | eight.wrapping_sub(ONES * 0x20))
        & !eight
        & HIGH
}

/// Longer events are not usual, and the full parser has a limit to enforce.
const CHUNK_BYTES_MAX: usize = 64 << 10;
