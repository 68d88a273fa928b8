//! Plans as TOML: partial files in, whole plans out.
//!
//! Owns the reading of a plan file, with the line and the key of whatever is wrong in it. Files are opened elsewhere.

mod by_json;

use std::num::NonZeroU32;
use std::ops::Range;

use serde::de::{Deserialize as _, Deserializer, Error as _};
use serde_json::{Map, Value as Json};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use self::by_json::Fault;
pub(crate) use self::by_json::{json_of, to_toml, without_place};
use super::{
    Aborts, Arrivals, Axis, Begins, Burn, Client, Compat, Connections, Conversation, DataSet, Decide,
    Declared, Distribution, Driver, Endpoint, Error, Figure, Filter, Found, Header, Keep, LengthRule,
    Lengths, Level, Limits, Load, ModelChoice, Plan, Prefix, RecordErrors, Replies, RequestOptions, Reuse,
    Sampling, Search, Share, Sizes, Slo, SlowReaders, SteadyCut, Stop, Stress, Target, Telemetry, Timestamps,
    Timing, Tls, Tokens, Trace, TurnShares, Until, UrlStrategy, Workload, nearest,
};
use super::{Gaps, Piece, Rate, Series, Shape, Varying};
use crate::api::{Dialect, Raw};

impl Plan {
    /// Reads a plan file. Keys that it leaves out have their defaults; the seed is then `fresh_seed`. What depends on
    /// the rest stays open until [`Plan::complete`], so that the command line can still change it.
    ///
    /// # Errors
    /// What is not TOML, unknown keys (with the nearest known one) and values of a wrong type, each with line and
    /// key. Whether the plan makes sense is [`Plan::validate`]'s question.
    pub fn from_toml(text: &str, fresh_seed: u64) -> Result<Plan, Error> {
        let lines = Lines(text);
        let document = DeTable::parse(text).map_err(|error| {
            let what = error.message().replace('\n', ", ");
            lines.broken(Fault { what, span: error.span().unwrap_or(0..0), is_at_end: false }, None)
        })?;
        check_keys(document.get_ref(), &schema(), &mut Vec::new(), &lines)?;
        let mut plan: Plan =
            by_json::read(&document).map_err(|fault| lines.broken(fault, Some(document.get_ref())))?;
        if !document.get_ref().contains_key("seed") {
            plan.seed = fresh_seed;
        }
        Ok(plan)
    }

    /// The whole plan as a file that [`Plan::from_toml`] reads back as the same plan.
    ///
    /// An `extra_body` that TOML cannot hold becomes a string of JSON.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let extra = &self.workload.extra_body;
        if extra.values().all(is_toml) {
            return to_toml(self).expect("a plan is TOML");
        }
        let mut plan = self.clone();
        plan.workload.extra_body = Map::new();
        let mut plan = json_of(&plan);
        plan["workload"]["extra_body"] = Json::Object(extra.clone()).to_string().into();
        to_toml(&plan).expect("with its extra body as text a plan is TOML")
    }
}

/// Whether `value` can stand in TOML.
fn is_toml(value: &Json) -> bool {
    match value {
        Json::Null => false,
        Json::Number(n) => n.is_i64() || n.is_f64(),
        Json::Array(items) => items.iter().all(is_toml),
        Json::Object(keys) => keys.values().all(is_toml),
        Json::Bool(_) | Json::String(_) => true,
    }
}

/// Reads `extra_body`: a table, or a string that holds a JSON object.
pub(super) fn extra_body<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Map<String, Json>, D::Error> {
    match Json::deserialize(deserializer)? {
        Json::Object(map) => Ok(map),
        Json::String(text) => {
            serde_json::from_str(&text).map_err(|e| D::Error::custom(format!("not a JSON object: {e}")))
        }
        _ => Err(D::Error::custom("expected a table, or a string that holds a JSON object")),
    }
}

/// The text of a plan file, for finding lines.
struct Lines<'t>(&'t str);

