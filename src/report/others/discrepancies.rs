//! One run as each of the tools would have printed it: a row per number, a column per tool.

use serde_json::{Map, Value, json};

use super::reasons::REASONS;
use super::{Level, Other, Rule, Spread};
use crate::metrics::metric::Metric;
use crate::plan::Slo;
use crate::report::aiperf::{self, Metric as A};
use crate::report::format;
use crate::report::requests::Unreadable;
use crate::report::view::{Cell, Column, Note, Row, Table, View};
use crate::report::vllm::{self, Figure, Selection};
use crate::run_file::schema::LevelBlock;
use crate::run_file::{Loaded, RunFile};
use crate::stats::Quantile;

/// The tools, in the order of the columns.
const TOOLS: [&str; 6] = ["tokload", "vllm", "aiperf", "guidellm", "servebench", "mlperf"];

/// A run as all tools have it.
#[derive(Clone, Debug, PartialEq)]
pub struct Discrepancies {
    levels: Vec<(usize, String, Vec<Line>)>,
}

/// One number of a level.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// What it is, as in `TTFT p99`.
    pub name: String,
    /// Its unit; empty of words and counts.
    pub unit: &'static str,
    /// What each of the tools has, in the order of the columns.
    pub values: [Entry; 6],
}

/// What a tool has for a number.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// It has no such number, or the run has no value for it.
    None,
    /// A count.
    Count(u64),
    /// A value in the unit of its row.
    Value(f64),
    /// A word.
    Word(&'static str),
}

impl Discrepancies {
    /// Of a stored run that is judged by `slo`; `run` holds our own numbers under these limits.
    ///
    /// # Errors
    ///
    /// When there are no records, or something cannot be read.
    pub fn of(loaded: &Loaded, run: &RunFile, slo: &Slo) -> Result<Discrepancies, Unreadable> {
        let generates = loaded.run.plan.read().ok().is_none_or(|plan| plan.target.dialect.generates());
        let selection = Selection {
            figures: vec![Figure::Ttft, Figure::Tpot, Figure::Itl, Figure::E2el],
            percentiles: vec![Quantile::P99],
        };
        let of_vllm = vllm::recorded(loaded, slo, generates, &selection)?;
        let of_aiperf = aiperf::recorded(loaded, slo)?;
        let [guidellm, servebench, mlperf] = [Other::Guidellm, Other::Servebench, Other::Mlperf]
            .map(|tool| super::recorded(loaded, slo, tool));
        let (guidellm, servebench, mlperf) = (guidellm?, servebench?, mlperf?);
        // Levels without records are no other tool's either.
        let blocks = run.levels.iter().filter(|block| block.records.is_some());
        let levels = blocks.enumerate().filter_map(|(place, block)| {
            let seen = Seen {
                block,
                vllm: of_vllm.get(place)?,
                aiperf: of_aiperf.get(place)?,
                guidellm: guidellm.get(place)?,
                servebench: servebench.get(place)?,
                mlperf: mlperf.get(place)?,
            };
            Some((block.ordinal, block.label.clone(), seen.lines()))
        });
        Ok(Discrepancies { levels: levels.collect() })
    }

    /// The numbers of the level that is at `place`, from 0.
    #[must_use]
    pub fn lines(&self, place: usize) -> &[Line] {
        self.levels.get(place).map_or(&[], |(_, _, lines)| lines)
    }

    /// For any format: the table, and the reasons as remarks.
    #[must_use]
    pub fn view(&self, run: &RunFile) -> View {
        let whole = View::new(run, &[], None);
        let is_one = self.levels.len() == 1;
        let row = |label: &str, line: &Line| {
            let name = if line.unit.is_empty() { line.name.clone() } else { format!("{} {}", line.name, line.unit) };
            Row {
                label: if is_one { name } else { format!("{label}: {name}") },
                cells: line.values.iter().map(|entry| cell(entry, line.unit)).chain([apart(line)]).collect(),
                second: false,
            }
        };
        let rows = self.levels.iter().flat_map(|(_, label, lines)| lines.iter().map(move |line| row(label, line)));
        let column = |name| Column { group: "", name };
        let reasons = REASONS.iter().map(|reason| Note {
            warning: false,
            text: format!("{}: {}", reason.about, reason.text),
        });
        View {
            title: whole.title,
            table: Table {
                head: "by definition of",
                columns: TOOLS.into_iter().chain(["apart %"]).map(column).collect(),
                rows: rows.collect(),
            },
            verdict: whole.verdict,
            findings: whole.findings.into_iter().filter(|note| note.warning).collect(),
            notes: reasons.collect(),
            ..View::default()
        }
    }

