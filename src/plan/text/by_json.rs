//! TOML by way of JSON: a value's own (de)serialisation is compiled once, for JSON, and TOML is made from and into that.
//!
//! Compiling each type of a plan for both formats took a tenth of the build.

use std::fmt::Write as _;
use std::ops::Range;

use serde::de::{DeserializeOwned, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap as _, SerializeSeq as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// `value` as a TOML document, its keys in the order in which it gives them (those of tables behind the others).
///
/// # Errors
/// When it is no table, or a list in it holds `null`. A key that is `null` is left out.
pub(crate) fn to_toml(value: &impl Serialize) -> Result<String, toml::ser::Error> {
    use serde::ser::Error as _;
    let text = serde_json::to_string(value).map_err(toml::ser::Error::custom)?;
    let node: Node = serde_json::from_str(&text).map_err(toml::ser::Error::custom)?;
    toml::to_string(&node)
}

/// `value` as JSON; `null` for what JSON cannot hold.
pub(crate) fn json_of(value: &impl Serialize) -> serde_json::Value {
    // By its text: that needs nothing compiled for `value` but what a run file needs anyway.
    serde_json::to_string(value).and_then(|text| serde_json::from_str(&text)).unwrap_or_default()
}

/// The value that a document describes.
///
/// # Errors
/// What is wrong, and where in the text from which `document` was read.
pub(super) fn read<T: DeserializeOwned>(document: &Spanned<DeTable<'_>>) -> Result<T, Fault> {
    read_in_order(document, false).or_else(|fault| match fault.is_at_end {
        // The reader tells of some faults when it is past the value. Behind the last value of a table stands the table's
        // end, so the last value is given first.
        true => read_in_order(document, true),
        false => Err(fault),
    })
}

fn read_in_order<T: DeserializeOwned>(document: &Spanned<DeTable<'_>>, reversed: bool) -> Result<T, Fault> {
    let mut json = Json { text: String::new(), lines: Vec::new(), reversed };
    json.table(document.get_ref(), &document.span());
    serde_json::from_str(&json.text).map_err(|error| {
        // A line is named from 1, and the first one is empty.
        let piece = error.line().checked_sub(2).and_then(|line| json.lines.get(line)).cloned();
        let Piece { span, is_end } = piece.unwrap_or(Piece { span: 0..0, is_end: false });
        Fault { what: without_place(&error), span, is_at_end: is_end }
    })
}

/// What is wrong with a document, and where.
pub(super) struct Fault {
    pub(super) what: String,
    pub(super) span: Range<usize>,
    /// It was found at the end of the table or the list at `span`.
    pub(super) is_at_end: bool,
}

/// What `error` says, but for its place in a text that nobody has seen.
pub(crate) fn without_place(error: &serde_json::Error) -> String {
    let mut text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    if text.ends_with(&place) {
        text.truncate(text.len() - place.len());
    }
    text
}

/// JSON under construction, a line for each piece, so that a line tells what it was made from.
struct Json {
    text: String,
    /// What stands in each line but the first.
    lines: Vec<Piece>,
    /// Whether the last key of each table comes first.
    reversed: bool,
}

/// Where in the TOML a piece of the JSON comes from.
#[derive(Clone)]
struct Piece {
    span: Range<usize>,
    /// It is the end of a table or a list, whose place this is.
    is_end: bool,
}

impl Json {
    fn line(&mut self, piece: &str, span: &Range<usize>) {
        // The space keeps a reader that looks one character ahead in this line.
        let _ = write!(self.text, "\n{piece} ");
        self.lines.push(Piece { span: span.clone(), is_end: matches!(piece, "}" | "]") });
    }

    /// Commas stand in the line of the value before them, where a reader is that has read it.
    fn comma(&mut self, unless_first: usize) {
        if unless_first > 0 {
            self.text.push(',');
        }
    }

    fn table(&mut self, table: &DeTable<'_>, span: &Range<usize>) {
        self.line("{", span);
        let mut entries: Vec<_> = table.iter().collect();
        if self.reversed {
            entries.reverse();
        }
        for (i, (key, value)) in entries.into_iter().enumerate() {
            self.comma(i);
            self.line(&format!("{}:", quoted(key.get_ref())), &key.span());
            self.value(value);
        }
        self.line("}", span);
    }

    fn value(&mut self, value: &Spanned<DeValue<'_>>) {
        let span = value.span();
        match value.get_ref() {
            DeValue::String(text) => self.line(&quoted(text), &span),
            DeValue::Boolean(set) => self.line(&set.to_string(), &span),
            DeValue::Integer(number) => {
                let plain = i128::from_str_radix(number.as_str(), number.radix());
                self.line(&plain.map_or_else(|_| OUT_OF_RANGE.to_owned(), |n| n.to_string()), &span);
            }
            DeValue::Float(number) => match number.as_str().parse::<f64>() {
                Ok(finite) if finite.is_finite() => self.line(&format!("{finite:?}"), &span),
                _ => self.line(OUT_OF_RANGE, &span),
            },
            DeValue::Datetime(time) => self.line(&quoted(&time.to_string()), &span),
            DeValue::Array(items) => {
                self.line("[", &span);
                for (i, item) in items.iter().enumerate() {
                    self.comma(i);
                    self.value(item);
                }
                self.line("]", &span);
            }
            DeValue::Table(table) => self.table(table, &span),
        }
    }
}

/// What a reader of JSON refuses as such: for infinity, what is no number, and what no number of a plan reaches.
const OUT_OF_RANGE: &str = "1e999";

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A value of JSON with its keys in the order of the text.
enum Node {
    Null,
    Bool(bool),
    Whole(i64),
    /// Above `i64::MAX`.
    Large(u64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Table(Vec<(String, Node)>),
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Node::Null => to.serialize_none(),
            Node::Bool(set) => to.serialize_bool(*set),
            Node::Whole(n) => to.serialize_i64(*n),
            Node::Large(n) => to.serialize_u64(*n),
            Node::Float(x) => to.serialize_f64(*x),
            Node::Text(text) => to.serialize_str(text),
            Node::List(items) => {
                let mut list = to.serialize_seq(Some(items.len()))?;
                items.iter().try_for_each(|item| list.serialize_element(item))?;
                list.end()
            }
            Node::Table(keys) => {
                let mut table = to.serialize_map(None)?;
                let given = keys.iter().filter(|(_, value)| !matches!(value, Node::Null));
                given.into_iter().try_for_each(|(key, value)| table.serialize_entry(key, value))?;
                table.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Node, D::Error> {
        from.deserialize_any(AnyNode)
    }
}

struct AnyNode;

impl<'de> Visitor<'de> for AnyNode {
    type Value = Node;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, set: bool) -> Result<Node, E> {
        Ok(Node::Bool(set))
    }

    fn visit_i64<E>(self, n: i64) -> Result<Node, E> {
        Ok(Node::Whole(n))
    }

    fn visit_u64<E>(self, n: u64) -> Result<Node, E> {
        Ok(i64::try_from(n).map_or(Node::Large(n), Node::Whole))
    }

    fn visit_f64<E>(self, x: f64) -> Result<Node, E> {
        Ok(Node::Float(x))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = from.next_element()? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Node, A::Error> {
        let mut keys = Vec::new();
        while let Some(entry) = from.next_entry()? {
            keys.push(entry);
        }
        Ok(Node::Table(keys))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Sample {
        whole: u64,
        float: f64,
        #[serde(default, deserialize_with = "not_no")]
        text: Option<String>,
        list: Vec<Vec<i64>>,
        inner: Option<Inner>,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(tag = "kind", rename_all = "snake_case")]
    enum Inner {
        Small { size: u8 },
    }

    fn not_no<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
        let text = String::deserialize(from)?;
        match text.as_str() {
            "no" => Err(serde::de::Error::custom("'no' is refused")),
            _ => Ok(Some(text)),
        }
    }

    fn read_text(text: &str) -> Result<Sample, (String, &str)> {
        let document = DeTable::parse(text).unwrap();
        read(&document).map_err(|fault| (fault.what, &text[fault.span]))
    }

    #[test]
    fn each_kind_of_value_is_read() {
        let text =
            "whole = 0x1_F\nfloat = +6.5e-1\nlist = [[1, -2], []]\ninner = { kind = 'small', size = 0b11 }\n";
        let sample = Sample {
            whole: 31,
            float: 0.65,
            text: None,
            list: vec![vec![1, -2], vec![]],
            inner: Some(Inner::Small { size: 3 }),
        };
        assert_eq!(read_text(text), Ok(sample));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let base = "whole = 1\nfloat = 1\nlist = []\n";
        let of = |text: &'static str| read_text(text).unwrap_err();
        assert_eq!(
            of("whole = 'x'\nfloat = 1\nlist = []"),
            ("invalid type: string \"x\", expected u64".to_owned(), "'x'")
        );
        assert_eq!(of("whole = 1\nfloat = inf\nlist = []").1, "inf");
        assert_eq!(of("whole = 99999999999999999999\nfloat = 1\nlist = []").1, "99999999999999999999");
        assert_eq!(of("whole = 1\nfloat = 1\nlist = [[1], [2, 1979-05-27]]").1, "1979-05-27");
        assert_eq!(of("whole = 1\nfloat = 1\nlist = []\ntext = 1e400").1, "1e400");
        assert_eq!(of("whole = 1\nlist = []").0, "missing field `float`");
        let text = format!("{base}[inner]\nkind = 'small'\nsize = 256\n");
        let (what, place) = read_text(&text).unwrap_err();
        assert_eq!((what.as_str(), place), ("invalid value: integer `256`, expected u8", "[inner]"));
        // In the last value of a table, of which the reader tells at the table's end.
        let (what, place) = read_text("float = 1\nlist = []\nwhole = 2\ntext = 'no'").unwrap_err();
        assert_eq!((what.as_str(), place), ("'no' is refused", "'no'"));
        let (what, place) = read_text("float = 1\nlist = []\ntext = 'no'\nwhole = 2").unwrap_err();
        assert_eq!((what.as_str(), place), ("'no' is refused", "'no'"));
    }

    #[test]
    fn keys_keep_their_order_and_null_is_left_out() {
        let sample = Sample { whole: 3, float: 2.0, text: None, list: vec![vec![1]], inner: None };
        assert_eq!(to_toml(&sample).unwrap(), "whole = 3\nfloat = 2.0\nlist = [[1]]\n");
        let of = |text: &str| to_toml(&serde_json::from_str::<serde_json::Value>(text).unwrap());
        assert_eq!(of("{\"b\": {\"c\": 1}, \"d\": 2}").unwrap(), "d = 2\n\n[b]\nc = 1\n");
        assert!(of("[1]").is_err() && of("{\"a\": [null]}").is_err());
    }
}