impl Lines<'_> {
    fn at(&self, span: &Range<usize>) -> String {
        let before = self.0.as_bytes().iter().take(span.start);
        format!("line {}", 1 + before.filter(|&&b| b == b'\n').count())
    }

    /// What is wrong with a file; `document` where it is TOML.
    fn broken(&self, fault: Fault, document: Option<&DeTable<'_>>) -> Error {
        let Fault { what, span, .. } = fault;
        let mut path = Vec::new();
        if let Some(table) = document {
            locate(table, &span, &mut path);
        }
        let subject = match path.is_empty() {
            true => self.at(&span),
            false => format!("{}, `{}`", self.at(&span), path.join(".")),
        };
        let remedy = match document {
            Some(_) => "see `tokload run --print-config` for every key with a value",
            None => "a plan file is TOML, as `tokload run --print-config` writes it",
        };
        Error::new(subject, what.trim_end_matches('.'), remedy)
    }
}

/// The keys that lead to the value at `span`.
fn locate(table: &DeTable<'_>, span: &Range<usize>, path: &mut Vec<String>) {
    let within = |value: &Spanned<DeValue<'_>>| value.span().contains(&span.start);
    for (key, value) in table {
        // The span of a table written as `[a.b]` is that of its header, so look inside before saying no.
        let depth = path.len();
        path.push(key.get_ref().to_string());
        match value.get_ref() {
            DeValue::Table(inner) => locate(inner, span, path),
            DeValue::Array(items) => {
                for item in items.iter() {
                    if let DeValue::Table(inner) = item.get_ref() {
                        locate(inner, span, path);
                    }
                }
            }
            _ => {}
        }
        if path.len() > depth + 1 || within(value) {
            return;
        }
        path.truncate(depth);
    }
}

/// Refuses the first key of `table` that `schema` does not have.
fn check_keys(
    table: &DeTable<'_>,
    schema: &Map<String, Json>,
    path: &mut Vec<String>,
    lines: &Lines<'_>,
) -> Result<(), Error> {
    for (key, value) in table {
        let name = key.get_ref().as_ref();
        let Some(known) = schema.get(name) else {
            path.push(name.to_owned());
            let subject = format!("{}, `{}`", lines.at(&key.span()), path.join("."));
            return Err(Error::new(subject, "is not a key of a plan", remedy(name, schema)));
        };
        path.push(name.to_owned());
        if path.iter().map(String::as_str).ne(FREE) {
            check_value(value.get_ref(), known, path, lines)?;
        }
        path.pop();
    }
    Ok(())
}

fn check_value(
    value: &DeValue<'_>,
    known: &Json,
    path: &mut Vec<String>,
    lines: &Lines<'_>,
) -> Result<(), Error> {
    match (value, known) {
        (DeValue::Table(inner), Json::Object(known)) => check_keys(inner, known, path, lines),
        (DeValue::Array(items), Json::Array(known)) => match known.first() {
            Some(known) => items.iter().try_for_each(|item| check_value(item.get_ref(), known, path, lines)),
            None => Ok(()),
        },
        // A value of another type than the schema's is the deserialiser's to refuse.
        _ => Ok(()),
    }
}

/// What a user may have meant by the unknown key `name` among the keys of `siblings`.
fn remedy(name: &str, siblings: &Map<String, Json>) -> String {
    if let Some(near) = nearest(name, siblings.keys().map(String::as_str)) {
        return format!("did you mean `{near}`?");
    }
    if let Some(place) = find(name, &schema(), "") {
        return format!("it belongs under [{place}]");
    }
    let known: Vec<_> = siblings.keys().map(|key| format!("`{key}`")).collect();
    format!("known here: {}", known.join(", "))
}

/// The table of `schema` that has the key `name`.
fn find(name: &str, schema: &Map<String, Json>, path: &str) -> Option<String> {
    schema.iter().find_map(|(key, value)| {
        let inner = match value {
            Json::Object(inner) => inner,
            Json::Array(items) => items.first()?.as_object()?,
            _ => return None,
        };
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        if inner.contains_key(name) { Some(path) } else { find(name, inner, &path) }
    })
}

