//! What may have been answered from a prefix cache: the same prompts sent before, and a cache that was not emptied.

use super::Note;
use crate::run_file::RunFile;

/// The remarks on the server's prefix cache.
pub(super) fn notes(run: &RunFile) -> Vec<Note> {
    same_prompts(run).into_iter().chain(reset(run)).collect()
}

fn same_prompts(run: &RunFile) -> Option<Note> {
    let seen = run.target.seen_before.as_ref()?;
    let cached: Option<u64> = run.levels.iter().map(|level| level.tokens.cached).sum();
    let last = seen.last.split('.').next().unwrap_or_default().replace('T', " ");
    let text = format!(
        "the same prompts went to this server before, last at {last} UTC (same seed): unless it was restarted since, it \
         may answer from its prefix cache; leave out --seed, or give --reset-prefix-cache"
    );
    // A server that was emptied, or that counts its hits and had none, has nothing to hide.
    let harmless = run.target.prefix_cache_reset == Some(true) || cached == Some(0);
    (!harmless).then_some(Note { warning: true, text })
}

fn reset(run: &RunFile) -> Option<Note> {
    match run.target.prefix_cache_reset? {
        true => Some(Note {
            warning: false,
            text: "the server was asked to empty its prefix cache before each level".to_owned(),
        }),
        false => Some(Note {
            warning: true,
            text: "the server did not empty its prefix cache before every level".to_owned(),
        }),
    }
}