    /// As one object.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let value = |entry: &Entry| match entry {
            Entry::None => Value::Null,
            Entry::Count(count) => json!(count),
            Entry::Value(value) => json!(value),
            Entry::Word(word) => json!(word),
        };
        let row = |line: &Line| {
            let values: Map<String, Value> = TOOLS
                .iter()
                .zip(&line.values)
                .map(|(tool, entry)| ((*tool).to_owned(), value(entry)))
                .collect();
            json!({ "name": line.name, "unit": line.unit, "values": values, "apart": line.apart() })
        };
        let levels = self.levels.iter().map(|(ordinal, label, lines)| {
            json!({ "level": ordinal, "label": label, "rows": lines.iter().map(row).collect::<Vec<_>>() })
        });
        let reasons: Map<String, Value> =
            REASONS.iter().map(|reason| (reason.about.to_owned(), json!(reason.text))).collect();
        json!({
            "schema": "tokload.discrepancies",
            "version": 1,
            "tools": TOOLS,
            "levels": levels.collect::<Vec<_>>(),
            "reasons": reasons,
        })
    }
}

impl Line {
    /// How far the greatest value is above the least, as a share of the least; `None` with fewer than two values, or one
    /// of 0.
    #[must_use]
    pub fn apart(&self) -> Option<f64> {
        let values: Vec<f64> = self
            .values
            .iter()
            .filter_map(|entry| match entry {
                Entry::Value(value) => Some(*value),
                _ => None,
            })
            .collect();
        let least = values.iter().copied().min_by(f64::total_cmp).filter(|least| *least > 0.0)?;
        let most = values.iter().copied().max_by(f64::total_cmp)?;
        (values.len() > 1).then_some(most / least - 1.0)
    }
}

fn cell(entry: &Entry, unit: &str) -> Cell {
    match entry {
        Entry::None => Cell::Absent,
        Entry::Count(count) => Cell::Number(count.to_string()),
        Entry::Value(value) if !value.is_finite() => Cell::Absent,
        Entry::Value(value) if unit == "ms" => Cell::Number(format::ms(value * 1e6)),
        Entry::Value(value) if unit == "%" => Cell::Number(format::percent(value / 100.0)),
        Entry::Value(value) => Cell::Number(format::rate(*value)),
        Entry::Word(word) => Cell::Number((*word).to_owned()),
    }
}

fn apart(line: &Line) -> Cell {
    line.apart().map_or(Cell::Blank, |share| Cell::Number(format!("{:.1}", share * 100.0)))
}

/// A level in all definitions.
struct Seen<'a> {
    block: &'a LevelBlock,
    vllm: &'a vllm::Level,
    aiperf: &'a aiperf::Level,
    guidellm: &'a Level,
    servebench: &'a Level,
    mlperf: &'a Level,
}

/// What a row has of a distribution.
#[derive(Clone, Copy)]
enum Part {
    Mean,
    At(Quantile),
}

const PARTS: [Part; 3] = [Part::Mean, Part::At(Quantile::P50), Part::At(Quantile::P99)];

impl Part {
    fn name(self) -> String {
        match self {
            Part::Mean => "mean".to_owned(),
            Part::At(quantile) => format!("p{quantile}"),
        }
    }

    fn of(self, spread: Option<&Spread>, per: f64) -> Entry {
        entry(spread.map(|spread| match self {
            Part::Mean => spread.mean() / per,
            Part::At(quantile) => spread.percentile(quantile) / per,
        }))
    }
}

fn entry(value: Option<f64>) -> Entry {
    value.map_or(Entry::None, Entry::Value)
}