/// Every key of a plan with some value: a plan in which nothing is absent. It is written out in full so that a new
/// field does not compile before it stands here.
fn schema() -> Map<String, Json> {
    let Json::Object(mut table) = json_of(&full_plan()) else { unreachable!("a plan is a table") };
    // An enum's keys depend on its variant; the full plan holds one of them.
    let arrivals = table
        .get_mut("levels")
        .and_then(|levels| levels.get_mut(0)?.get_mut("load")?.get_mut("arrivals")?.as_object_mut());
    let of_others =
        ["every_s", "interval_s", "ramp_s", "size", "speedup"].map(|key| (key.to_owned(), Json::from(1.0)));
    arrivals.expect("it is a table").extend(of_others);
    if let Some(Json::Object(workload)) = table.get_mut("workload") {
        workload.entry("extra_body").or_insert_with(|| Json::Object(Map::new()));
        for lengths in ["input_words", "output_tokens"] {
            let lengths = workload.get_mut(lengths).and_then(Json::as_object_mut);
            // No distribution has the keys of all others.
            lengths.expect("it is a table").extend(OF_OTHERS.map(|key| (key.to_owned(), Json::from(1.0))));
        }
        let conversation = workload.get_mut("conversation").and_then(Json::as_object_mut);
        for (_, lengths) in conversation.expect("it is a table") {
            if let Json::Object(lengths) = lengths {
                lengths.extend(OF_OTHERS.map(|key| (key.to_owned(), Json::from(1.0))));
            }
        }
    }
    table
}

fn full_tls() -> Tls {
    let some = || Some(String::new());
    Tls { insecure: false, cacert: some(), cert: some(), key: some(), sni: some(), resumption: false }
}

fn full_connections() -> Connections {
    Connections {
        reuse: Reuse::Never,
        max: Some(1),
        max_age_s: Some(1.0),
        max_requests: Some(1),
        prewarm: 1,
        connect_to: vec![String::new()],
        unix_socket: Some(String::new()),
    }
}

