//! The last selftest of this machine, kept in the state directory.

use super::outcome::{Machine, SCHEMA, Selftest, VERSION};
use crate::cli::state_dir::StateDir;
use crate::run_file::schema::SelftestBlock;

const NAME: &str = "selftest.json";

/// Stores `selftest` in the place of the last one; where it is then.
///
/// # Errors
/// There is no state directory, or it cannot be written: one sentence.
pub(super) fn store(selftest: &Selftest, state: Option<&StateDir>) -> Result<String, String> {
    let state = state.ok_or("there is no state directory: set TOKLOAD_STATE_DIR or HOME")?;
    let text = serde_json::to_string_pretty(selftest).map_err(|error| error.to_string())?;
    state.replace(NAME, &(text + "\n")).map(|path| path.display().to_string())
}

/// What the last selftest says, as far as there is one.
///
/// # Errors
/// There is a file that cannot be used: one sentence.
pub(super) fn read(state: Option<&StateDir>) -> Result<Option<Selftest>, String> {
    let Some(state) = state else { return Ok(None) };
    let Some(text) = state.read(NAME)? else { return Ok(None) };
    let place = state.path(NAME).display().to_string();
    let selftest: Selftest = serde_json::from_str(&text)
        .map_err(|error| format!("{place} is no selftest of ours ({error}): it is ignored"))?;
    if selftest.schema != SCHEMA || selftest.version != VERSION {
        return Err(format!(
            "{place} is a {} of version {}, not one of ours: it is ignored",
            crate::report::format::one_line(&selftest.schema, 40),
            selftest.version
        ));
    }
    Ok(Some(selftest))
}

/// What a run on this machine, with `usable` cores, quotes of the last selftest; and the line to say if it cannot.
pub(in crate::cli) fn quoted(usable: usize) -> (Option<SelftestBlock>, Option<String>) {
    match read(StateDir::find().as_ref()) {
        Ok(selftest) => (selftest.map(|selftest| selftest.block(&Machine::this(usable))), None),
        Err(line) => (None, Some(line)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::outcome::tests::selftest;
    use super::*;

    /// A state directory of the test's own.
    fn state() -> (tempfile::TempDir, StateDir) {
        let dir = tempfile::TempDir::new().unwrap();
        let path = dir.path().as_os_str().to_owned();
        let state = StateDir::from_env(|name| (name == "TOKLOAD_STATE_DIR").then(|| path.clone()));
        (dir, state.unwrap())
    }

    #[test]
    fn what_is_stored_is_read() {
        let (_dir, state) = state();
        assert_eq!(read(Some(&state)), Ok(None));
        let selftest = selftest();
        store(&selftest, Some(&state)).unwrap();
        assert_eq!(read(Some(&state)), Ok(Some(selftest)));
    }

    #[test]
    fn foreign_files_are_ignored_with_a_line() {
        let (_dir, state) = state();
        let mut newer = selftest();
        newer.version = VERSION + 1;
        let newer = serde_json::to_string(&newer).unwrap();
        for (text, part) in
            [("{}", "is no selftest of ours"), ("\0", "is no selftest of ours"), (&newer, "version 2")]
        {
            state.replace(NAME, text).unwrap();
            let line = read(Some(&state)).unwrap_err();
            assert!(line.contains(part) && line.contains(NAME) && !line.contains('\n'), "{line}");
        }
    }

    #[test]
    fn without_a_state_directory_nothing_is_stored_and_nothing_read() {
        assert!(store(&selftest(), None).unwrap_err().contains("TOKLOAD_STATE_DIR"));
        assert_eq!(read(None), Ok(None));
    }
}