/// A row of latencies: what it is called by each tool, and the factor of its unit to ms.
struct Latency {
    name: &'static str,
    ours: Option<Metric>,
    vllm: Option<Figure>,
    aiperf: Option<A>,
    guidellm: Option<(&'static str, f64)>,
    servebench: Option<&'static str>,
    mlperf: Option<&'static str>,
}

const LATENCIES: [Latency; 5] = [
    Latency {
        name: "TTFT",
        ours: Some(Metric::Ttft),
        vllm: Some(Figure::Ttft),
        aiperf: Some(A::TimeToFirstToken),
        guidellm: Some(("time_to_first_token_ms", 1.0)),
        servebench: Some("ttft_ms"),
        mlperf: Some("first_token_latency_ns"),
    },
    Latency {
        name: "TPOT",
        ours: Some(Metric::Tpot),
        vllm: Some(Figure::Tpot),
        aiperf: Some(A::InterTokenLatency),
        guidellm: Some(("inter_token_latency_ms", 1.0)),
        servebench: Some("tpot_ms"),
        mlperf: Some("time_to_output_token_ns"),
    },
    Latency {
        name: "E2E / n",
        ours: None,
        vllm: None,
        aiperf: None,
        guidellm: Some(("time_per_output_token_ms", 1.0)),
        servebench: None,
        mlperf: None,
    },
    Latency {
        name: "ITL",
        ours: Some(Metric::Itl),
        vllm: Some(Figure::Itl),
        aiperf: Some(A::InterChunkLatency),
        guidellm: None,
        servebench: Some("itl_ms"),
        mlperf: None,
    },
    Latency {
        name: "E2E",
        ours: Some(Metric::E2e),
        vllm: Some(Figure::E2el),
        aiperf: Some(A::RequestLatency),
        guidellm: Some(("request_latency", 1e-3)),
        servebench: Some("e2e_ms"),
        mlperf: Some("latency_ns"),
    },
];

impl Seen<'_> {
    fn lines(&self) -> Vec<Line> {
        let latencies = LATENCIES.iter().flat_map(|latency| {
            PARTS.map(|part| Line {
                name: format!("{} {}", latency.name, part.name()),
                unit: "ms",
                values: self.latency(latency, part),
            })
        });
        latencies.chain(self.rates()).chain(self.counts()).collect()
    }

    fn latency(&self, latency: &Latency, part: Part) -> [Entry; 6] {
        let ours = latency.ours.and_then(|metric| self.block.distributions.get(&metric));
        let ours = ours.and_then(|block| match part {
            Part::Mean => block.mean,
            Part::At(quantile) => block.quantile(quantile),
        });
        let spread = |figure: Figure| {
            let found = self.vllm.spreads.iter().find(|(of, _)| *of == figure)?;
            // Without any value vLLM prints zeros.
            (self.vllm.completed > 0).then_some(&found.1)
        };
        let of_vllm = latency.vllm.and_then(spread).and_then(|spread| match part {
            Part::Mean => Some(spread.mean_ms),
            Part::At(Quantile::P50) => Some(spread.median_ms),
            Part::At(quantile) => spread.percentiles.iter().find(|(of, _)| *of == quantile).map(|(_, ms)| *ms),
        });
        let of_aiperf = latency.aiperf.and_then(|metric| self.aiperf.figure(metric)).and_then(|figure| match part {
            Part::Mean => figure.stats.avg,
            Part::At(quantile) => figure.stats.percentile(quantile.parts() / 1000),
        });
        let (guidellm, per) = latency.guidellm.unwrap_or(("", 1.0));
        let servebench = match latency.servebench.map(|name| self.servebench.figure(name)) {
            // Its gaps are vLLM's, where times of events were not kept.
            Some(None) if latency.name == "ITL" => entry(of_vllm),
            spread => part.of(spread.flatten(), 1.0),
        };
        [
            entry(ours.map(|ns| ns / 1e6)),
            entry(of_vllm),
            entry(of_aiperf),
            part.of(self.guidellm.figure(guidellm), per),
            servebench,
            part.of(latency.mlperf.and_then(|name| self.mlperf.figure(name)), 1e6),
        ]
    }

