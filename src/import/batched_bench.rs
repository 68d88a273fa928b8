//! Results of llama.cpp's `llama-batched-bench`: its table, and the lines of `--output-format jsonl`.
//!
//! A row is one static batch: B sequences whose prompts are computed together and which are then continued in step. There
//! are no requests in it, and nothing is waited for.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::values::{of_values, positive};
use super::{Error, File, Level, Numbers, Result, Tool, table};
use crate::metrics::metric::Metric;
use crate::run_file::schema::{ImportedBlock, TargetBlock};

/// A row, in the names of the JSON lines.
#[derive(Debug, Deserialize)]
struct Line {
    pp: u64,
    tg: u64,
    /// Sequences in the batch.
    pl: u64,
    n_kv: u64,
    t_pp: f64,
    speed_pp: f64,
    t_tg: f64,
    speed_tg: f64,
    t: f64,
    speed: f64,
    /// All sequences have one prompt, computed once; the table does not say.
    #[serde(default)]
    is_pp_shared: Option<Value>,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

pub(super) fn read(file: File<'_>) -> std::result::Result<Result, Error> {
    let text = std::str::from_utf8(file.bytes).map_err(|_| Error::NotText)?;
    let lines = match text.trim_start().starts_with('{') {
        true => of_json(text)?,
        false => of_table(text)?,
    };
    if lines.is_empty() {
        return Err(Error::Missing { key: "a row of the table".to_owned() });
    }
    let metadata = constants(&lines);
    let levels = lines.iter().map(level).collect::<std::result::Result<Vec<_>, _>>()?;
    Ok(Result {
        tool: Tool::BatchedBench,
        version: String::new(),
        created: String::new(),
        label: None,
        metadata,
        target: TargetBlock { kind: Some("llama.cpp".to_owned()), ..TargetBlock::default() },
        interrupted: false,
        levels,
        about: ImportedBlock {
            tool: Tool::BatchedBench.name().to_owned(),
            files: vec![file.name.to_owned()],
            detailed: false,
            backend: None,
            notes: vec![NOT_A_SERVER.to_owned()],
            printed: Vec::new(),
        },
    })
}

const NOT_A_SERVER: &str = "a batch of sequences inside one process: no request, queue, network, tokeniser or sampling is in these numbers, so \
     that there is no TTFT, ITL or goodput; ok counts the sequences of the batch, req/s is these by T";

fn of_json(text: &str) -> std::result::Result<Vec<(usize, Line)>, Error> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(place, line)| {
            let key = format!("line {}", place + 1);
            let read = serde_json::from_str(line);
            Ok((place + 1, read.map_err(|error| Error::Value { key, wrong: error.to_string() })?))
        })
        .collect()
}

fn of_table(text: &str) -> std::result::Result<Vec<(usize, Line)>, Error> {
    let rows = table::markdown(text, &["PP", "TG", "B", "N_KV", "T_PP s", "S_PP t/s", "T_TG s", "S_TG t/s"])?;
    rows.iter()
        .map(|row| {
            let line = Line {
                pp: row.count("PP")?,
                tg: row.count("TG")?,
                pl: row.count("B")?,
                n_kv: row.count("N_KV")?,
                t_pp: row.number("T_PP s")?,
                speed_pp: row.number("S_PP t/s")?,
                t_tg: row.number("T_TG s")?,
                speed_tg: row.number("S_TG t/s")?,
                t: row.number("T s")?,
                speed: row.number("S t/s")?,
                is_pp_shared: None,
                rest: BTreeMap::new(),
            };
            Ok((row.line, line))
        })
        .collect()
}