fn full_plan() -> Plan {
    let header = Header { name: String::new(), value: String::new() };
    let target = Target {
        endpoints: vec![Endpoint { url: String::new() }],
        url_strategy: UrlStrategy::StickySession,
        url_weights: vec![1],
        all_addresses: true,
        connections: full_connections(),
        replica_header: Some(String::new()),
        models: vec![String::new()],
        model_weights: vec![1],
        model_choice: ModelChoice::Drawn,
        dialect: Dialect::OpenaiChat,
        raw: Some(Raw {
            body: String::new(),
            content: String::new(),
            cumulative: true,
            finish: Some(String::new()),
            prompt_tokens: Some(String::new()),
            output_tokens: Some(String::new()),
        }),
        path: Some(String::new()),
        stream: true,
        headers: vec![header],
        tls: full_tls(),
        reset_prefix_cache: true,
    };
    let piece = Piece::ramp(1.0, 2.0, 1.0, Shape::Exponential);
    let rate = Rate::Series(Series { pieces: vec![piece], repeat: true });
    let arrivals =
        Arrivals::Varying(Varying { gaps: Gaps::Gamma { burstiness: 1.0 }, rate, exact_count: true });
    let level = Level {
        load: Load { arrivals, cap: Some(1), users: Some(1), think_s: 0.0 },
        stop: Stop { units: Some(1), duration_s: Some(1.0), grace_s: 0.0 },
        warmups: 0,
        decide: Some(Decide { target: 0.95, failures_max: 0.01, confidence: 0.99, times_max: 4 }),
        sizes: Sizes { input_words: Some(1), output_tokens: Some(1) },
    };
    let options = RequestOptions {
        ignore_eos: true,
        min_tokens: true,
        include_usage: true,
        continuous_usage: true,
        dropped: vec![String::new()],
    };
    let some = Some(0.0);
    let sampling = Sampling {
        temperature: some,
        top_p: some,
        top_k: Some(0),
        min_p: some,
        frequency_penalty: some,
        presence_penalty: some,
        repetition_penalty: some,
    };
    let lengths =
        Lengths::Drawn(Distribution::Lognormal { median: 1.0, sigma: 1.0, min: Some(1), max: Some(1) });
    Plan {
        seed: 0,
        runs: 2,
        search: Some(Search {
            time_max_s: Some(60.0),
            overload: true,
            within_s: Some(60.0),
            ..Search::along(Axis::Rate)
        }),
        stress: Some(Stress { to_rate: Some(2.0), ..Stress::default() }),
        until: Some(Until { figure: Figure::Attainment, half_width: 0.5, times_max: 1 }),
        share: Some(Share::WHOLE),
        steady_cut: SteadyCut::Default,
        slice_s: Some(1.0),
        target,
        levels: vec![level],
        workload: Workload {
            input_words: lengths.clone(),
            output_tokens: lengths.clone(),
            distinct: Some(1),
            prefix: Some(Prefix { words: 1, pool: 1, exponent: some, hit_fraction: some }),
            system_words: Some(1),
            trace: Some(full_trace()),
            data: Some(full_data()),
            conversation: Some(Conversation {
                turns: lengths.clone(),
                delay_ms: lengths.clone(),
                delay_ratio: 1.0,
                delay_max_s: some,
                later_words: Some(lengths),
                shares: Some(TurnShares { all: 1.0, session: 1.0 }),
                replies: Replies::Live,
            }),
            context_words: Some(1),
            timing: Some(Timing::Original),
            session_header: Some(String::new()),
            tokens: Some(full_tokens()),
            choices: 1,
            options,
            sampling,
            extra_body: Map::new(),
            aborts: Some(Aborts { share: 1.0, after_s: some, after_tokens: Some(1) }),
            slow_readers: Some(SlowReaders { share: 1.0, bytes_per_s: 1 }),
        },
        slo: Slo { ttft_ms: some, ttfa_ms: some, tpot_ms: some, itl_max_ms: some, e2e_ms: some },
        limits: Limits { connect_s: 0.0, first_s: 0.0, gap_s: 0.0, total_s: 0.0 },
        client: Client {
            workers: Some(1),
            affinity: Some(vec![0]),
            driver: Driver::Auto,
            start_spread_us: 0.0,
            timestamps: Timestamps::Both,
            burn: Some(Burn { ms: 0.0, every_s: 0.0 }),
        },
        telemetry: Telemetry {
            server_metrics: vec![String::new()],
            server_metrics_match: vec![String::new()],
            nvml_library: Some(String::new()),
            dcgm: vec![String::new()],
            gpu_index: vec![0],
            ..Telemetry::default()
        },
        keep: Keep { records: true, chunks: false },
        declared: Declared { fresh_server: Some(true), same_as_production: Some(true) },
    }
}

fn full_tokens() -> Tokens {
    let found = Found {
        begins: Some(Begins::Bare),
        tokens_per_word: 2.0,
        added: 1,
        template: Some(1),
        left_out: vec![String::new()],
        further: vec![String::new()],
        ids: vec![0],
    };
    Tokens { tokenizer: Some(String::new()), ids: true, found: Some(found) }
}

fn full_data() -> DataSet {
    DataSet {
        file: String::new(),
        format: Some(String::new()),
        column: Some(String::new()),
        errors: RecordErrors::Fail,
        filter: Filter {
            prompt_min: Some(1),
            prompt_max: Some(1),
            answer_min: Some(1),
            answer_max: Some(1),
            total_min: Some(1),
            total_max: Some(1),
            turns_min: Some(1),
            turns_max: Some(1),
        },
        compat: Some(Compat::Vllm),
        shuffle: true,
        lengths: LengthRule::Recorded,
    }
}

fn full_trace() -> Trace {
    Trace {
        delay_ratio: 0.0,
        delay_max_s: Some(0.0),
        file: String::new(),
        format: Some(String::new()),
        errors: RecordErrors::Fail,
        from_s: 0.0,
        until_s: Some(1.0),
        models: vec![String::new()],
        failed_too: true,
        prompt_tokens_max: Some(1),
        output_tokens_max: Some(1),
        block_tokens: Some(NonZeroU32::MIN),
    }
}

/// Keys of distributions of lengths that the full plan's has not.
const OF_OTHERS: [&str; 7] = ["exponent", "lengths", "mean", "shape", "stddev", "stddevs", "weights"];
/// The only table whose keys are the user's own.
const FREE: [&str; 2] = ["workload", "extra_body"];

#[cfg(test)]
mod tests;
