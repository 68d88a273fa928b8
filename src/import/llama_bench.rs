//! Results of llama.cpp's `llama-bench`: `-o jsonl`, `json`, `csv` and `md`.
//!
//! A test is repeated on one sequence inside one process: the computing of a prompt (`pp512`), steps of decoding (`tg128`),
//! or both (`pp512+tg128`). Repetitions are no requests.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::table::{self, Row};
use super::values::{of_mean, of_values, positive};
use super::{Error, File, Level, Numbers, Result, Tool};
use crate::metrics::metric::Metric;
use crate::run_file::WallTime;
use crate::run_file::schema::{ImportedBlock, TargetBlock};

/// A test.
#[derive(Debug, Default)]
struct Test {
    /// Its line, or its place in the list, from 1.
    place: usize,
    n_prompt: u64,
    n_gen: u64,
    n_depth: u64,
    /// Mean of the speeds of the repetitions, tokens per second, and the deviation of these as of a sample.
    avg_ts: f64,
    stddev_ts: Option<f64>,
    /// Time of each repetition; of text forms there is none.
    samples_ns: Vec<f64>,
    /// What stands in the columns of the table.
    shown: BTreeMap<String, String>,
    /// What was set, by the tool's names.
    settings: BTreeMap<String, String>,
}

pub(super) fn read(file: File<'_>) -> std::result::Result<Result, Error> {
    let text = std::str::from_utf8(file.bytes).map_err(|_| Error::NotText)?;
    let begin = text.trim_start();
    let tests = if begin.starts_with('{') || starts_a_list(begin) {
        objects(text)?.iter().map(|(place, object)| of_object(*place, object)).collect()
    } else if table_like(text) {
        of_markdown(text)
    } else {
        table::csv(text)?.iter().map(of_csv).collect()
    };
    let tests: Vec<Test> = tests?;
    let first = tests.first().ok_or_else(|| Error::Missing { key: "a test".to_owned() })?;
    let setting = |key: &str| first.settings.get(key).cloned().unwrap_or_default();
    let same = |key: &str| tests.iter().all(|test| test.settings.get(key) == first.settings.get(key));
    let commit = setting("build_commit");
    let version = match (commit.as_str(), setting("build_number")) {
        ("", _) => String::new(),
        (commit, number) if number.is_empty() => commit.to_owned(),
        (commit, number) => format!("{commit} ({number})"),
    };
    let mut models: Vec<String> = tests.iter().filter_map(|test| test.shown.get("model").cloned()).collect();
    models.dedup();
    let told = ["build_commit", "build_number", "test_time"];
    let metadata = first.settings.iter().filter(|(key, _)| same(key) && !told.contains(&key.as_str()));
    Ok(Result {
        tool: Tool::LlamaBench,
        created: WallTime::parse(&setting("test_time")).map_or_else(String::new, |time| time.to_string()),
        label: None,
        metadata: metadata.map(|(key, value)| (key.clone(), value.clone())).collect(),
        target: TargetBlock {
            kind: Some("llama.cpp".to_owned()),
            version: Some(version.clone()).filter(|version| !version.is_empty()),
            models,
            ..TargetBlock::default()
        },
        version,
        interrupted: false,
        levels: labels(&tests)
            .into_iter()
            .zip(&tests)
            .map(|(label, test)| level(label, test))
            .collect::<std::result::Result<Vec<_>, _>>()?,
        about: ImportedBlock {
            tool: Tool::LlamaBench.name().to_owned(),
            files: vec![file.name.to_owned()],
            detailed: false,
            backend: first.shown.get("backend").cloned(),
            notes: vec![NOT_A_SERVER.to_owned(), RATES.to_owned()],
            printed: Vec::new(),
        },
    })
}

const NOT_A_SERVER: &str = "repetitions of one sequence inside one process: no request, queue, network, tokeniser or sampling is in these \
     numbers, so that there is no TTFT, ITL or goodput";
const RATES: &str = "ok counts the repetitions (1 where the file does not say how many); req/s is t/s by the tokens of a test; t/s is the mean \
     of the speeds of the repetitions, not tokens by the mean time";

