//! Files that are there whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use super::failure::Failure;

/// Writes the file at `path`, over one that is there, under a temporary name first, so that nobody ever reads half of
/// it. Folders that it lies in are made.
pub(super) fn replace(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), Failure> {
    let mut part = path.as_os_str().to_owned();
    part.push(format!(".{}.part", std::process::id()));
    let part = PathBuf::from(part);
    let written = || {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder)?;
        }
        let mut out = BufWriter::new(File::create(&part)?);
        write(&mut out)?;
        out.flush()?;
        fs::rename(&part, path)
    };
    written().map_err(|error| {
        // What is left of it is of no use; that it cannot be removed is the smaller trouble.
        let _ = fs::remove_file(&part);
        Failure::own(format!("{}: {error}", path.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_whole_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new").join("a.json");
        for text in ["1", "2"] {
            replace(&path, |out| out.write_all(text.as_bytes())).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        let failed = replace(&path, |_| Err(io::Error::other("no more room")));
        assert!(failed.is_err_and(|failure| failure.to_string().contains("no more room")));
        assert_eq!(fs::read_to_string(&path).unwrap(), "2", "what was there is kept");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        assert!(replace(&path.join("b"), |_| Ok(())).is_err(), "a file is no folder");
    }
}