/// What is the same on all lines and not measured.
fn constants(lines: &[(usize, Line)]) -> Vec<(String, String)> {
    let Some((_, first)) = lines.first() else { return Vec::new() };
    let same = |key: &str, value: &Value| lines.iter().all(|(_, line)| line.rest.get(key) == Some(value));
    let all = first.rest.iter().filter(|(key, value)| same(key, value));
    all.map(|(key, value)| (key.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
        .collect()
}

fn level((place, line): &(usize, Line)) -> std::result::Result<Level, Error> {
    let key = |name: &str| format!("line {place}, {name}");
    let (pl, tg) = (line.pl, line.tg);
    for (name, value) in [
        ("t_pp", line.t_pp),
        ("speed_pp", line.speed_pp),
        ("t_tg", line.t_tg),
        ("speed_tg", line.speed_tg),
        ("t", line.t),
        ("speed", line.speed),
    ] {
        positive(value, &key(name))?;
    }
    if pl == 0 || pl > BATCH_MAX || line.t <= 0.0 {
        let wrong = format!("a batch of {pl} sequences in {} s", line.t);
        return Err(Error::Value { key: key("pl"), wrong });
    }
    let tokens = |of_each: u64| of_each.checked_mul(pl).filter(|all| *all <= TOKENS_MAX);
    let (Some(all_pp), Some(all_tg)) = (tokens(line.pp), tokens(tg)) else {
        let wrong = format!("{} and {tg} tokens of {pl} sequences are too many", line.pp);
        return Err(Error::Value { key: key("pp"), wrong });
    };
    // Tokens of the prompt by its time tell whether they were computed once, where the file does not.
    let computed = (line.t_pp * line.speed_pp).round();
    let shared = match &line.is_pp_shared {
        Some(told) => told.as_bool().unwrap_or(told.as_f64() == Some(1.0)),
        None => pl > 1 && (computed - line.pp as f64).abs() < (computed - all_pp as f64).abs(),
    };
    let prompt = if shared { line.pp } else { all_pp };
    let mut label = format!("pp{} tg{tg} B{pl}", line.pp);
    if shared {
        label += " shared";
        if line.n_kv == line.pp + all_tg && pl > 1 {
            label += " unified";
        }
    }
    // All sequences go in step: each has this one value.
    let each = |value: f64| vec![value; usize::try_from(pl).unwrap_or(1)];
    let mut distributions: Vec<_> =
        of_values(Metric::E2e, each((line.t * 1e9).round())).into_iter().collect();
    if tg > 0 {
        distributions.extend(of_values(Metric::Tpot, each((line.t_tg * 1e9 / tg as f64).round())));
        distributions.extend(of_values(Metric::UserSpeed, each(line.speed_tg / pl as f64)));
    }
    Ok(Level {
        label,
        load: None,
        units: None,
        numbers: Numbers {
            duration_s: line.t,
            ok: pl,
            failed: 0,
            prompt_tokens: Some(prompt),
            output_tokens: Some(all_tg),
            req_s: Some(pl as f64 / line.t),
            out_tok_s: Some(line.speed_tg),
            in_tok_s: Some(line.speed_pp),
            total_tok_s: Some(line.speed),
        },
        distributions,
        details: None,
        printed: printed(line),
    })
}

/// More is no batch of any machine.
const BATCH_MAX: u64 = 1_000_000;
const TOKENS_MAX: u64 = 1 << 48;

/// The row in the tool's own columns and decimals.
fn printed(line: &Line) -> BTreeMap<String, String> {
    let cells = [
        ("PP", line.pp.to_string()),
        ("TG", line.tg.to_string()),
        ("B", line.pl.to_string()),
        ("N_KV", line.n_kv.to_string()),
        ("T_PP s", format!("{:.3}", line.t_pp)),
        ("S_PP t/s", format!("{:.2}", line.speed_pp)),
        ("T_TG s", format!("{:.3}", line.t_tg)),
        ("S_TG t/s", format!("{:.2}", line.speed_tg)),
        ("T s", format!("{:.3}", line.t)),
        ("S t/s", format!("{:.2}", line.speed)),
    ];
    cells.map(|(name, cell)| (name.to_owned(), cell)).into()
}
