//! Whether the server emptied its prefix cache on wish.

use super::Note;
use crate::run_file::RunFile;

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