    fn rates(&self) -> Vec<Line> {
        let window = self.block.rates.window;
        let vllm = self.vllm;
        let total = |level: &Level, name: &str| entry(level.total(name));
        let of_aiperf = |metric: A| entry(self.aiperf.figure(metric).and_then(|figure| figure.stats.avg));
        let goodput = self.block.goodput.as_ref();
        let line = |name: &str, unit: &'static str, values: [Entry; 6]| Line { name: name.to_owned(), unit, values };
        let passes = self.mlperf.passes.map_or(Entry::None, |passes| {
            Entry::Word(if passes { "limits hold" } else { "missed" })
        });
        let share = |value: Option<f64>| entry(value.map(|share| share * 100.0));
        vec![
            line("duration", "s", [
                Entry::Value(window.span_s),
                Entry::Value(vllm.about.duration_s),
                of_aiperf(A::BenchmarkDuration),
                total(self.guidellm, "duration"),
                total(self.servebench, "duration_s"),
                total(self.mlperf, "final_query_done_s"),
            ]),
            line("throughput", "req/s", [
                Entry::Value(window.req_s),
                Entry::Value(vllm.per_second(vllm.completed)),
                of_aiperf(A::RequestThroughput),
                total(self.guidellm, "requests_per_second"),
                total(self.servebench, "request_throughput"),
                total(self.mlperf, "completed_samples_per_second"),
            ]),
            line("throughput output", "tok/s", [
                Entry::Value(window.out_tok_s),
                Entry::Value(vllm.per_second(vllm.output_tokens)),
                of_aiperf(A::OutputTokenThroughput),
                total(self.guidellm, "output_tokens_per_second"),
                total(self.servebench, "output_throughput"),
                total(self.mlperf, "completed_tokens_per_second"),
            ]),
            line("throughput total", "tok/s", [
                Entry::Value(window.total_tok_s),
                Entry::Value(vllm.per_second(vllm.input_tokens + vllm.output_tokens)),
                of_aiperf(A::TotalTokenThroughput),
                total(self.guidellm, "tokens_per_second"),
                total(self.servebench, "total_throughput"),
                Entry::None,
            ]),
            line("goodput", "req/s", [
                entry(goodput.map(|goodput| goodput.good_s)),
                entry(vllm.good.map(|good| vllm.per_second(good))),
                of_aiperf(A::Goodput),
                Entry::None,
                total(self.servebench, "goodput"),
                passes,
            ]),
            line("good requests", "%", [
                share(goodput.map(|goodput| goodput.attainment)),
                Entry::None,
                share(self.aiperf.figure(A::GoodRequestFraction).and_then(|figure| figure.stats.avg)),
                Entry::None,
                share(self.servebench.total("attainment")),
                Entry::None,
            ]),
        ]
    }

    fn counts(&self) -> Vec<Line> {
        let counts = &self.block.counts;
        let of_aiperf = |metric: A| {
            let avg = self.aiperf.figure(metric).and_then(|figure| figure.stats.avg);
            Entry::Count(avg.unwrap_or(0.0) as u64)
        };
        let line = |name: &str, values: [Entry; 6]| Line { name: name.to_owned(), unit: "", values };
        let word = |rule: Rule| Entry::Word(rule.name());
        vec![
            line("ok", [
                Entry::Count(counts.ok),
                Entry::Count(self.vllm.completed),
                of_aiperf(A::RequestCount),
                Entry::Count(self.guidellm.ok),
                Entry::Count(self.servebench.ok),
                Entry::Count(self.mlperf.ok),
            ]),
            line("failed", [
                Entry::Count(counts.failed),
                Entry::Count(self.vllm.failed),
                of_aiperf(A::ErrorRequestCount),
                Entry::Count(self.guidellm.failed),
                Entry::Count(self.servebench.failed),
                Entry::Count(self.mlperf.failed),
            ]),
            line("percentiles", [
                word(Rule::NearestRank),
                word(Rule::Linear),
                word(Rule::Linear),
                word(Other::Guidellm.rule()),
                word(Other::Servebench.rule()),
                word(Other::Mlperf.rule()),
            ]),
        ]
    }
}
