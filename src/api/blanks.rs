//! Placeholders in what a user writes once for all requests: `{{index}}`, `{{choice:a,b}}` and so on, in header values,
//! in further fields of a body and in the body of the user's own API.
//!
//! What a placeholder becomes is a function of the seed, of the request and of how the placeholder is written: the same
//! one has the same value wherever it stands in a request, so that a header and a field can agree.

#[cfg(test)]
mod tests;

use std::io::Write as _;

use serde_json::Value;

use crate::rng::{self, Purpose};

/// Whose placeholders are filled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filling {
    /// Seed of the level.
    pub seed: u64,
    /// Index of the request in its phase of the level.
    pub index: u64,
    /// Number of its session; that of the request, where a session has one.
    pub session: u64,
    /// It is of a warm-up, and draws apart from the measured ones.
    pub warm_up: bool,
}

/// A text in which placeholders may stand, for one line of plain text: the value of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    pieces: Vec<Piece>,
}

/// A placeholder that is filled for each request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Blank {
    what: What,
    /// Parts the draws of placeholders that are written differently.
    salt: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Index,
    Session,
    Uuid,
    Random { min: u32, max: u32 },
    Choice(Vec<Choice>),
}

/// One of several texts, in each form that it may be wanted in.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Choice {
    plain: String,
    json: String,
    inside: String,
}

/// Where the value of a placeholder stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dress {
    /// It is a JSON value of its own: a number where it can be one.
    Value,
    /// Within a JSON string.
    Inside,
    /// In plain text.
    Plain,
}

/// A stretch of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// As it stands.
    Fixed(String),
    /// The prompt; in bodies only.
    Prompt,
    /// The longest answer that is asked for; in bodies only.
    Limit,
    /// The model asked for; in bodies only.
    Model,
    /// Whether the answer is to be streamed; in bodies only.
    Stream,
    /// What differs by request.
    Blank(Blank),
}

/// What every text may have.
const ANYWHERE: &str = "{{index}}, {{session}}, {{uuid}}, {{random:1:100}}, {{choice:a,b}}";
/// The names of all placeholders.
const NAMES: [&str; 9] =
    ["choice", "index", "max_tokens", "model", "prompt", "random", "session", "stream", "uuid"];
const OPEN: &str = "{{";
const CLOSE: &str = "}}";

impl Text {
    /// Takes a text apart.
    ///
    /// # Errors
    /// In words, a placeholder that there is none of here, or whose arguments make no sense.
    pub fn read(text: &str) -> Result<Text, String> {
        let pieces = pieces(text)?;
        let of_bodies = |piece: &&Piece| !matches!(piece, Piece::Fixed(_) | Piece::Blank(_));
        match pieces.iter().find(of_bodies) {
            Some(_) => Err(format!("has a placeholder that only bodies have; here are {ANYWHERE}")),
            None => Ok(Text { pieces }),
        }
    }

    /// The text, if it is the same for all requests.
    #[must_use]
    pub fn as_fixed(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [] => Some(""),
            [Piece::Fixed(text)] => Some(text),
            _ => None,
        }
    }

    /// Appends the text for one request.
    pub fn write(&self, out: &mut Vec<u8>, of: &Filling) {
        for piece in &self.pieces {
            match piece {
                Piece::Fixed(text) => out.extend_from_slice(text.as_bytes()),
                Piece::Blank(blank) => blank.write(out, Dress::Plain, of),
                Piece::Prompt | Piece::Limit | Piece::Model | Piece::Stream => {}
            }
        }
    }
}

impl Blank {
    /// Appends what it becomes for one request.
    pub(super) fn write(&self, out: &mut Vec<u8>, dress: Dress, of: &Filling) {
        match &self.what {
            What::Index => number(out, of.index),
            What::Session => number(out, of.session),
            What::Random { min, max } => {
                let drawn = rng::below(&mut self.stream(of), max.saturating_sub(*min).saturating_add(1));
                number(out, u64::from(min + drawn));
            }
            What::Uuid => uuid(out, &mut self.stream(of), dress),
            What::Choice(choices) => {
                let place = rng::below(&mut self.stream(of), choices.len() as u32);
                let Choice { plain, json, inside } = &choices[place as usize];
                let text = match dress {
                    Dress::Value => json,
                    Dress::Inside => inside,
                    Dress::Plain => plain,
                };
                out.extend_from_slice(text.as_bytes());
            }
        }
    }

