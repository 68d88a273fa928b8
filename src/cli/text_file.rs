//! The text of a file that an option names, and whether it is one.

use std::fs::File;
use std::io::{self, Read as _};

/// The text of the file at `path`, which is at most 64 MiB long: a device that never ends is not read for ever.
pub(super) fn read(path: &str) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(BYTES_MAX + 1).read_to_string(&mut text)?;
    match text.len() as u64 {
        0..=BYTES_MAX => Ok(text),
        _ => Err(io::Error::other("is longer than 64 MiB")),
    }
}

/// Refuses what is no regular file: such as are read several times, by every shard, must say the same each time, and end.
pub(super) fn regular(path: &str) -> Result<(), String> {
    let error = match std::fs::metadata(path) {
        Ok(about) if about.is_file() => return Ok(()),
        Ok(about) if about.is_dir() => "is a folder".to_owned(),
        Ok(_) => "is a device or a pipe, and a file is read several times".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(format!("{error}; name a readable file"))
}

const BYTES_MAX: u64 = 64 << 20;
