//! That a run was never saved, and what is known of it nevertheless.

use super::Note;
use crate::run_file::RunFile;
use crate::run_file::schema::CutBlock;

pub(super) fn note(run: &RunFile) -> Option<Note> {
    let CutBlock { process, running, until_s, others, lost } = run.cut?;
    let mut text = match running {
        true => format!("the run goes on (process {process}): this is what it has kept so far"),
        false => format!(
            "the run was cut: process {process} ended without saving it, and this is what it had kept"
        ),
    };
    match until_s {
        Some(s) => {
            text += &format!(", up to {s:.3} s after its start; the last second may be missing");
        }
        None => text += "; of a level that had begun nothing is known",
    }
    text += ". ITL is of histograms, what the shards and the machine say of themselves is missing for the last level";
    if lost > 0 {
        text += &format!(
            ". Its records are damaged: {lost} requests that its checkpoint has counted are not among them, so the numbers are \
             not those of the run; the slices have every request"
        );
    }
    match others {
        0 => {}
        1 => text += ". An older process has left something under this name as well",
        n => text += &format!(". {n} older processes have left something under this name as well"),
    }
    Some(Note { warning: true, text })
}
