//! Where views that are files of other tools write to: the files are the entry's to open.

use std::io::{self, Write};

/// Takes files one after another.
pub trait Sink {
    /// Writes the file `name`, a path relative to wherever the files belong, by `write`.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    fn file(&mut self, name: &str, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>)
    -> io::Result<()>;
}
