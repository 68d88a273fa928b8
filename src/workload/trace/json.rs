//! The fields of a JSON object, each as it is written in the file.
//!
//! Owns typed access with exact reasons. Numbers are read from their digits, so nothing is rounded; texts that are
//! sent on (messages, bodies) are never taken apart.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::error::Category;
use serde_json::value::RawValue;

use super::error::{Fault, Place, Reason};
use super::numbers::{self, Unit};

/// The fields of an object, in their order.
#[derive(Debug)]
pub(super) struct Object<'t>(Vec<(Cow<'t, str>, &'t RawValue)>);

impl<'t> Object<'t> {
    /// Reads a whole record.
    pub(super) fn read(bytes: &'t [u8]) -> Result<Object<'t>, Fault> {
        let text = str::from_utf8(bytes).map_err(|error| not_unicode(bytes, error.valid_up_to()))?;
        Object::read_text(text)
    }

    fn read_text(text: &'t str) -> Result<Object<'t>, Fault> {
        if !text.trim_start().starts_with('{') {
            return Err(Fault::of_record(Reason::NotAnObject));
        }
        serde_json::from_str(text).map_err(|error| Fault {
            place: Place::Column(error.column() as u64),
            reason: match error.classify() {
                Category::Eof => Reason::CutOff,
                _ => Reason::Syntax,
            },
            lines_down: (error.line() as u64).saturating_sub(1),
        })
    }

    /// The field of that name, as it is written; `null` is nothing. Of equal names the last one counts, as everywhere
    /// in this program.
    pub(super) fn raw(&self, name: &str) -> Option<&'t str> {
        let found = self.0.iter().rfind(|(key, _)| key == name)?.1.get();
        (found != "null").then_some(found)
    }

    /// The field that has one of several names, and under which it was found.
    pub(super) fn alias(&self, names: &[&'static str]) -> Result<Option<Found<'t>>, Fault> {
        let mut found = None;
        for name in names {
            if let Some(text) = self.raw(name) {
                if found.is_some() {
                    return Err(Fault::of_field(name, Reason::Ambiguous));
                }
                found = Some(Found { name, text });
            }
        }
        Ok(found)
    }

    /// One field of one name.
    pub(super) fn get(&self, name: &'static str) -> Option<Found<'t>> {
        self.raw(name).map(|text| Found { name, text })
    }

    pub(super) fn needed(&self, name: &'static str) -> Result<Found<'t>, Fault> {
        self.get(name).ok_or(Fault::of_field(name, Reason::Missing))
    }

    pub(super) fn count(&self, names: &[&'static str]) -> Result<Option<u32>, Fault> {
        self.alias(names)?.map(Found::count).transpose()
    }

    pub(super) fn text(&self, names: &[&'static str]) -> Result<Option<Box<str>>, Fault> {
        self.alias(names)?.map(Found::text).transpose()
    }

    pub(super) fn time(&self, names: &[&'static str], unit: Unit) -> Result<Option<u64>, Fault> {
        self.alias(names)?.map(|found| found.nanos(unit)).transpose()
    }
}

/// A field that is there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found<'t> {
    pub(super) name: &'static str,
    /// As it is written.
    pub(super) text: &'t str,
}

impl<'t> Found<'t> {
    pub(super) fn count(self) -> Result<u32, Fault> {
        self.number(numbers::count)
    }

    pub(super) fn nanos(self, unit: Unit) -> Result<u64, Fault> {
        self.number(|text| numbers::nanos(text, unit))
    }

    pub(super) fn id(self) -> Result<u64, Fault> {
        self.number(numbers::id)
    }

    fn number<T>(self, read: impl FnOnce(&str) -> Result<T, Reason>) -> Result<T, Fault> {
        if !is_number(self.text) {
            return Err(self.fault(Reason::NotANumber));
        }
        read(self.text).map_err(|reason| self.fault(reason))
    }

    /// A text, decoded.
    pub(super) fn text(self) -> Result<Box<str>, Fault> {
        if !self.text.starts_with('"') {
            return Err(self.fault(Reason::NotText));
        }
        // The syntax was checked with the record; what is left to fail is an escape for half a character.
        serde_json::from_str(self.text).map_err(|_| self.fault(Reason::NotUnicode))
    }

    /// A text, or a number as it is written: files disagree on what an identifier is.
    pub(super) fn name(self) -> Result<Box<str>, Fault> {
        if is_number(self.text) { Ok(self.text.into()) } else { self.text() }
    }

    /// A list that is not empty, as it is written.
    pub(super) fn list(self) -> Result<&'t str, Fault> {
        match self.text.strip_prefix('[') {
            None => Err(self.fault(Reason::NotAList)),
            Some(rest) if rest.trim_start().starts_with(']') => Err(self.fault(Reason::Empty)),
            Some(_) => Ok(self.text),
        }
    }

    /// An object, as it is written.
    pub(super) fn object_text(self) -> Result<&'t str, Fault> {
        if self.text.starts_with('{') { Ok(self.text) } else { Err(self.fault(Reason::NotAnObject)) }
    }

    pub(super) fn object(self) -> Result<Object<'t>, Fault> {
        Object::read_text(self.object_text()?)
    }

    /// The items of a list, each as it is written.
    pub(super) fn items(self) -> Result<Vec<Found<'t>>, Fault> {
        let items: Vec<&'t RawValue> =
            serde_json::from_str(self.text).map_err(|_| self.fault(Reason::NotAList))?;
        Ok(items.into_iter().map(|item| Found { name: self.name, text: item.get() }).collect())
    }

    /// A list of identifiers.
    pub(super) fn ids(self) -> Result<Vec<u64>, Fault> {
        // Long lists of numbers are most of such files: read at once, and item by item only where that fails.
        if let Ok(ids) = serde_json::from_str(self.text) {
            return Ok(ids);
        }
        self.items()?.into_iter().map(Found::id).collect()
    }

    pub(super) fn fault(self, reason: Reason) -> Fault {
        Fault::of_field(self.name, reason)
    }
}

fn is_number(text: &str) -> bool {
    text.starts_with(|first: char| first == '-' || first.is_ascii_digit())
}

/// Where in a record the first byte is that is no UTF-8.
pub(super) fn not_unicode(bytes: &[u8], valid: usize) -> Fault {
    let before = &bytes[..valid];
    let line = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    Fault {
        place: Place::Column((valid - line) as u64 + 1),
        reason: Reason::NotUnicode,
        lines_down: before.iter().filter(|byte| **byte == b'\n').count() as u64,
    }
}

impl<'de: 't, 't> Deserialize<'de> for Object<'t> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Object<'t>, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::with_capacity(TYPICAL_FIELDS);
                while let Some((Key(key), value)) = map.next_entry()? {
                    fields.push((key, value));
                }
                Ok(fields)
            }
        }

        deserializer.deserialize_map(Fields).map(Object)
    }
}

/// A field's name, copied only where it has escapes.
struct Key<'t>(Cow<'t, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Key<'de>, D::Error> {
        struct Name;

        impl<'de> Visitor<'de> for Name {
            type Value = Cow<'de, str>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Cow<'de, str>, E> {
                Ok(Cow::Borrowed(name))
            }

            fn visit_str<E>(self, name: &str) -> Result<Cow<'de, str>, E> {
                Ok(Cow::Owned(name.to_owned()))
            }
        }

        deserializer.deserialize_str(Name).map(Key)
    }
}

const TYPICAL_FIELDS: usize = 8;
