//! What a run shows: rows, columns, units, remarks, all worded, nothing drawn.
//!
//! One value for every format, so that all show the same numbers. It is made from the run file's blocks alone: a run
//! that has just ended and one that was loaded take the same way.

mod budget;
mod cache;
mod capacity;
mod connections;
mod cut;
mod failures;
mod findings;
mod groups;
mod knee;
mod notes;
mod places;
mod printed;
mod quick;
mod repeats;
mod rows;
mod shares;
mod slices;
mod stress;
mod telemetry;
mod turns;
mod until;

pub(super) use cut::word as ended_early;
pub use findings::{noted, of_plan};
pub use groups::group_name;
pub(super) use knee::doubts as doubts_knee;
pub use quick::machine;
pub(super) use slices::blocks as slices_of;

use crate::run_file::RunFile;

/// A run, ready to be written in any format.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    /// Lines above the table: which run this is.
    pub title: Vec<String>,
    /// What a search for capacity or a stress test has found, the most important line first; empty where there was none.
    pub capacity: Vec<String>,
    /// What it has tried, in that order.
    pub trials: Table,
    /// What was measured: one row per level, and a second one where failures reach a percentile.
    pub table: Table,
    /// The levels as the tool has printed them that the run was imported from; without rows where it prints no table.
    pub printed: Table,
    /// Parts of the levels that differ: by model, by endpoint, slow readers; without rows where there are none.
    pub groups: Table,
    /// The processes that made a merged run beside each other: one row for each of each level; without rows elsewhere.
    pub shares: Table,
    /// What the repeats of each load say together: one row per load; without rows where levels were run once.
    pub repeats: Table,
    /// The turns of sessions apart: one row per turn; without rows where requests stood alone.
    pub turns: Table,
    /// What connections cost: one row per level; without rows where they are no subject.
    pub connections: Table,
    /// The phases of a stress test: one row each; without rows where there was none.
    pub stress: Table,
    /// Levels over time: one row per slice, or per some of them; without rows where no slices were asked for.
    pub slices: Table,
    /// What the servers said meanwhile: one row per level, and one per server where there are several; without rows where they
    /// said nothing.
    pub servers: Table,
    /// What the GPUs said: one row per level.
    pub gpus: Table,
    /// What the client itself may have added to it: one row per level; without rows where nothing real was measured.
    pub budget: Table,
    /// What the run is worth; `None` if it is not judged.
    pub verdict: Option<String>,
    /// What was found, warnings first.
    pub findings: Vec<Note>,
    /// Failures by outcome, the most frequent first.
    pub failures: Vec<Failure>,
    /// Remarks that the numbers need.
    pub notes: Vec<Note>,
    /// Commands worth typing next.
    pub next: Vec<String>,
    /// The file that holds the run.
    pub saved: Option<String>,
}

/// Rows of numbers, each under a label.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// What the labels are.
    pub head: &'static str,
    /// Labels are names that nobody knows when they are cut: a terminal gives them the room that they need.
    pub whole_labels: bool,
    /// Columns behind the label.
    pub columns: Vec<Column>,
    /// The rows.
    pub rows: Vec<Row>,
}

/// A column of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// What neighbouring columns share, with its unit: `TTFT ms`. Empty: nothing.
    pub group: &'static str,
    /// Its own heading.
    pub name: &'static str,
}

/// A level, or the ok requests of one alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The load in words.
    pub label: String,
    /// One cell per column.
    pub cells: Vec<Cell>,
    /// Belongs to the row above it.
    pub second: bool,
}

/// A value in the table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Not known, or undefined.
    Absent,
    /// Nothing is said here.
    Blank,
    /// The percentile falls on a failed request.
    Failed,
    /// Number of failures, above 0.
    Failures(String),
    /// A latency that has no steady value, but grows with the length of the level: with a mark.
    Growing(String),
    /// A number, formatted in the unit of its column.
    Number(String),
    /// A number beyond what is tolerable.
    Suspect(String),
    /// A percentile for which there are too few independent requests: with a mark.
    Unsupported(String),
}

/// How often an outcome ended a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Class, with the finer kind where there is one.
    pub label: String,
    /// How often.
    pub count: u64,
    /// Labels of the levels where it was seen; empty if the run has one level.
    pub levels: Vec<String>,
    /// What the server or the system said, once; empty if nothing.
    pub message: String,
}

/// A remark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The numbers may mislead.
    pub warning: bool,
    /// The words.
    pub text: String,
}

impl Table {
    /// A table whose labels are cut where they are long.
    pub(super) fn of(head: &'static str, columns: Vec<Column>, rows: Vec<Row>) -> Table {
        Table { head, whole_labels: false, columns, rows }
    }
}

