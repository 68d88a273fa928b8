//! Result files of other tools as run files: their numbers, by their definitions, which stand beside them.
//!
//! Bytes come in, a run goes out; files are opened elsewhere. Nothing is invented: what a file does not say is null, and
//! a number keeps the meaning that its tool gave it. Where a file has a line per request, quantiles and histograms are ours
//! over the tool's values, so that another SLO can be judged; otherwise they are the tool's own.

mod aiperf;
mod batched_bench;
mod build;
mod definitions;
mod error;
mod hdr_log;
mod hgrm;
mod llama_bench;
mod table;
mod values;
mod vllm;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::metrics::metric::Metric;
use crate::metrics::{Gaps, Record};
use crate::plan::Load;
use crate::run::Example;
use crate::run_file::schema::{DistributionBlock, ImportedBlock, TargetBlock};
use crate::run_file::{Destination, RunFile};

pub use crate::run_file::Tool;
pub use error::Error;

/// A file to read.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    /// Its name, without a directory.
    pub name: &'a str,
    /// What is in it.
    pub bytes: &'a [u8],
}

/// A result as it was read.
#[derive(Debug)]
pub struct Result {
    tool: Tool,
    /// Version of the tool; empty where the file does not say.
    version: String,
    /// When it was made, as the file says.
    created: String,
    label: Option<String>,
    metadata: Vec<(String, String)>,
    target: TargetBlock,
    interrupted: bool,
    levels: Vec<Level>,
    about: ImportedBlock,
}

impl Result {
    /// A result of files that hold histograms alone: nothing of the run, of its tool's version or of the server.
    fn of_histograms(tool: Tool, files: Vec<String>, levels: Vec<Level>, notes: Vec<String>) -> Result {
        Result {
            tool,
            version: String::new(),
            created: String::new(),
            label: None,
            metadata: Vec::new(),
            target: TargetBlock::default(),
            interrupted: false,
            levels,
            about: ImportedBlock {
                tool: tool.name().to_owned(),
                files,
                detailed: false,
                backend: None,
                notes,
                printed: Vec::new(),
            },
        }
    }
}

/// One load of it.
#[derive(Debug)]
struct Level {
    /// The load in words.
    label: String,
    /// The same as a setting, where the file says enough.
    load: Option<Load>,
    /// Requests that were to be sent.
    units: Option<u64>,
    /// What it ended like.
    numbers: Numbers,
    /// The tool's own distributions.
    distributions: Vec<(Metric, DistributionBlock)>,
    /// Each request; `None` where there is no line for each.
    details: Option<Details>,
    /// Its line as the tool prints it, by the names of its columns; empty where the tool has no such table.
    printed: BTreeMap<String, String>,
}

/// What a tool says of a load as a whole.
#[derive(Clone, Debug, Default)]
struct Numbers {
    duration_s: f64,
    ok: u64,
    failed: u64,
    prompt_tokens: Option<u64>,
    output_tokens: Option<u64>,
    req_s: Option<f64>,
    out_tok_s: Option<f64>,
    /// Where it is not the prompt tokens by the duration.
    in_tok_s: Option<f64>,
    /// Where it is not the sum of both.
    total_tok_s: Option<f64>,
}

/// The requests of a load.
#[derive(Debug, Default)]
struct Details {
    /// On one time line, whose zero is the first start of a measured request.
    records: Vec<Record>,
    /// Gaps between the chunks of each.
    gaps: Vec<Gaps>,
    examples: Vec<Example>,
    /// When each was started is known.
    timed: bool,
    /// What of a request is known.
    metrics: &'static [Metric],
}

/// Reads a result of `tool`, or of the tool that the file is like. `beside` is asked for the file of that name in the same
/// place: aiperf has two, and a folder of tables of percentiles has one for each metric. `unit` is that of the values of
/// histograms; where it is `None`, ns in a log and ms in a table.
///
/// # Errors
/// Whatever is no such file, is cut off, or holds values that none can be.
pub fn read(
    file: File<'_>,
    tool: Option<Tool>,
    unit: Option<TimeUnit>,
    beside: &dyn Fn(&str) -> Option<Vec<u8>>,
) -> std::result::Result<Result, Error> {
    let tool = match tool {
        Some(tool) => tool,
        None => tool_of(file.bytes)?,
    };
    match tool {
        Tool::Aiperf => aiperf::read(file, beside),
        Tool::BatchedBench => batched_bench::read(file),
        Tool::HdrLog => hdr_log::read(file, unit),
        Tool::Hgrm => hgrm::read(file, unit, beside),
        Tool::LlamaBench => llama_bench::read(file),
        Tool::Vllm => vllm::read(file),
    }
}

