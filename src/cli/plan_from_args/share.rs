//! What a share asks of the command line beside its option: a seed that all processes have, a cap that is split, names of
//! files that differ.

use std::path::{Path, PathBuf};

use super::FRESH_SEED_MASK;
use crate::plan::{Error, Plan, Share};

/// Refuses a share of a plan whose seed was drawn for this process alone: its parts would be those of different runs.
pub(in crate::cli) fn same_seed(plan: &Plan, fresh_seed: u64) -> Result<(), Error> {
    // The only share of a run is the whole of it.
    if plan.own_share().of == 1 || plan.seed != fresh_seed & FRESH_SEED_MASK {
        return Ok(());
    }
    let remedy = "give all of them the same --seed, as in --seed 1";
    Err(Error::new("--share", "each process would draw a seed of its own", remedy))
}

/// What becomes of caps: as many in flight over all processes, but each admits its own.
pub(super) fn notes(plan: &Plan) -> Option<String> {
    let share = plan.share.filter(|share| share.of > 1)?;
    let caps: Vec<u32> = plan.levels.iter().filter_map(|level| level.load.cap).collect();
    let own: Vec<String> = caps.iter().map(|cap| share.count_u32(*cap).to_string()).collect();
    (!caps.is_empty()).then(|| {
        let all: Vec<String> = caps.iter().map(u32::to_string).collect();
        format!(
            "a cap is split over the processes: share {share} has at most {} of {} requests in flight",
            own.join(","),
            all.join(",")
        )
    })
}

/// The name of a share's file: `run.share-2-of-4.json` for `run.json`, so that processes of one command line have files
/// of their own.
pub(in crate::cli) fn file(path: &Path, share: Option<Share>) -> PathBuf {
    if share.is_none() {
        return path.to_owned();
    }
    let is_json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    let stem = if is_json { path.file_stem() } else { path.file_name() };
    let Some(stem) = stem else { return path.to_owned() };
    let mut name = stem.to_owned();
    name.push(suffix(share) + ".json");
    path.with_file_name(name)
}

/// What stands behind the name of a share's file, before `.json`.
pub(in crate::cli) fn suffix(share: Option<Share>) -> String {
    share.map_or_else(String::new, |Share { index, of }| format!(".share-{index}-of-{of}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_files_of_their_own() {
        let of = |path: &str| file(Path::new(path), Some(Share { index: 2, of: 4 }));
        assert_eq!(of("out/run.json"), Path::new("out/run.share-2-of-4.json"));
        assert_eq!(of("run"), Path::new("run.share-2-of-4.json"));
        assert_eq!(of("run.v1"), Path::new("run.v1.share-2-of-4.json"));
        assert_eq!(file(Path::new("run.json"), None), Path::new("run.json"));
    }
}
