//! Lengths that were counted: files of numbers, and what other tools write as a distribution of pairs.
//!
//! Owns the forms of the text; what makes sense of the numbers is the plan's to say.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde::Deserialize;

use super::super::value;
use super::Surroundings;
use crate::plan::{Distribution, Error, Lengths, Part, Table};

/// Begins the name of a file of lengths.
pub(super) const FROM_FILE: &str = "empirical:";

/// What was read of a file, and a remark on it.
pub(super) type Read<T> = Result<(T, Option<String>), Error>;

/// The lengths in `file`: one on each line, or one and how often it was counted.
pub(super) fn lengths(option: &str, file: &str, around: &Surroundings<'_>) -> Read<Lengths> {
    let mut counts: BTreeMap<u32, f64> = BTreeMap::new();
    let mut n = 0;
    for row in rows(option, file, &text(option, file, around)?) {
        let (length, weight) = (row.whole(0, "a length")?, row.weight(1)?);
        row.ends(2, "a length, or a length and its weight")?;
        *counts.entry(length).or_default() += weight;
        n += 1;
    }
    let different = counts.len();
    let table = Table::of_counts(counts);
    let kept = table.parts().len();
    let note = (kept < different).then(|| {
        format!(
            "{option} {file}: {different} different lengths of {n} are kept as {kept} quantiles, all alike"
        )
    });
    Ok((Lengths::Drawn(Distribution::Empirical(table)), note))
}

/// The lengths of prompts and answers that belong together: from a file with a pair on each line, or in one of the forms
/// that aiperf reads.
pub(super) fn pairs(option: &str, given: &str, around: &Surroundings<'_>) -> Result<[Lengths; 2], Error> {
    let parts = match given.strip_prefix(FROM_FILE) {
        Some(file) => pairs_of_file(option, file, around)?,
        None => pairs_of_text(option, given)?,
    };
    if parts.len() > Table::PARTS_MAX {
        let wrong = format!("has {} different pairs, more than {}", parts.len(), Table::PARTS_MAX);
        return Err(Error::new(option, wrong, "give fewer, or a trace of them by --dataset-path"));
    }
    let half = |part: fn(&Pair) -> (u32, f64)| {
        let part = |pair: &Pair| {
            let (length, stddev) = part(pair);
            Part { length, stddev, weight: pair.weight }
        };
        Lengths::Drawn(Distribution::Paired(Table::new(parts.iter().map(part))))
    };
    Ok([half(|pair| pair.input), half(|pair| pair.output)])
}

/// A pair of lengths, each with its standard deviation.
struct Pair {
    input: (u32, f64),
    output: (u32, f64),
    weight: f64,
}

fn pairs_of_file(option: &str, file: &str, around: &Surroundings<'_>) -> Result<Vec<Pair>, Error> {
    let mut counts: BTreeMap<(u32, u32), f64> = BTreeMap::new();
    for row in rows(option, file, &text(option, file, around)?) {
        let pair = (row.whole(0, "a length of prompts")?, row.whole(1, "a length of answers")?);
        row.ends(3, "two lengths, or two lengths and their weight")?;
        *counts.entry(pair).or_default() += row.weight(2)?;
    }
    let pair = |((input, output), weight)| Pair { input: (input, 0.0), output: (output, 0.0), weight };
    Ok(counts.into_iter().map(pair).collect())
}

fn text(option: &str, file: &str, around: &Surroundings<'_>) -> Result<String, Error> {
    (around.read)(file).map_err(|error| {
        Error::new(option, format!("{file}: {error}"), "name a readable file with a length on each line")
    })
}

/// The rows of a text with their fields, which commas, semicolons or blanks part. What follows a `#` is passed over, and
/// so is a first row that does not begin with a number: a heading.
fn rows<'t>(option: &'t str, file: &'t str, text: &'t str) -> impl Iterator<Item = Row<'t>> {
    let fields = |line: &'t str| -> Vec<&'t str> {
        let line = line.split('#').next().unwrap_or_default();
        line.split([',', ';', ' ', '\t', '\r']).filter(|field| !field.is_empty()).collect()
    };
    let rows = text.trim_start_matches('\u{FEFF}').lines().enumerate();
    let rows = rows.map(move |(place, line)| Row { option, file, line: place + 1, fields: fields(line) });
    let mut is_first = true;
    rows.filter(|row| !row.fields.is_empty()).filter(move |row| {
        let is_heading = std::mem::take(&mut is_first) && row.fields[0].parse::<f64>().is_err();
        !is_heading
    })
}