/// Told from the first value, of a list its first item, or from the lines of a text.
fn tool_of(bytes: &[u8]) -> std::result::Result<Tool, Error> {
    let begin = bytes.iter().position(|byte| !byte.is_ascii_whitespace()).ok_or(Error::Empty)?;
    let text = || std::str::from_utf8(bytes).ok().and_then(Tool::of_text);
    let of_value = |from: usize| {
        serde_json::Deserializer::from_slice(&bytes[from..])
            .into_iter::<Skeleton>()
            .next()
            .ok_or(Error::Empty)
    };
    if bytes[begin] == b'[' {
        // Also a line of a log in front of a table.
        let first = of_value(begin + 1)?.ok().and_then(|Skeleton(first)| Tool::of_value(&first));
        return first.or_else(text).ok_or(Error::Unknown);
    }
    let Skeleton(first) = match of_value(begin)? {
        Ok(first) => first,
        Err(error) => return text().ok_or(Error::Json(error)),
    };
    if first.get("schema").and_then(Value::as_str) == Some(crate::run_file::schema::SCHEMA) {
        return Err(Error::Ours);
    }
    Tool::of_value(&first).or_else(text).ok_or(Error::Unknown)
}

/// The unit of the values of a histogram, which its file does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Nanoseconds.
    Nanoseconds,
    /// Microseconds.
    Microseconds,
    /// Milliseconds.
    Milliseconds,
    /// Seconds.
    Seconds,
}

impl TimeUnit {
    /// Nanoseconds in it.
    #[must_use]
    pub const fn nanos(self) -> u64 {
        match self {
            TimeUnit::Nanoseconds => 1,
            TimeUnit::Microseconds => 1_000,
            TimeUnit::Milliseconds => 1_000_000,
            TimeUnit::Seconds => 1_000_000_000,
        }
    }

    /// Its name in options.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            TimeUnit::Nanoseconds => "ns",
            TimeUnit::Microseconds => "us",
            TimeUnit::Milliseconds => "ms",
            TimeUnit::Seconds => "s",
        }
    }
}

impl Result {
    /// The run file, with the records of its requests in the side file of `into` where there is a line for each.
    ///
    /// # Errors
    /// The side file cannot be written.
    pub fn into_run(self, into: &Destination) -> std::result::Result<RunFile, Error> {
        build::run(self, into)
    }
}

/// A JSON value without what is long: lists are left out, so that a file is known without its texts being kept.
struct Skeleton(Value);

impl<'de> serde::Deserialize<'de> for Skeleton {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Skeleton, D::Error> {
        from.deserialize_any(SkeletonVisitor)
    }
}

struct SkeletonVisitor;

impl<'de> serde::de::Visitor<'de> for SkeletonVisitor {
    type Value = Skeleton;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> std::result::Result<Skeleton, E> {
        Ok(Skeleton(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> std::result::Result<Skeleton, E> {
        Ok(Skeleton(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> std::result::Result<Skeleton, E> {
        Ok(Skeleton(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> std::result::Result<Skeleton, E> {
        Ok(Skeleton(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> std::result::Result<Skeleton, E> {
        Ok(Skeleton(value.into()))
    }

    fn visit_unit<E>(self) -> std::result::Result<Skeleton, E> {
        Ok(Skeleton(Value::Null))
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> std::result::Result<Skeleton, A::Error> {
        while list.next_element::<serde::de::IgnoredAny>()?.is_some() {}
        Ok(Skeleton(Value::Array(Vec::new())))
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> std::result::Result<Skeleton, A::Error> {
        let mut all = serde_json::Map::new();
        while let Some((key, Skeleton(value))) = map.next_entry::<String, Skeleton>()? {
            all.insert(key, value);
        }
        Ok(Skeleton(Value::Object(all)))
    }
}

/// A duration in seconds as whole nanoseconds; an error where it is none, or longer than a record can hold.
fn nanos(seconds: f64, key: &str) -> std::result::Result<u64, Error> {
    if seconds.is_finite() && (0.0..=SECONDS_MAX).contains(&seconds) {
        return Ok((seconds * 1e9).round() as u64);
    }
    Err(Error::Value { key: key.to_owned(), wrong: format!("{seconds} s is no duration of a request") })
}

/// Marks of a record are 48-bit offsets, 78 hours.
const SECONDS_MAX: f64 = 280_000.0;
