//! The plan in the form of aiperf's configuration, for `input_config`: what loads it again checks every key, so that
//! what aiperf has no key for makes the whole go rather than be bent.

use serde_json::{Map, Value, json};

use super::Saved;
use crate::api::Dialect;
use crate::plan::{Arrivals, Plan};

/// The configuration; `None` where aiperf has no word for something that matters.
pub(super) fn input(saved: &Saved) -> Option<Value> {
    let (plan, level) = (saved.plan.as_ref()?, saved.setting.as_ref()?);
    if plan.workload.data.is_some() || plan.workload.trace.is_some() || plan.workload.conversation.is_some() {
        return None;
    }
    let mut phase = Map::new();
    let mut put = |name: &str, value: Value| phase.insert(name.to_owned(), value);
    put("name", json!("profiling"));
    put("kind", json!("profiling"));
    let load = &level.load;
    match (load.users, &load.arrivals) {
        (Some(users), _) => {
            put("type", json!("concurrency"));
            put("concurrency", json!(users));
        }
        (None, arrivals) => {
            let (kind, rate) = match arrivals {
                Arrivals::Constant { rate } => ("constant", rate),
                Arrivals::Poisson { rate } => ("poisson", rate),
                Arrivals::Gamma { rate, burstiness } => {
                    put("smoothness", json!(burstiness));
                    ("gamma", rate)
                }
                _ => return None,
            };
            put("type", json!(kind));
            put("rate", json!(rate));
            if let Some(cap) = load.cap {
                put("concurrency", json!(cap));
            }
        }
    }
    match (level.stop.units, level.stop.duration_s) {
        (None, None) => return None,
        (units, duration_s) => {
            units.iter().for_each(|units| {
                put("requests", json!(units));
            });
            duration_s.iter().for_each(|seconds| {
                put("duration", json!(seconds));
            });
        }
    }
    let models: Vec<Value> = plan.target.models.iter().map(|name| json!({ "name": name })).collect();
    Some(json!({
        "models": { "items": models },
        "endpoint": endpoint(plan)?,
        "datasets": [dataset(plan)],
        "phases": [phase],
    }))
}

fn endpoint(plan: &Plan) -> Option<Value> {
    let kind = match plan.target.dialect {
        Dialect::OpenaiChat => "chat",
        Dialect::Openai => "completions",
        Dialect::Responses => "responses",
        Dialect::Messages => "messages",
        Dialect::Embeddings => "embeddings",
        _ => return None,
    };
    let urls: Vec<&str> = plan.target.endpoints.iter().map(|endpoint| endpoint.url.as_str()).collect();
    Some(
        json!({ "urls": urls, "type": kind, "streaming": plan.target.stream && plan.target.dialect.generates() }),
    )
}

fn dataset(plan: &Plan) -> Value {
    let mean = |length: &crate::plan::Lengths| json!({ "mean": length.mean() });
    let mut prompts = Map::new();
    prompts.insert("isl".to_owned(), mean(&plan.workload.input_words));
    if plan.target.dialect.generates() {
        prompts.insert("osl".to_owned(), mean(&plan.workload.output_tokens));
    }
    json!({ "name": "main", "type": "synthetic", "prompts": prompts })
}
