//! vLLM's block on standard output and its file: `--metric-view vllm`, `--save-result` and what belongs to them.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::failure::Failure;
use super::say;
use super::value::Format;
use super::whole_file::{replace, try_out};
use super::with_stdout;
use crate::plan::Error;
use crate::report::View;
use crate::report::vllm::{self, Level, Saved, Selection};
use crate::run_file::RunFile;

/// What of vLLM's is wanted of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VllmOutput {
    /// Figures and percentiles.
    pub selection: Selection,
    /// The block is printed instead of our table.
    pub is_shown: bool,
    /// The file, if one is written.
    pub file: Option<ResultFile>,
}

/// The file of `--save-result`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultFile {
    /// `--result-filename`; `None`: vLLM's name.
    pub name: Option<String>,
    /// Add a line per level.
    pub appends: bool,
    /// An existing file is written anew.
    pub overwrites: bool,
    /// With the lists of single requests.
    pub detailed: bool,
}

impl ResultFile {
    /// Refuses what would fail after the run: a name for several levels, and a file that is there.
    pub(super) fn check(&self, dir: Option<&str>, levels: usize) -> Result<(), Failure> {
        let place = within(dir, self.name.as_deref().unwrap_or("a.json"));
        if self.name.is_none() || self.appends {
            return try_out(&place);
        }
        if levels > 1 {
            let wrong = format!("is one file, and there are {levels} levels");
            let remedy = "add a line per level by --append-result, or leave the name out";
            return Err(Failure::bad(Error::new("--result-filename", wrong, remedy)));
        }
        if place.exists() && !self.overwrites {
            let wrong = format!("{} is there already", place.display());
            let remedy = "name another, or overwrite it with --force";
            return Err(Failure::bad(Error::new("--result-filename", wrong, remedy)));
        }
        try_out(&place)
    }
}

/// Writes a file per level, or a line; returns their names.
pub(super) fn save(
    run: &RunFile,
    levels: &[Level],
    file: &ResultFile,
    dir: Option<&str>,
) -> Result<Vec<PathBuf>, Failure> {
    let mut places: Vec<PathBuf> = Vec::new();
    for level in levels {
        let saved = Saved::of(run, level, file.detailed);
        let object = vllm::to_json(level, &saved);
        let name = file.name.clone().unwrap_or_else(|| vllm::file_name(level, &saved));
        let mut path = within(dir, &name);
        if file.appends {
            append(&path, &object)?;
        } else {
            // Repeats of a load have the same name.
            let taken = |path: &PathBuf| places.contains(path) || (path.exists() && !file.overwrites);
            let mut number = 1;
            while file.name.is_none() && taken(&path) {
                number += 1;
                path = within(dir, &format!("{}-{number}.json", name.trim_end_matches(".json")));
            }
            let text = Value::Object(object);
            replace(&path, |out| write!(out, "{text}"))?;
        }
        if !places.contains(&path) {
            places.push(path);
        }
    }
    Ok(places)
}

/// Prints the blocks, or their objects as lines of JSON, and beside them on standard error what must not be missed.
pub(super) fn show(run: &RunFile, levels: &[Level], format: Format, quiet: bool) -> Result<(), Failure> {
    match format {
        Format::Json => with_stdout(|out| {
            for level in levels {
                let object = vllm::to_json(level, &Saved::of(run, level, false));
                writeln!(out, "{}", Value::Object(object))?;
            }
            Ok(())
        }),
        Format::Table => with_stdout(|mut out| {
            for level in levels {
                vllm::write(level, &mut out)?;
            }
            Ok(())
        }),
    }?;
    if quiet {
        return Ok(());
    }
    say(DEFINITIONS);
    if levels.iter().flat_map(|level| &level.answers).any(|answer| answer.ok && answer.gaps_s.is_none()) {
        say(
            "percentiles of ITL are those of a histogram, within 0.1 %: times of events were not kept (--save-chunks)",
        );
    }
    let cancelled: u64 = levels.iter().map(|level| level.cancelled).sum();
    if cancelled > 0 {
        say(&format!(
            "{cancelled} cancelled requests are counted neither as successful nor as failed: vLLM's client cancels none"
        ));
    }
    let uncounted = levels.iter().flat_map(|level| &level.answers);
    let uncounted = uncounted.filter(|answer| answer.ok && answer.input_tokens == 0).count();
    if uncounted > 0 {
        say(&format!(
            "the server counted no prompt tokens for {uncounted} answers: they are missing in the sums"
        ));
    }
    let view = View::new(run, &[], None);
    view.verdict.iter().for_each(|verdict| say(verdict));
    view.findings.iter().filter(|note| note.warning).for_each(|note| say(&note.text));
    Ok(())
}

fn within(dir: Option<&str>, name: &str) -> PathBuf {
    dir.map_or_else(|| PathBuf::from(name), |dir| Path::new(dir).join(name))
}

fn append(path: &Path, object: &Map<String, Value>) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::unwritable(path, &error);
    let mut file = OpenOptions::new().create(true).append(true).open(path).map_err(failed)?;
    // As vLLM does: lines are parted, not ended.
    let is_empty = file.metadata().map_err(failed)?.len() == 0;
    let line = serde_json::to_string(object).map_err(|error| failed(error.into()))?;
    let line = if is_empty { line } else { format!("\n{line}") };
    file.write_all(line.as_bytes()).map_err(failed)
}

/// What the numbers are, and where the others stand.
const DEFINITIONS: &str = "these are vLLM's definitions over all requests of the level, without a warm-up cut: \
    percentiles by linear interpolation, failed requests left out; TTFT is of the first event with text, where vLLM's \
    client may stop at one with a role alone; tokload report shows the saved run in ours";

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn results_are_added_as_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        let object: Map<String, Value> = [("completed".to_owned(), Value::from(1))].into_iter().collect();
        append(&path, &object).unwrap();
        append(&path, &object).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\"completed\":1}\n{\"completed\":1}");
        assert!(append(&folder.path().join("none").join("a.json"), &object).is_err());
    }

    #[test]
    fn one_name_is_for_one_level_and_an_existing_file_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().to_str();
        let file = ResultFile {
            name: Some("a.json".to_owned()),
            appends: false,
            overwrites: false,
            detailed: false,
        };
        assert!(file.check(dir, 2).unwrap_err().to_string().contains("--append-result"));
        file.check(dir, 1).unwrap();
        fs::write(folder.path().join("a.json"), "").unwrap();
        assert!(file.check(dir, 1).unwrap_err().to_string().contains("--force"));
        ResultFile { overwrites: true, ..file.clone() }.check(dir, 1).unwrap();
        ResultFile { appends: true, ..file.clone() }.check(dir, 2).unwrap();
        let nowhere = ResultFile { name: None, ..file }.check(Some("/proc/none"), 2).unwrap_err();
        assert!(nowhere.to_string().contains("/proc/none"), "{nowhere}");
    }
}
