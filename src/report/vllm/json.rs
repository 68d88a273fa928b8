//! The object that vLLM's client saves with `--save-result`, and the name of its file.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{Answer, Level};
use crate::plan::Gaps;
use crate::run_file::RunFile;
use crate::run_file::schema::SIMULATED_SERVER;

/// What the object says beside the numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Saved {
    /// Beginning of the run in UTC, `20261130-204453`.
    pub date: String,
    /// The API as vLLM names it.
    pub backend: String,
    /// `--label`.
    pub label: Option<String>,
    /// The model asked for.
    pub model: String,
    /// Requests that were planned.
    pub num_prompts: u64,
    /// Further facts, which stand beside the others.
    pub metadata: BTreeMap<String, String>,
    /// Shape of the gaps.
    pub burstiness: f64,
    /// Also write the lists of single requests.
    pub detailed: bool,
}

impl Saved {
    /// Of a level of `run`, with the lists of single requests if it is `detailed`.
    #[must_use]
    pub fn of(run: &RunFile, level: &Level, detailed: bool) -> Saved {
        let plan = run.plan.read().ok();
        let block = run.levels.iter().find(|block| block.ordinal == level.about.ordinal);
        let setting = block.and_then(|block| block.setting.read().ok());
        let target = plan.as_ref().map(|plan| &plan.target);
        let mut metadata = run.metadata.clone();
        metadata.remove(SIMULATED_SERVER);
        Saved {
            date: date(&run.created),
            backend: target.map_or_else(String::new, |target| target.dialect.name().to_owned()),
            label: run.label.clone(),
            model: target.and_then(|target| target.models.first().cloned()).unwrap_or_default(),
            num_prompts: setting
                .as_ref()
                .and_then(|level| level.stop.units)
                .unwrap_or(level.answers.len() as u64),
            metadata,
            burstiness: match setting.and_then(|level| level.load.arrivals.gaps()) {
                Some(Gaps::Gamma { burstiness }) => burstiness,
                // vLLM's way to say equal gaps, for which JSON has no number: null.
                Some(Gaps::Constant) => f64::INFINITY,
                _ => 1.0,
            },
            detailed,
        }
    }
}

/// `2026-11-30T20:44:53.000000042Z` as vLLM writes it, `20261130-204453`.
fn date(created: &str) -> String {
    let seconds = created.split('.').next().unwrap_or_default();
    seconds.trim_end_matches('Z').replace(['-', ':'], "").replace('T', "-")
}

/// The object of a level. Times of single requests are in seconds, since the beginning of the level where they are
/// points in time. Texts of answers are not kept, so that there is no `generated_texts`.
#[must_use]
pub fn to_json(level: &Level, saved: &Saved) -> Map<String, Value> {
    let mut object: Map<String, Value> =
        saved.metadata.iter().map(|(name, text)| (name.clone(), json!(text))).collect();
    let mut put = |name: &str, value: Value| object.insert(name.to_owned(), value);
    put("date", json!(saved.date));
    put("endpoint_type", json!(saved.backend));
    put("backend", json!(saved.backend));
    put("label", json!(saved.label));
    put("model_id", json!(saved.model));
    put("tokenizer_id", Value::Null);
    put("num_prompts", json!(saved.num_prompts));
    put("request_rate", level.about.request_rate.map_or(json!("inf"), |rate| json!(rate)));
    put("burstiness", json!(saved.burstiness));
    put("max_concurrency", json!(level.about.max_concurrency));
    put("duration", json!(level.about.duration_s));
    put("completed", json!(level.completed));
    put("failed", json!(level.failed));
    if level.cancelled > 0 {
        // A name of ours: vLLM's client cancels nothing, and these are neither complete nor failed.
        put("cancelled", json!(level.cancelled));
    }
    put("total_input_tokens", json!(level.input_tokens));
    put("request_throughput", json!(level.per_second(level.completed)));
    if level.about.generates {
        put("total_output_tokens", json!(level.output_tokens));
        put("request_goodput", json!(level.good.map(|good| level.per_second(good))));
        put("output_throughput", json!(level.per_second(level.output_tokens)));
        let tokens = level.input_tokens + level.output_tokens;
        put("total_token_throughput", json!(level.per_second(tokens)));
        put("max_output_tokens_per_s", json!(level.peak_tokens_s.map(|peak| peak as f64)));
        put("max_concurrent_requests", json!(level.peak_requests.unwrap_or(0)));
        // No sound is sent.
        put("rtfx", json!(0.0));
    } else {
        put("total_input_sequences", json!(level.completed));
        put("input_sequence_throughput", json!(level.per_second(level.completed)));
        put("total_token_throughput", json!(level.per_second(level.input_tokens)));
    }
    for (figure, spread) in &level.spreads {
        let name = figure.name();
        put(&format!("mean_{name}_ms"), json!(spread.mean_ms));
        put(&format!("median_{name}_ms"), json!(spread.median_ms));
        put(&format!("std_{name}_ms"), json!(spread.std_ms));
        for (quantile, ms) in &spread.percentiles {
            put(&format!("p{quantile}_{name}_ms"), json!(ms));
        }
    }
    if saved.detailed {
        let list = |of: &dyn Fn(&Answer) -> Value| Value::Array(level.answers.iter().map(of).collect());
        put("input_lens", list(&|answer| json!(answer.input_tokens)));
        put("latencies", list(&|answer| json!(answer.latency_s)));
        put("queue_times", list(&|answer| json!(answer.queue_s)));
        put("start_times", list(&|answer| json!(answer.start_s)));
        put("errors", list(&|answer| json!(answer.error)));
        if level.about.generates {
            // As vLLM has it, an answer that failed has no tokens and no times.
            put("output_lens", list(&|answer| json!(if answer.ok { answer.output_tokens } else { 0 })));
            put("ttfts", list(&|answer| json!(answer.ttft_s.unwrap_or(0.0))));
            put("itls", list(&|answer| json!(answer.gaps_s.as_deref().unwrap_or_default())));
        }
    }
    object
}

/// vLLM's name for the file of a level: `{label}-{rate}qps[-concurrency{N}]-{model}-{date}.json`.
#[must_use]
pub fn file_name(level: &Level, saved: &Saved) -> String {
    // A path in a label is none of a file.
    let label = saved.label.as_deref().unwrap_or(&saved.backend).replace('/', "_");
    let rate = level.about.request_rate.map_or_else(|| "inf".to_owned(), |rate| format!("{rate:?}"));
    let most = level.about.max_concurrency.map_or_else(String::new, |most| format!("-concurrency{most}"));
    let model = saved.model.rsplit('/').next().unwrap_or_default();
    format!("{label}-{rate}qps{most}-{model}-{}.json", saved.date)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_vllms() {
        assert_eq!(date("2026-11-30T20:44:53.000000042Z"), "20261130-204453");
    }
}