struct Row<'t> {
    option: &'t str,
    file: &'t str,
    line: usize,
    fields: Vec<&'t str>,
}

impl Row<'_> {
    fn whole(&self, place: usize, what: &str) -> Result<u32, Error> {
        let text = self.fields.get(place).ok_or_else(|| self.wrong(&format!("{what} is missing")))?;
        value::integer(self.option, text).map_err(|error| self.wrong(&error.wrong))
    }

    fn weight(&self, place: usize) -> Result<f64, Error> {
        let Some(text) = self.fields.get(place) else { return Ok(1.0) };
        match value::number(self.option, text) {
            Ok(weight) if weight >= 0.0 => Ok(weight),
            Ok(_) => Err(self.wrong(&format!("'{text}' is no weight"))),
            Err(error) => Err(self.wrong(&error.wrong)),
        }
    }

    fn ends(&self, most: usize, what: &str) -> Result<(), Error> {
        if self.fields.len() > most { Err(self.wrong(&format!("is more than {what}"))) } else { Ok(()) }
    }

    fn wrong(&self, what: &str) -> Error {
        let wrong = format!("{}, line {}: {what}", self.file, self.line);
        Error::new(
            self.option,
            wrong,
            "write a whole number on each line, and its weight behind it if wished",
        )
    }
}

/// `ISL,OSL:P;...`, `[(ISL,OSL):P,...]` or `{"pairs": [{"isl": ISL, "osl": OSL, "prob": P}]}`, where `|D` behind a length
/// (`isl_stddev`, `osl_stddev`) spreads it.
fn pairs_of_text(option: &str, given: &str) -> Result<Vec<Pair>, Error> {
    let text = given.trim();
    let pairs: Vec<Pair> = if text.starts_with('{') {
        pairs_of_json(option, text)?
    } else {
        let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        // With brackets a comma parts the pairs, too.
        let items: Vec<String> = match inner {
            Some(inner) => {
                inner.split('(').map(|item| item.trim().trim_end_matches(',').replacen(')', "", 1)).collect()
            }
            None => text.split(';').map(|item| item.trim().to_owned()).collect(),
        };
        let items = items.iter().filter(|item| !item.is_empty());
        items.map(|item| pair(option, item)).collect::<Result<_, _>>()?
    };
    if pairs.is_empty() {
        return Err(Error::new(option, "names no pair of lengths", PAIRS));
    }
    let sum: f64 = pairs.iter().map(|pair| pair.weight).sum();
    // Forgetting one of them is easier than it looks.
    if !(sum - 100.0).abs().le(&1e-4) {
        let wrong = format!("the shares of its pairs are {sum} % together");
        return Err(Error::new(option, wrong, "give shares in percent that are 100 together"));
    }
    Ok(pairs)
}

fn pair(option: &str, item: &str) -> Result<Pair, Error> {
    let wrong = || Error::new(option, format!("'{item}' is no pair of lengths"), PAIRS);
    let (lengths, share) = item.split_once(':').ok_or_else(wrong)?;
    let (input, output) = lengths.split_once(',').ok_or_else(wrong)?;
    let length = |text: &str| {
        let (mean, stddev) = text.split_once('|').map_or((text, "0"), |(mean, stddev)| (mean, stddev));
        Some((read(mean)?, read::<f64>(stddev)?))
    };
    let pair = || Some(Pair { input: length(input)?, output: length(output)?, weight: read(share)? });
    pair().ok_or_else(wrong)
}

fn read<T: FromStr>(text: &str) -> Option<T> {
    let text = text.trim();
    // `parse` would take signs, `inf` and the like.
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    text.parse().ok().filter(|_| is_plain)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PairsText {
    pairs: Vec<PairText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PairText {
    isl: u32,
    #[serde(default)]
    isl_stddev: f64,
    osl: u32,
    #[serde(default)]
    osl_stddev: f64,
    prob: f64,
}

fn pairs_of_json(option: &str, text: &str) -> Result<Vec<Pair>, Error> {
    let text: PairsText = serde_json::from_str(text)
        .map_err(|error| Error::new(option, format!("is no list of pairs: {error}"), PAIRS))?;
    let pair = |pair: PairText| Pair {
        input: (pair.isl, pair.isl_stddev),
        output: (pair.osl, pair.osl_stddev),
        weight: pair.prob,
    };
    Ok(text.pairs.into_iter().map(pair).collect())
}

const PAIRS: &str = "give pairs with their shares in percent, as in '256,128:60;512|20,256|10:40' (|20 is a standard \
                     deviation), or empirical:FILE with a pair on each line";
