//! Whether files are the shares of one run, and all of them.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Member, MergeError};
use crate::plan::json_of;
use crate::run_file::alike;
use crate::run_file::checkpoint::Leftover;
use crate::run_file::gathering::{self, Sign};
use crate::stats::sort;

/// The shares in `files`, in their order.
pub(super) fn members(files: &[PathBuf], allow_missing: bool) -> Result<Vec<Member>, MergeError> {
    let mut members = files.iter().map(|path| Member::at(path)).collect::<Result<Vec<_>, _>>()?;
    let Some(first) = members.first() else { return Err(MergeError::Nothing) };
    for other in &members[1..] {
        if let Some(what) = difference(first, other) {
            let (first, other) = (first.path.clone(), other.path.clone());
            return Err(MergeError::Differ { first, other, what });
        }
    }
    let of = first.share.of;
    sort::few_by_key(&mut members, |member| member.share.index);
    for pair in members.windows(2) {
        if pair[0].share == pair[1].share {
            let (first, second) = (pair[0].path.clone(), pair[1].path.clone());
            return Err(MergeError::Twice { share: pair[0].share.index, first, second });
        }
    }
    let missing = missing(&members);
    if !missing.is_empty() && !allow_missing {
        let last_signs = last_signs(&members);
        let left = left_over(&members[0].path, &missing, of);
        return Err(MergeError::Missing { missing, of, last_signs, left });
    }
    Ok(members)
}

/// The last signs of life of the shares that are missing, as far as they have left any.
pub(super) fn last_signs(members: &[Member]) -> Vec<Sign> {
    let missing = missing(members);
    if missing.is_empty() {
        return Vec::new();
    }
    gathering::last_signs(&members[0].path, &missing, members[0].share.of)
}

/// What is said of processes whose shares are missing and that have left something which is not in the merged run.
pub(super) fn not_taken(members: &[Member]) -> Vec<String> {
    let left = left_over(&members[0].path, &missing(members), members[0].share.of);
    let said = |path: &PathBuf| {
        format!("what a process has left of {} is not in it: name that file too", path.display())
    };
    left.iter().map(said).collect()
}

/// The shares that no file is of.
pub(super) fn missing(members: &[Member]) -> Vec<u32> {
    let of = members[0].share.of;
    (1..=of).filter(|index| members.iter().all(|member| member.share.index != *index)).collect()
}

/// Of the shares `missing`, those whose processes have left something beside `file`, the file of another share: by the
/// names that they were to be saved under.
fn left_over(file: &Path, missing: &[u32], of: u32) -> Vec<PathBuf> {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let Some((stem, _)) = name.split_once(".share-") else { return Vec::new() };
    let places = missing
        .iter()
        .take(LOOKED_FOR)
        .map(|index| file.with_file_name(format!("{stem}.share-{index}-of-{of}.json")));
    places.filter(|place| Leftover::of(place).is_some()).collect()
}

/// Missing shares of which the folder is searched for what they have left.
const LOOKED_FOR: usize = 64;

/// In what two files are not of one run, with both values.
fn difference(a: &Member, b: &Member) -> Option<String> {
    let (one, other) = (&a.loaded.run, &b.loaded.run);
    let named = |what: &str, x: String, y: String| format!("{what} is {x} in one and {y} in the other");
    if one.tool != other.tool {
        return Some(named("the program", one.tool.in_words(), other.tool.in_words()));
    }
    if one.is_simulated() != other.is_simulated() {
        return Some("one is simulated and the other is not".to_owned());
    }
    if a.share.of != b.share.of {
        return Some(named("the number of shares", a.share.of.to_string(), b.share.of.to_string()));
    }
    let named_of = |what: alike::Difference| named(&what.what, what.one, what.other);
    if let Some(what) = alike::difference("plan", &alike::comparable(&a.plan), &alike::comparable(&b.plan)) {
        return Some(named_of(what));
    }
    for (what, x, y) in [
        ("the trace", json_of(&one.trace), json_of(&other.trace)),
        ("the data set", json_of(&one.data), json_of(&other.data)),
        // Only a simulated run has it: the server that it was run against.
        ("the server", server(&one.metadata), server(&other.metadata)),
    ] {
        if let Some(what) = alike::difference(what, &x, &y) {
            return Some(named_of(what));
        }
    }
    None
}

/// The modelled server of a simulated run.
fn server(metadata: &std::collections::BTreeMap<String, String>) -> Value {
    metadata.get(crate::run_file::schema::SIMULATED_SERVER).cloned().into()
}

/// In what shares of one run differ that need not be alike, but had better be.
pub(super) fn notes(members: &[Member]) -> Vec<String> {
    let mut notes = Vec::new();
    let target = |member: &Member| {
        let target = &member.loaded.run.target;
        let said = [target.kind.as_deref(), target.version.as_deref()];
        said.into_iter().flatten().collect::<Vec<_>>().join(" ")
    };
    let cpu = |member: &Member| member.loaded.run.environment.cpu_model.clone().unwrap_or_default();
    for (what, of) in [("server", &target as &dyn Fn(&Member) -> String), ("client CPU", &cpu)] {
        let mut all: Vec<String> = members.iter().map(of).collect();
        all.sort_unstable();
        all.dedup();
        if all.len() > 1 {
            notes.push(format!("the shares do not have one {what}: {}", all.join("; ")));
        }
    }
    for member in members.iter().filter(|member| member.loaded.run.interrupted) {
        let share = member.share.index;
        let Some(cut) = member.loaded.run.cut else {
            notes.push(format!("share {share} was interrupted"));
            continue;
        };
        let process = cut.process;
        notes.push(match cut.running {
            true => format!(
                "share {share} is not over: its process {process} still runs, merge again when it has ended"
            ),
            false => {
                format!("share {share} was cut: its process {process} ended before it could save its part")
            }
        });
        if cut.lost > 0 {
            notes
                .push(format!("the records of share {share} are damaged: {} requests are missing", cut.lost));
        }
    }
    notes
}