impl Column {
    /// Its heading with what it shares with its neighbours: `TTFT ms p50`.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{} {}", self.group, self.name).trim().to_owned()
    }
}

impl Cell {
    /// What stands in the cell.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Cell::Absent => "–",
            Cell::Blank => "",
            Cell::Failed => "failed",
            Cell::Failures(text)
            | Cell::Growing(text)
            | Cell::Number(text)
            | Cell::Suspect(text)
            | Cell::Unsupported(text) => text,
        }
    }
}

impl View {
    /// The view of `run`, with `next` as the commands to suggest and `saved` as the file that holds it.
    #[must_use]
    pub fn new(run: &RunFile, next: &[String], saved: Option<&str>) -> View {
        let (verdict, findings) = findings::of(run);
        View {
            title: title(run),
            capacity: capacity::headline(run).into_iter().chain(stress::headline(run)).collect(),
            trials: capacity::table(run),
            table: Table::of(
                "load",
                rows::COLUMNS.to_vec(),
                run.levels.iter().flat_map(|level| rows::of(level, run.imported.is_some())).collect(),
            ),
            printed: printed::table(run),
            groups: Table::of("part", groups::COLUMNS.to_vec(), groups::rows(run)),
            shares: Table {
                whole_labels: true,
                ..Table::of("share", shares::COLUMNS.to_vec(), shares::rows(run))
            },
            repeats: Table::of("mean ± 95 %", repeats::columns(), repeats::rows(run)),
            turns: Table::of("turn", turns::COLUMNS.to_vec(), turns::rows(run)),
            connections: Table::of("connections", connections::COLUMNS.to_vec(), connections::rows(run)),
            stress: Table::of("phase", stress::COLUMNS.to_vec(), stress::rows(run)),
            slices: Table::of("from", slices::COLUMNS.to_vec(), slices::rows(run)),
            servers: Table::of("servers", telemetry::SERVER_COLUMNS.to_vec(), telemetry::servers(run)),
            gpus: Table::of("GPUs", telemetry::GPU_COLUMNS.to_vec(), telemetry::gpus(run)),
            budget: Table::of(
                "client",
                budget::COLUMNS.to_vec(),
                run.levels.iter().filter_map(budget::of).collect(),
            ),
            verdict,
            findings,
            failures: failures::of(run),
            notes: cut::note(run)
                .into_iter()
                .chain(knee::note(run))
                .chain(notes::of(run))
                .chain(connections::notes(run))
                .chain(groups::notes(run))
                .chain(shares::notes(run))
                .chain(until::notes(run))
                .chain(turns::notes(run))
                .chain(slices::notes(run))
                .chain(stress::herds(run))
                .chain(cache::note(run))
                .chain(cache::levels(run))
                .chain(repeats::note(run))
                .chain(telemetry::notes(run))
                .collect(),
            next: next.to_vec(),
            saved: saved.map(str::to_owned),
        }
    }
}

fn title(run: &RunFile) -> Vec<String> {
    // The version of another tool is not always known.
    let mut what = vec![format!("{} {}", run.tool.name, run.tool.version).trim_end().to_owned()];
    what.extend(run.imported.as_ref().map(|_| run.target.models.join(", ")));
    if let Ok(plan) = run.plan.read()
        && !run.is_simulated()
    {
        what.push(plan.target.models.join(", "));
        what.push(plan.target.endpoints.into_iter().map(|e| e.url).collect::<Vec<_>>().join(", "));
    }
    let server: Vec<&str> =
        [&run.target.kind, &run.target.version].into_iter().flatten().map(String::as_str).collect();
    what.push(server.join(" "));
    // To the second: nine digits help nobody here.
    let time = run.created.split('.').next().unwrap_or_default().trim_end_matches('Z').replace('T', " ");
    // Other tools write the time of their machine, whose zone nobody knows.
    what.push(if run.created.ends_with('Z') { time + " UTC" } else { time });
    what.extend(share(run));
    what.extend(run.label.clone());
    what.retain(|part| !part.is_empty());
    vec![super::format::one_line(&what.join(" · "), TITLE_CHARS_MAX)]
}

/// Which part of a run it is, or of how many it was made.
fn share(run: &RunFile) -> Option<String> {
    if let Some(merged) = &run.merged {
        return Some(match merged.missing.len() {
            0 => format!("merged of {} shares", merged.of),
            _ => format!("merged of {} of {} shares", merged.shares.len(), merged.of),
        });
    }
    let share = run.plan.read().ok()?.share?;
    Some(format!("share {share}"))
}

const TITLE_CHARS_MAX: usize = 300;
