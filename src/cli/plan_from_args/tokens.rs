//! Whether the lengths of prompts are tokens, and who counts them.

use super::RunArgs;
use crate::plan::{Error, Tokens, Workload};

/// Sets who counts, or keeps what the file says. Whoever names another counter wants what is found by that one.
pub(super) fn set(args: &RunArgs, workload: &mut Workload) -> Result<(), Error> {
    if args.tokenizer.is_some() && args.calibrate {
        let wrong = "stands beside --tokenizer, which counts as well";
        return Err(Error::new("--calibrate", wrong, "give one of them"));
    }
    if args.tokenizer.is_none() && !args.calibrate && !args.tokenize_prompt {
        return Ok(());
    }
    let before = workload.tokens.take().unwrap_or_default();
    let ids = before.ids || args.tokenize_prompt;
    let is_same = args.tokenizer.is_none() && !args.calibrate && ids == before.ids;
    let tokenizer = match (&args.tokenizer, args.calibrate) {
        (Some(name), _) => Some(name.clone()),
        (None, true) => None,
        (None, false) => before.tokenizer,
    };
    workload.tokens = Some(Tokens { tokenizer, ids, found: before.found.filter(|_| is_same) });
    Ok(())
}