fn starts_a_list(text: &str) -> bool {
    text.strip_prefix('[').is_some_and(|rest| rest.trim_start().starts_with('{'))
}

fn table_like(text: &str) -> bool {
    text.lines().any(|line| line.trim_start().starts_with('|'))
}

/// An object with its place, from 1.
type Placed = (usize, Map<String, Value>);

/// The objects of a list, or one to a line, each with its place.
fn objects(text: &str) -> std::result::Result<Vec<Placed>, Error> {
    if text.trim_start().starts_with('[') {
        let all: Vec<Map<String, Value>> = serde_json::from_str(text).map_err(Error::Json)?;
        return Ok(all.into_iter().enumerate().map(|(place, object)| (place + 1, object)).collect());
    }
    let values = serde_json::Deserializer::from_str(text).into_iter::<Map<String, Value>>();
    values.enumerate().map(|(place, object)| Ok((place + 1, object.map_err(Error::Json)?))).collect()
}

fn of_object(place: usize, object: &Map<String, Value>) -> std::result::Result<Test, Error> {
    let key = |name: &str| format!("test {place}, {name}");
    let needed = |name: &str| object.get(name).ok_or_else(|| Error::Missing { key: key(name) });
    let wrong = |name: &str, value: &Value| Error::Value {
        key: key(name),
        wrong: format!("'{}' is no such value", value.to_string().chars().take(40).collect::<String>()),
    };
    let count = |name: &str| {
        let value = needed(name)?;
        value.as_u64().ok_or_else(|| wrong(name, value))
    };
    let number = |name: &str| {
        let value = needed(name)?;
        value.as_f64().ok_or_else(|| wrong(name, value))
    };
    let list = |name: &str| -> std::result::Result<Vec<f64>, Error> {
        let Some(value) = object.get(name) else { return Ok(Vec::new()) };
        let numbers: Option<Vec<f64>> =
            value.as_array().and_then(|all| all.iter().map(Value::as_f64).collect());
        numbers.ok_or_else(|| wrong(name, value))
    };
    let settings =
        object.iter().filter(|(name, value)| !is_measured(name) && !value.is_array() && !value.is_object());
    let settings: BTreeMap<String, String> = settings
        .map(|(name, value)| (name.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
        .collect();
    Ok(Test {
        place,
        n_prompt: count("n_prompt")?,
        n_gen: count("n_gen")?,
        // Before there was a depth it was 0.
        n_depth: object.get("n_depth").map_or(Ok(0), |_| count("n_depth"))?,
        avg_ts: number("avg_ts")?,
        stddev_ts: object.get("stddev_ts").map(|_| number("stddev_ts")).transpose()?,
        samples_ns: list("samples_ns")?,
        shown: shown(&settings),
        settings,
    })
}

fn of_csv(row: &Row) -> std::result::Result<Test, Error> {
    let settings: BTreeMap<String, String> =
        row.cells.iter().filter(|(name, _)| !is_measured(name)).cloned().collect();
    Ok(Test {
        place: row.line,
        n_prompt: row.count("n_prompt")?,
        n_gen: row.count("n_gen")?,
        n_depth: row.get("n_depth").map_or(Ok(0), |_| row.count("n_depth"))?,
        avg_ts: row.number("avg_ts")?,
        stddev_ts: row.get("stddev_ts").map(|_| row.number("stddev_ts")).transpose()?,
        samples_ns: Vec::new(),
        shown: shown(&settings),
        settings,
    })
}

fn of_markdown(text: &str) -> std::result::Result<Vec<Test>, Error> {
    let rows = table::markdown(text, &["test", "t/s"])?;
    let mut tests = Vec::new();
    for row in &rows {
        let name = row.needed("test")?;
        let (n_prompt, n_gen, n_depth) = parts(name).ok_or_else(|| row.wrong("test", name))?;
        let speed = row.needed("t/s")?;
        let (mean, deviation) = speed.split_once('±').unwrap_or((speed, ""));
        let number = |text: &str| text.trim().parse::<f64>().map_err(|_| row.wrong("t/s", speed));
        let cells = row.cells.iter().filter(|(name, _)| !["test", "t/s"].contains(&name.as_str()));
        let mut settings: BTreeMap<String, String> = cells.cloned().collect();
        let shown = settings.clone();
        settings.remove("model");
        if let Some((commit, number)) = build(text) {
            settings.insert("build_commit".to_owned(), commit);
            settings.insert("build_number".to_owned(), number);
        }
        tests.push(Test {
            place: row.line,
            n_prompt,
            n_gen,
            n_depth,
            avg_ts: number(mean)?,
            stddev_ts: if deviation.trim().is_empty() { None } else { Some(number(deviation)?) },
            samples_ns: Vec::new(),
            shown,
            settings,
        });
    }
    Ok(tests)
}

/// `pp512`, `tg128`, `pp64+tg16`, each also with ` @ d1024` behind it.
fn parts(name: &str) -> Option<(u64, u64, u64)> {
    let (test, depth) = match name.split_once('@') {
        Some((test, depth)) => (test.trim(), depth.trim().strip_prefix('d')?.parse().ok()?),
        None => (name, 0),
    };
    let (mut n_prompt, mut n_gen) = (0, 0);
    for part in test.split('+') {
        match (part.trim().strip_prefix("pp"), part.trim().strip_prefix("tg")) {
            (Some(n), _) => n_prompt = n.parse().ok()?,
            (_, Some(n)) => n_gen = n.parse().ok()?,
            _ => return None,
        }
    }
    Some((n_prompt, n_gen, depth))
}

/// `build: COMMIT (NUMBER)`, below the table.
fn build(text: &str) -> Option<(String, String)> {
    let line = text.lines().rev().find_map(|line| line.trim().strip_prefix("build: "))?;
    let (commit, rest) = line.split_once(' ').unwrap_or((line, ""));
    Some((commit.to_owned(), rest.trim_matches(['(', ')']).to_owned()))
}

fn is_measured(name: &str) -> bool {
    const MEASURED: [&str; 7] =
        ["n_prompt", "n_gen", "n_depth", "avg_ns", "stddev_ns", "avg_ts", "stddev_ts"];
    MEASURED.contains(&name)
}

/// The columns of the table, worked out from the settings as the tool does.
fn shown(settings: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let of = |key: &str| settings.get(key).filter(|text| !text.is_empty());
    let number = |key: &str| of(key)?.parse::<f64>().ok().filter(|n| n.is_finite() && *n > 0.0);
    let scaled = |value: f64, step: f64, names: [&str; 2]| match value < step {
        true => format!("{value:.2} {}", names[0]),
        false => format!("{:.2} {}", value / step, names[1]),
    };
    let cells = [
        ("model", of("model_type").or(of("model_filename")).cloned()),
        ("size", number("model_size").map(|bytes| scaled(bytes / 1_048_576.0, 1024.0, ["MiB", "GiB"]))),
        ("params", number("model_n_params").map(|n| scaled(n / 1e6, 1e3, ["M", "B"]))),
        ("backend", of("backends").cloned()),
        ("threads", of("n_threads").cloned()),
        ("ngl", of("n_gpu_layers").filter(|layers| *layers != "-1").cloned()),
    ];
    cells.into_iter().filter_map(|(name, cell)| Some((name.to_owned(), cell?))).collect()
}

fn name_of(test: &Test) -> String {
    let mut parts = Vec::new();
    if test.n_prompt > 0 {
        parts.push(format!("pp{}", test.n_prompt));
    }
    if test.n_gen > 0 {
        parts.push(format!("tg{}", test.n_gen));
    }
    let depth = if test.n_depth > 0 { format!(" @ d{}", test.n_depth) } else { String::new() };
    parts.join("+") + &depth
}

/// The tests by name, each with those settings by which it differs from others of its name.
fn labels(tests: &[Test]) -> Vec<String> {
    let names: Vec<String> = tests.iter().map(name_of).collect();
    let mut labels = Vec::with_capacity(tests.len());
    for (test, name) in tests.iter().zip(&names) {
        let alike = || tests.iter().zip(&names).filter(|(_, other)| *other == name).map(|(test, _)| test);
        let differs = |key: &str| alike().any(|other| other.settings.get(key) != test.settings.get(key));
        let mut label = name.clone();
        if alike().any(|other| other.shown.get("model") != test.shown.get("model"))
            && let Some(model) = test.shown.get("model")
        {
            label = format!("{model} {label}");
        }
        let settings =
            test.settings.iter().filter(|(key, _)| !UNNAMED.contains(&key.as_str()) && differs(key));
        settings.for_each(|(key, value)| label += &format!(", {key} {value}"));
        let before = labels.iter().filter(|known: &&String| **known == label).count();
        labels.push(label);
        if before > 0 {
            // The same test again.
            let number = before + 1;
            let last = labels.len() - 1;
            labels[last] += &format!(" ({number})");
        }
    }
    labels
}

/// Of these a difference is told otherwise, or is none of the test.
const UNNAMED: [&str; 8] = [
    "build_commit",
    "build_number",
    "model",
    "model_filename",
    "model_type",
    "model_size",
    "model_n_params",
    "test_time",
];

fn level(label: String, test: &Test) -> std::result::Result<Level, Error> {
    let key = |name: &str| format!("test {}, {name}", test.place);
    let tokens = test.n_prompt.saturating_add(test.n_gen);
    if tokens == 0 || tokens > TOKENS_MAX {
        let wrong = format!("{} prompt and {} generated tokens are no test", test.n_prompt, test.n_gen);
        return Err(Error::Value { key: key("n_prompt"), wrong });
    }
    if positive(test.avg_ts, &key("avg_ts"))? == 0.0 {
        return Err(Error::Value { key: key("avg_ts"), wrong: "no test has a speed of 0".to_owned() });
    }
    test.stddev_ts.map_or(Ok(0.0), |value| positive(value, &key("stddev_ts")))?;
    for ns in &test.samples_ns {
        if positive(*ns, &key("samples_ns"))? == 0.0 {
            return Err(Error::Value { key: key("samples_ns"), wrong: "a test takes time".to_owned() });
        }
    }
    let n = test.samples_ns.len() as u64;
    let (all, share) = (tokens as f64, test.n_prompt as f64 / tokens as f64);
    let mut distributions = Vec::new();
    if test.n_prompt == 0 {
        let gen_ = test.n_gen as f64;
        match n {
            0 => distributions.push(of_mean(Metric::UserSpeed, test.avg_ts, test.stddev_ts, 0)),
            _ => {
                let each = |of: fn(f64, f64) -> f64| test.samples_ns.iter().map(|ns| of(*ns, gen_)).collect();
                distributions.extend(of_values(Metric::UserSpeed, each(|ns, tokens| tokens * 1e9 / ns)));
                distributions.extend(of_values(Metric::Tpot, each(|ns, tokens| ns / tokens)));
            }
        }
    }
    distributions.extend(of_values(Metric::E2e, test.samples_ns.clone()));
    Ok(Level {
        label,
        load: None,
        units: None,
        numbers: Numbers {
            duration_s: match n {
                0 => all / test.avg_ts,
                _ => test.samples_ns.iter().sum::<f64>() / 1e9,
            },
            ok: n.max(1),
            failed: 0,
            prompt_tokens: Some(n.max(1).saturating_mul(test.n_prompt)),
            output_tokens: Some(n.max(1).saturating_mul(test.n_gen)),
            req_s: Some(test.avg_ts / all),
            out_tok_s: Some(test.avg_ts * (1.0 - share)),
            in_tok_s: Some(test.avg_ts * share),
            total_tok_s: Some(test.avg_ts),
        },
        distributions,
        details: None,
        printed: printed(test),
    })
}

const TOKENS_MAX: u64 = 1 << 40;

fn printed(test: &Test) -> BTreeMap<String, String> {
    let mut cells = test.shown.clone();
    let deviation = test.stddev_ts.map_or_else(String::new, |deviation| format!(" ± {deviation:.2}"));
    cells.insert("t/s".to_owned(), format!("{:.2}{deviation}", test.avg_ts));
    cells
}
