//! The text of a file that an option names.

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

const BYTES_MAX: u64 = 64 << 20;
