//! `profile_export.jsonl`: a line per request, the warm-up's first.

use std::io::{self, Write};

use serde_json::{Map, Value as Json, json};

use super::answer::Value;
use super::{Answer, Level, Metric};

/// Writes a line for each request of `level`.
///
/// # Errors
///
/// When `out` fails.
pub fn write(level: &Level, out: &mut impl Write) -> io::Result<()> {
    let warms_up = !level.warmup_answers.is_empty();
    let slo = &level.about.slo;
    let is_judged = level.figure(Metric::GoodRequestCount).is_some();
    for (answer, is_warmup) in level
        .warmup_answers
        .iter()
        .map(|answer| (answer, true))
        .chain(level.answers.iter().map(|answer| (answer, false)))
    {
        let per_chunk = level.about.per_chunk_usage;
        let mut metrics: Map<String, Json> = answer
            .values(per_chunk)
            .into_iter()
            .map(|(metric, value)| (metric.tag().to_owned(), measured(metric, value)))
            .collect();
        if is_judged && answer.failure.is_none() {
            let good = Value::Count(u64::from(answer.is_good(slo, per_chunk)));
            metrics
                .insert(Metric::GoodRequestCount.tag().to_owned(), measured(Metric::GoodRequestCount, good));
        }
        let mut line = Map::new();
        line.insert("metadata".to_owned(), Json::Object(metadata(answer, is_warmup, warms_up)));
        line.insert("metrics".to_owned(), Json::Object(metrics));
        if let Some(failure) = &answer.failure {
            line.insert("error".to_owned(), Json::Object(error(failure)));
        }
        serde_json::to_writer(&mut *out, &line)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// An error without what is not known of it.
pub(super) fn error(failure: &super::Failure) -> Map<String, Json> {
    let mut error = Map::new();
    if let Some(code) = failure.code {
        error.insert("code".to_owned(), json!(code));
    }
    error.insert("type".to_owned(), json!(failure.kind));
    error.insert("message".to_owned(), json!(failure.message));
    error
}

fn measured(metric: Metric, value: Value) -> Json {
    let value = match value {
        Value::Count(count) => json!(count),
        Value::Real(real) => json!(real),
        Value::List(list) => json!(list),
    };
    json!({ "value": value, "unit": metric.unit() })
}

fn metadata(answer: &Answer, is_warmup: bool, warms_up: bool) -> Map<String, Json> {
    let mut all = Map::new();
    let mut put = |name: &str, value: Json| all.insert(name.to_owned(), value);
    put("session_num", json!(answer.session));
    put("turn_index", json!(answer.turn));
    put("credit_issued_ns", json!(answer.issued_ns));
    put("request_start_ns", json!(answer.start_ns));
    if let Some(ack_ns) = answer.ack_ns {
        put("request_ack_ns", json!(ack_ns));
    }
    put("request_end_ns", json!(answer.end_ns));
    // One process does what aiperf has workers and processors for.
    put("worker_id", json!("tokload"));
    put("record_processor_id", json!("tokload"));
    let phase = if is_warmup { "warmup" } else { "profiling" };
    put("benchmark_phase", json!(phase));
    put("phase_index", json!(u8::from(warms_up && !is_warmup)));
    if !is_warmup {
        put("profiling_index", json!(0));
    }
    put("phase_name", json!(phase));
    put("phase_kind", json!(phase));
    put("was_cancelled", json!(answer.cancelled));
    if answer.cancelled {
        put("cancellation_time_ns", json!(answer.end_ns));
    }
    all
}
