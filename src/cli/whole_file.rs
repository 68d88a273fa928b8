//! Files that are there whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use super::failure::Failure;

/// Writes the file at `path`, over one that is there, under a temporary name first, so that nobody ever reads half of
/// it. Folders that it lies in are made. A link stays one, and what is no file (`/dev/stdout`, a pipe) is written to as it
/// is: a rename would put a file in its place.
pub(super) fn replace(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), Failure> {
    if is_stream(path) {
        let written = || {
            let mut out = BufWriter::new(File::options().write(true).open(path)?);
            write(&mut out)?;
            out.flush()
        };
        return written().map_err(|error| Failure::unwritable(path, &error));
    }
    let shown = path;
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
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
        Failure::unwritable(shown, &error)
    })
}

/// Whether a device, a pipe or a socket is there.
pub(super) fn is_stream(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir())
}

/// Whether a file at `path` could be written, tried in the folder where it would lie, or in the nearest one above that is
/// there; what is tried out leaves nothing behind.
pub(super) fn try_out(path: &Path) -> Result<(), Failure> {
    let above = path.ancestors().skip(1).map(|folder| match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    });
    let folder = above.into_iter().find(|folder| folder.exists()).unwrap_or(Path::new("/"));
    let part = folder.join(format!(".tokload.{}.part", std::process::id()));
    let tried = if path.is_dir() {
        Err(io::ErrorKind::IsADirectory.into())
    } else if is_stream(path) {
        // To open a pipe would wait for its reader.
        Ok(())
    } else {
        File::create(&part).and_then(|_| fs::remove_file(&part))
    };
    tried.map_err(|error| Failure::unwritable(path, &error))
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

    #[test]
    fn what_is_no_file_is_written_to_and_links_are_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link, pipe) =
            (folder.path().join("a"), folder.path().join("link"), folder.path().join("pipe"));
        fs::write(&file, "1").unwrap();
        std::os::unix::fs::symlink("a", &link).unwrap();
        replace(&link, |out| out.write_all(b"2")).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "2");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
            .unwrap();
        try_out(&pipe).unwrap();
        let reader = pipe.clone();
        let reader = std::thread::spawn(move || fs::read_to_string(reader).unwrap());
        replace(&pipe, |out| out.write_all(b"3")).unwrap();
        assert_eq!(reader.join().unwrap(), "3");
        assert!(is_stream(&pipe) && fs::read_dir(folder.path()).unwrap().count() == 3);
    }

    #[test]
    fn a_place_is_tried_out_and_left_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        try_out(&file).unwrap();
        try_out(&folder.path().join("new/and/newer/a.json")).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        fs::write(&file, "1").unwrap();
        try_out(&file).unwrap();
        for place in [folder.path(), &file.join("b"), Path::new("/proc/none/a")] {
            let failure = try_out(place).unwrap_err();
            assert_eq!(failure.exit, crate::cli::exit::Exit::BadArguments, "{failure}");
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "1");
    }
}
