//! Result files of other tools as run files: their numbers, by their definitions, which stand beside them.
//!
//! Bytes come in, a run goes out; files are opened elsewhere. Nothing is invented: what a file does not say is null, and
//! a number keeps the meaning that its tool gave it. Where a file has a line per request, quantiles and histograms are ours
//! over the tool's values, so that another SLO can be judged; otherwise they are the tool's own.

mod aiperf;
mod build;
mod definitions;
mod error;
mod vllm;

use serde_json::Value;

use crate::metrics::metric::Metric;
use crate::metrics::{Gaps, Record};
use crate::plan::Load;
use crate::run::Example;
use crate::run_file::schema::{DistributionBlock, ImportedBlock, TargetBlock};
use crate::run_file::{Destination, RunFile};

pub use error::Error;

/// Whose file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// aiperf: `profile_export_aiperf.json`, `profile_export.jsonl`.
    Aiperf,
    /// vLLM's `bench serve`: the JSON of `--save-result`, lines of it with `--append-result`.
    Vllm,
}

impl Tool {
    /// Its name in options and files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Tool::Aiperf => "aiperf",
            Tool::Vllm => "vllm",
        }
    }

    /// Told from the first value of a file.
    fn of(first: &Value) -> Option<Tool> {
        let has = |keys: &[&str]| keys.iter().all(|key| first.get(key).is_some());
        if has(&["metadata", "metrics"]) || aiperf::has_metrics(first) {
            return Some(Tool::Aiperf);
        }
        (has(&["duration", "completed", "request_throughput"])).then_some(Tool::Vllm)
    }
}

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
/// place: aiperf has two.
///
/// # Errors
/// Whatever is no such file, is cut off, or holds values that none can be.
pub fn read(
    file: File<'_>,
    tool: Option<Tool>,
    beside: &dyn Fn(&str) -> Option<Vec<u8>>,
) -> std::result::Result<Result, Error> {
    let first = serde_json::Deserializer::from_slice(file.bytes).into_iter::<Skeleton>().next();
    let first = first.ok_or(Error::Empty)?.map_err(Error::Json)?.0;
    let tool = match tool {
        Some(tool) => tool,
        None if first.get("schema").and_then(Value::as_str) == Some(crate::run_file::schema::SCHEMA) => {
            return Err(Error::Ours);
        }
        None => Tool::of(&first).ok_or(Error::Unknown)?,
    };
    match tool {
        Tool::Aiperf => aiperf::read(file, beside),
        Tool::Vllm => vllm::read(file),
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
