//! `profile_export_aiperf.json`: one object with a block per metric.

use serde_json::{Map, Value, json};

use super::{Figure, Level, Saved, Stats, VERSION, config, lines};
use crate::run_file::WallTime;

/// The object of a level, in the form of [`VERSION`]. It does not say to be aiperf's: `tokload_version` stands in the
/// place of `aiperf_version`.
#[must_use]
pub fn to_json(level: &Level, saved: &Saved) -> Map<String, Value> {
    let about = &level.about;
    // Twelve digits that are the same whenever the object is made of the same run.
    let id = format!("{:012x}", (about.begun_ns ^ (about.ordinal as u64) << 40) & 0xffff_ffff_ffff);
    let mut object = Map::new();
    let mut put = |name: &str, value: Value| object.insert(name.to_owned(), value);
    put("schema_version", json!(SCHEMA_VERSION));
    put("tokload_version", json!(saved.version));
    put("definitions", json!(format!("aiperf {VERSION}")));
    put("benchmark_id", json!(id));
    let time = |ns: u64| json!(WallTime::from_unix_nanos(ns - ns % 1000).to_string().replace("000Z", "Z"));
    put("start_time", time(about.begun_ns));
    put("end_time", time(about.ended_ns));
    put("was_cancelled", json!(about.interrupted));
    put("is_complete", json!(!about.interrupted));
    if about.interrupted {
        put("incomplete_reason", json!("ended early by the user"));
    }
    put("run_info", Value::Object(run_info(saved, &id)));
    if let Some(config) = config::input(saved) {
        put("input_config", config);
    }
    let errors = level
        .errors
        .iter()
        .map(|error| json!({ "error_details": lines::error(&error.failure), "count": error.count }));
    put("error_summary", Value::Array(errors.collect()));
    for (tag, block) in blocks(&level.figures) {
        put(&tag, block);
    }
    if !level.warmup.is_empty() {
        put("warmup_metrics", Value::Object(blocks(&level.warmup).collect()));
    }
    object
}

/// The form of the file in aiperf 0.13.
const SCHEMA_VERSION: &str = "1.4";

fn run_info(saved: &Saved, id: &str) -> Map<String, Value> {
    let mut info = Map::new();
    let mut put = |name: &str, value: Value| info.insert(name.to_owned(), value);
    put("benchmark_id", json!(id));
    if let Some(plan) = &saved.plan {
        put("random_seed", json!(plan.seed));
    }
    put("trial", json!(saved.round));
    if let Some(label) = &saved.label {
        put("run_label", json!(label));
    }
    put("variation_label", json!(saved.level));
    let command = std::iter::once("tokload").chain(saved.command_line.iter().map(String::as_str));
    put("cli_command", json!(command.collect::<Vec<_>>().join(" ")));
    info
}

pub(super) fn blocks(figures: &[Figure]) -> impl Iterator<Item = (String, Value)> + '_ {
    figures.iter().map(|figure| (figure.tag(), Value::Object(block(figure))))
}

fn block(figure: &Figure) -> Map<String, Value> {
    let mut block = Map::new();
    block.insert("unit".to_owned(), json!(figure.metric.unit()));
    let stats: &Stats = &figure.stats;
    // A sum is what the metric of a request comes to; a number of the level is its own.
    let is_each = figure.metric.is_of_a_request();
    for (name, value) in stats.columns() {
        if let Some(value) = value {
            block.insert(name, json!(value));
        }
    }
    if let Some(count) = stats.count.filter(|_| is_each) {
        block.insert("count".to_owned(), json!(count));
    }
    block
}
