//! A run as other tools would have it: their numbers of each level, and their files.

use std::path::{Path, PathBuf};

use super::Session;
use super::spools::Spools;
use crate::cli::failure::Failure;
use crate::cli::metric_view::MetricView;
use crate::cli::others_view::OthersView;
use crate::cli::{aiperf_result, vllm_result};
use crate::metrics::Record;
use crate::plan::Slo;
use crate::report::{aiperf, requests, vllm};
use crate::run_file::{Chunks, Loaded, RunFile};

/// The levels of a run as other tools would have them; empty where that is not wanted.
#[derive(Default)]
pub(in crate::cli) struct Others {
    pub(in crate::cli) vllm: Vec<vllm::Level>,
    pub(in crate::cli) aiperf: Vec<aiperf::Level>,
    /// The run in the definitions of a further tool, or of all.
    pub(in crate::cli) view: Option<OthersView>,
}

impl Session {
    /// Adds the last level of `run` to `others`, as far as they are wanted; `chunks` stands at its first record.
    pub(super) fn view_as_others(
        &self,
        run: &RunFile,
        records: Option<&[Record]>,
        chunks: Option<&mut Chunks>,
        slo: &Slo,
        others: &mut Others,
    ) -> Result<(), Failure> {
        let wanted = (&self.output.vllm, &self.output.aiperf);
        let (Some(records), Some(block)) = (records, run.levels.last()) else { return Ok(()) };
        if wanted.0.is_none() && wanted.1.is_none() {
            return Ok(());
        }
        let requests = requests::of_level(block, records, chunks).map_err(Failure::own)?;
        if let Some(wanted) = wanted.0 {
            let generates = run.plan.read().map_or(true, |plan| plan.target.dialect.generates());
            let level = vllm::level(block, &requests, slo, generates, &wanted.selection);
            others.vllm.push(level.map_err(Failure::own)?);
        }
        if wanted.1.is_some() {
            others.aiperf.push(aiperf::level(run, block, &requests, slo));
        }
        Ok(())
    }

    /// The whole `run`, whose records are still being kept in `spools`, in the definitions that are asked for; `None` where they
    /// are ours.
    pub(super) fn view_of_others(
        &self,
        run: &RunFile,
        spools: &Spools,
        slo: &Slo,
    ) -> Result<Option<OthersView>, Failure> {
        if !matches!(self.output.view, MetricView::Other(_) | MetricView::All) {
            return Ok(None);
        }
        let [records, chunks] = spools.parts();
        let loaded = Loaded::of_parts(run.clone(), records, chunks);
        OthersView::of(&loaded, run, self.output.view, slo).map_err(Failure::own)
    }

    /// Writes what other tools would have written; returns the names. Why some is not there goes to `failures`.
    pub(super) fn save_others(
        &self,
        run: &RunFile,
        others: &Others,
        stored: Option<&Path>,
        slo: &Slo,
        failures: &mut Vec<Failure>,
    ) -> Vec<PathBuf> {
        let dir = self.output.dir.as_deref();
        let mut written = Vec::new();
        if let Some(file) = self.output.vllm.as_ref().and_then(|wanted| wanted.file.as_ref()) {
            written.push(vllm_result::save(run, &others.vllm, file, dir));
        }
        if self.output.aiperf.as_ref().is_some_and(|wanted| wanted.is_saved) {
            written.push(aiperf_result::save(run, &others.aiperf, dir));
        }
        if let Some(stored) = stored.filter(|_| !self.output.exports.is_empty()) {
            match Loaded::open(stored) {
                Ok(loaded) => {
                    written.extend(self.output.exports.iter().map(|export| export.write(&loaded, slo)));
                }
                Err(error) => failures.push(Failure::own(error)),
            }
        }
        let mut saved = Vec::new();
        for files in written {
            match files {
                Ok(files) => saved.extend(files),
                Err(failure) => failures.push(failure),
            }
        }
        saved
    }
}
