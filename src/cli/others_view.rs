//! A run in the definitions of guidellm, servebench or MLPerf, or as all tools have it beside each other: `--metric-view`, for a
//! saved run and for one that has just ended.

use serde_json::Value;

use super::failure::Failure;
use super::metric_view::MetricView;
use super::run::terminal_style;
use super::value::Format;
use super::with_stdout;
use crate::plan::Slo;
use crate::report::others::{self, Discrepancies};
use crate::report::requests::Unreadable;
use crate::report::{View, terminal};
use crate::run_file::{Loaded, RunFile};

/// What is shown: a table, or objects in its place.
pub(super) struct OthersView {
    pub(super) view: View,
    pub(super) json: Vec<Value>,
}

impl OthersView {
    /// `loaded` as `view` has it, its requests judged by `slo`; `run` holds our own numbers under these limits. `None` where the
    /// view is none of these.
    ///
    /// # Errors
    /// There are no records, or something of them cannot be read.
    pub(super) fn of(
        loaded: &Loaded,
        run: &RunFile,
        view: MetricView,
        slo: &Slo,
    ) -> Result<Option<OthersView>, Unreadable> {
        Ok(match view {
            MetricView::Other(tool) => {
                let levels = others::recorded(loaded, slo, tool)?;
                let json = levels.iter().map(|level| Value::Object(others::to_json(level))).collect();
                Some(OthersView { view: others::view(run, tool, &levels), json })
            }
            MetricView::All => {
                let all = Discrepancies::of(loaded, run, slo)?;
                Some(OthersView { view: all.view(run), json: vec![all.to_json()] })
            }
            MetricView::Tokload | MetricView::Vllm | MetricView::Aiperf => None,
        })
    }

    /// Prints it: the table, or a line for each object.
    pub(super) fn show(&self, format: Format) -> Result<(), Failure> {
        match format {
            Format::Json => {
                with_stdout(|out| self.json.iter().try_for_each(|object| writeln!(out, "{object}")))
            }
            Format::Table => with_stdout(|mut out| terminal::write(&self.view, terminal_style(), &mut out)),
        }
    }
}
