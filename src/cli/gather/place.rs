//! The place of a process in the folder: whether another one has it, and what is left of it in the end.

use std::time::Duration;

use super::Inner;
use crate::run_file::gathering::{Folder, Sign, Stage};
use crate::sys::clock::RunClock;

/// How long a process of which nobody can say whether it lives is listened to: several times as long as one that waits
/// is silent.
const WATCH: Duration = Duration::from_secs(3);
/// How often is looked.
const LOOK: Duration = Duration::from_millis(20);

/// Looks whether a process that lives has the place of `own`, as the sign there says.
///
/// # Errors
/// One does: a sentence that names it.
pub(super) fn look(folder: &Folder, own: &Sign, clock: RunClock) -> Result<(), String> {
    let Some(seen) = folder.sign(own.share).filter(|seen| !seen.is_over(own.host.as_deref())) else {
        return Ok(());
    };
    let began = clock.now();
    while clock.now() - began < WATCH {
        std::thread::sleep(LOOK);
        match folder.sign(own.share) {
            // It has gone, or said that it is over.
            None => return Ok(()),
            Some(now) if matches!(now.stage, Stage::Done | Stage::Failed) => return Ok(()),
            Some(now) if (&now.token, now.beat) != (&seen.token, seen.beat) => return Err(twice(&now)),
            Some(_) => {}
        }
    }
    // A process that was killed: whoever makes its share now may begin.
    Ok(())
}

/// What is said where a share is made by another process as well.
pub(super) fn twice(other: &Sign) -> String {
    format!(
        "share {} of {} is made by another process as well, {}, which last wrote at {}: start each share once, or end that \
         process first",
        other.share,
        other.of,
        other.whose(),
        other.at
    )
}

/// Clears the folder of a run of which there is nothing, if no other process may need to read why.
pub(super) fn leave(inner: &Inner) {
    if inner.taken.get().is_some() {
        // What stands there is another's.
        return;
    }
    let own = inner.sign().clone();
    let others = inner.folder.everybody().into_iter().filter(|sign| sign.token != own.token);
    // One that is saved belongs to a run that was, and merge asks for what is said of it.
    let is_nobody = |sign: Sign| sign.stage != Stage::Done && sign.is_over(own.host.as_deref());
    if others.into_iter().all(is_nobody) {
        inner.folder.remove();
    }
}
