//! The trace of a plan: its file opened, looked through, and told of.

use std::fs::File;
use std::io::BufReader;
use std::sync::Arc;

use super::failure::Failure;
use crate::api::Dialect;
use crate::plan::Plan;
use crate::workload::Recording;
use crate::workload::recording::Open;
use crate::workload::trace::Input;

/// Looks through the trace that `plan` sends, if it sends one.
pub(super) fn look(plan: &Plan) -> Result<Option<Arc<Recording>>, Failure> {
    let Some(trace) = &plan.workload.trace else { return Ok(None) };
    let path = trace.file.clone();
    let open: Open = Box::new(move || {
        let input = BufReader::with_capacity(READ_BYTES, File::open(&path)?);
        Ok(Box::new(input) as Box<dyn Input + Send>)
    });
    let recording = Recording::look(trace, open)
        .map_err(|refusal| Failure::bad(format!("--trace {}: {refusal}", trace.file)))?;
    if recording.overview().chats > 0 && plan.target.dialect == Dialect::Openai {
        return Err(Failure::bad(format!(
            "--trace {}: {} of its requests are chats, which completions cannot ask; use --backend openai-chat",
            trace.file,
            recording.overview().chats
        )));
    }
    Ok(Some(Arc::new(recording)))
}

/// What the user should know of a trace, one line each.
pub(super) fn notes(recording: &Recording) -> Vec<String> {
    let overview = recording.overview();
    let mut notes = vec![overview.to_string()];
    notes.extend(overview.counts.first_errors.iter().map(|error| format!("left out: {error}")));
    notes
}

const READ_BYTES: usize = 256 << 10;
