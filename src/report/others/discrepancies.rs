//! One run as each of the tools would have printed it: a row per number, a column per tool.

use serde_json::{Map, Value, json};

use super::Other;
use super::lines::Seen;
use super::reasons::REASONS;
use crate::plan::Slo;
use crate::report::aiperf;
use crate::report::format;
use crate::report::requests::Unreadable;
use crate::report::view::{Cell, Column, Note, Row, Table, View};
use crate::report::vllm::{self, Figure, Selection};
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
            let name =
                if line.unit.is_empty() { line.name.clone() } else { format!("{} {}", line.name, line.unit) };
            Row {
                label: if is_one { name } else { format!("{label}: {name}") },
                cells: line.values.iter().map(|entry| cell(entry, line.unit)).chain([apart(line)]).collect(),
                second: false,
            }
        };
        let rows =
            self.levels.iter().flat_map(|(_, label, lines)| lines.iter().map(move |line| row(label, line)));
        let column = |name| Column { group: "", name };
        let reasons = REASONS
            .iter()
            .map(|reason| Note { warning: false, text: format!("{}: {}", reason.about, reason.text) });
        View {
            title: whole.title,
            table: Table {
                head: "by definition of",
                whole_labels: true,
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
