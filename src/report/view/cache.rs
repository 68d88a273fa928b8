//! What the server's prefix cache did: whether it was emptied on wish, what it found, and the TTFT of both.

use super::Note;
use crate::report::format;
use crate::run_file::RunFile;
use crate::run_file::schema::LevelBlock;
use crate::summary::cache::Group;

/// What was found of the prompts of each level, and how the TTFT of those found differs.
pub(super) fn levels(run: &RunFile) -> impl Iterator<Item = Note> + '_ {
    let notes = run.levels.iter().flat_map(|level| [found(level), parted(level)]);
    notes.flatten().map(|text| Note { warning: false, text })
}

fn found(level: &LevelBlock) -> Option<String> {
    let planned = level.reuse.filter(|reuse| reuse.found_tokens > 0)?.share();
    let of_server = match level.tokens.cached.filter(|_| level.tokens.prompt > 0) {
        Some(cached) => {
            format!(
                "{} % came from the server's",
                format::percent(cached as f64 / level.tokens.prompt as f64)
            )
        }
        None => "the server does not say what it found".to_owned(),
    };
    Some(format!(
        "{}: an unlimited prefix cache finds {} % of the prompt tokens, {of_server}",
        level.label,
        format::percent(planned)
    ))
}

fn parted(level: &LevelBlock) -> Option<String> {
    let split = level.cache_split?;
    let of = |group: Group, what: &str| {
        let ttft = group.ttft?;
        Some(format!(
            "{} {what} ({} % of their tokens): p50 {}, p90 {}, p99 {} ms",
            group.n,
            format::percent(group.cached_share()),
            format::ms(ttft.p50),
            format::ms(ttft.p90),
            format::ms(ttft.p99)
        ))
    };
    let (cached, uncached) =
        (of(split.cached, "requests found in the cache")?, of(split.uncached, "not found")?);
    Some(format!("{}: TTFT of {cached}; of {uncached}", level.label))
}

/// The remark on the server's prefix cache.
pub(super) fn note(run: &RunFile) -> Option<Note> {
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
