//! The folder of what the program remembers from one run to the next: `tokload` in the user's state directory.
//!
//! Owns where it is and how a file in it is replaced. What stands in the files is their owners' business, and nothing in
//! them may ever fail a command: who cannot read or write one says so in a line and goes on.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The folder, which need not be there yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StateDir(PathBuf);

impl StateDir {
    /// The folder that the environment names: `TOKLOAD_STATE_DIR`, or `tokload` in `XDG_STATE_HOME`, or in
    /// `.local/state` of the home directory. `None` where there is none of them.
    pub(super) fn from_env(env: impl Fn(&str) -> Option<OsString>) -> Option<StateDir> {
        // The XDG specification has relative paths ignored, and an empty one is nobody's wish.
        let path = |name| env(name).map(PathBuf::from);
        let absolute = |name| path(name).filter(|path| path.is_absolute());
        let own = path("TOKLOAD_STATE_DIR").filter(|path| !path.as_os_str().is_empty());
        own.or_else(|| Some(absolute("XDG_STATE_HOME")?.join("tokload")))
            .or_else(|| Some(absolute("HOME")?.join(".local/state/tokload")))
            .map(StateDir)
    }

    /// The folder of this process's environment.
    pub(super) fn find() -> Option<StateDir> {
        StateDir::from_env(|name| std::env::var_os(name))
    }

    /// Where the file `name` is or would be.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The text of the file `name`; `None` if there is none.
    ///
    /// # Errors
    /// It is there and cannot be read: one sentence.
    pub(super) fn read(&self, name: &str) -> Result<Option<String>, String> {
        let path = self.path(name);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("{} cannot be read: {error}", path.display())),
        }
    }

    /// Puts `text` in the place of the file `name`, making the folder if need be. A reader, and a crash, sees the old
    /// text or the new one whole.
    ///
    /// # Errors
    /// The system refuses: one sentence.
    pub(super) fn replace(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        let path = self.path(name);
        let part = self.path(&format!(".{name}.{}", std::process::id()));
        let replaced = fs::create_dir_all(&self.0).and_then(|()| write_and_rename(&part, &path, text));
        replaced.map(|()| path.clone()).map_err(|error| {
            // Half a file that cannot be removed is hidden and harms nobody.
            let _ = fs::remove_file(&part);
            format!("{} cannot be written: {error}", path.display())
        })
    }
}

fn write_and_rename(part: &Path, path: &Path, text: &str) -> io::Result<()> {
    let mut file = File::create(part)?;
    file.write_all(text.as_bytes())?;
    // A full disk may show only here.
    file.sync_all()?;
    fs::rename(part, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(set: &[(&str, &str)]) -> Option<PathBuf> {
        let env = |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
        StateDir::from_env(env).map(|dir| dir.0)
    }

    #[test]
    fn the_folder_is_ours_or_the_users_state_directory() {
        let home = ("HOME", "/home/u");
        assert_eq!(of(&[home]), Some("/home/u/.local/state/tokload".into()));
        assert_eq!(of(&[home, ("XDG_STATE_HOME", "/s")]), Some("/s/tokload".into()));
        assert_eq!(of(&[home, ("XDG_STATE_HOME", "s")]), Some("/home/u/.local/state/tokload".into()));
        assert_eq!(of(&[home, ("XDG_STATE_HOME", "/s"), ("TOKLOAD_STATE_DIR", "t")]), Some("t".into()));
        assert_eq!(of(&[("HOME", ""), ("TOKLOAD_STATE_DIR", "")]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let dir = tempfile::TempDir::new().unwrap();
        let state = StateDir(dir.path().join("a/b"));
        assert_eq!(state.read("x.json"), Ok(None));
        for text in ["one", "two"] {
            assert_eq!(state.replace("x.json", text), Ok(state.path("x.json")));
            assert_eq!(state.read("x.json"), Ok(Some(text.to_owned())));
        }
        assert_eq!(fs::read_dir(dir.path().join("a/b")).unwrap().count(), 1);
    }

    #[test]
    fn what_cannot_be_read_or_written_is_a_sentence() {
        let dir = tempfile::TempDir::new().unwrap();
        fs::write(dir.path().join("file"), "").unwrap();
        let state = StateDir(dir.path().join("file"));
        assert!(state.replace("x.json", "").unwrap_err().contains("x.json cannot be written: "));
        let state = StateDir(dir.path().to_owned());
        fs::create_dir(state.path("x.json")).unwrap();
        assert!(state.read("x.json").unwrap_err().contains("x.json cannot be read: "));
    }
}