    fn stream(&self, of: &Filling) -> rng::Stream {
        // Indices have less than 64 bits: those of a warm-up are counted from the other end.
        let index = if of.warm_up { !of.index } else { of.index };
        rng::stream(of.seed, Purpose::Blanks, rng::mixed(self.salt) ^ index)
    }
}

fn number(out: &mut Vec<u8>, number: u64) {
    write!(out, "{number}").expect("a Vec takes every write");
}

/// A random UUID (RFC 9562, version 4).
fn uuid(out: &mut Vec<u8>, stream: &mut rng::Stream, dress: Dress) {
    let words: [u64; 4] = std::array::from_fn(|_| u64::from(rng::below(stream, u32::MAX)));
    let (high, low) = (words[0] << 32 | words[1], words[2] << 32 | words[3]);
    let high = high & !0xf000 | 0x4000;
    let low = low & (u64::MAX >> 2) | 1 << 63;
    let quote = if dress == Dress::Value { "\"" } else { "" };
    write!(
        out,
        "{quote}{:08x}-{:04x}-{:04x}-{:04x}-{:012x}{quote}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
    .expect("a Vec takes every write");
}

/// Takes a text apart. Two braces that open nothing, and no name of a placeholder, stand for themselves, and so do those of `{{{{`, halved.
///
/// # Errors
/// As [`Text::read`].
pub(super) fn pieces(text: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut fixed = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(OPEN) {
        fixed.push_str(before);
        if let Some(after) = after.strip_prefix(OPEN) {
            fixed.push_str(OPEN);
            rest = after;
            continue;
        }
        let Some((name, after)) = after.split_once(CLOSE) else {
            if let Some(name) = NAMES.iter().find(|name| after.starts_with(**name)) {
                return Err(format!("has {OPEN}{name} without {CLOSE} behind it"));
            }
            fixed.push_str(OPEN);
            rest = after;
            break;
        };
        if !fixed.is_empty() {
            pieces.push(Piece::Fixed(std::mem::take(&mut fixed)));
        }
        pieces.push(piece(name)?);
        rest = after;
    }
    fixed.push_str(rest);
    if !fixed.is_empty() {
        pieces.push(Piece::Fixed(fixed));
    }
    Ok(pieces)
}

fn piece(text: &str) -> Result<Piece, String> {
    let (name, given) = text.split_once(':').map_or((text, None), |(name, given)| (name, Some(given)));
    let what = match (name, given) {
        ("prompt", None) => return Ok(Piece::Prompt),
        ("max_tokens", None) => return Ok(Piece::Limit),
        ("model", None) => return Ok(Piece::Model),
        ("stream", None) => return Ok(Piece::Stream),
        ("index", None) => What::Index,
        ("session", None) => What::Session,
        ("uuid", None) => What::Uuid,
        ("random", given) => random(text, given)?,
        ("choice", Some(given)) if !given.is_empty() => {
            What::Choice(given.split(',').map(Choice::new).collect())
        }
        ("choice", _) => {
            return Err(format!(
                "has {{{{{text}}}}} without anything to choose from, as in {{{{choice:a,b}}}}"
            ));
        }
        _ => {
            return Err(format!(
                "has a placeholder {{{{{text}}}}} that is not known; there are {ANYWHERE}, in bodies also {{{{prompt}}}}, \
                 {{{{model}}}}, {{{{max_tokens}}}}, {{{{stream}}}}; {{{{{{{{ stands for two braces"
            ));
        }
    };
    let salt = text.bytes().fold(0, |salt, byte| rng::mixed(salt ^ u64::from(byte)));
    Ok(Piece::Blank(Blank { what, salt }))
}

fn random(text: &str, given: Option<&str>) -> Result<What, String> {
    let ends = given.and_then(|given| given.split_once(':'));
    let ends = ends.and_then(|(min, max)| Some((min.parse::<u32>().ok()?, max.parse::<u32>().ok()?)));
    match ends {
        Some((min, max)) if min <= max && max < u32::MAX => Ok(What::Random { min, max }),
        _ => Err(format!(
            "has {{{{{text}}}}}, which is no range of whole numbers below 4294967295, as in {{{{random:1:100}}}}"
        )),
    }
}

impl Choice {
    fn new(text: &str) -> Choice {
        let quoted = Value::from(text).to_string();
        let typed = serde_json::from_str::<Value>(text).ok();
        let typed = typed.filter(|value| value.is_number() || value.is_boolean() || value.is_null());
        Choice {
            plain: text.to_owned(),
            inside: quoted[1..quoted.len() - 1].to_owned(),
            json: typed.map_or(quoted, |_| text.trim().to_owned()),
        }
    }
}
