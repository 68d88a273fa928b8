//! Saved runs in the forms of other tools: one file here for each, and its line in [`FORMS`].
//!
//! A form says what it writes; the files themselves are the entry's to open, which hands in a [`Sink`].

mod aiperf;
mod csv;
mod csv_records;
mod hdrlog;
mod hgrm;
mod parquet;
mod rows;
mod slices;
mod vllm;

pub use aiperf::level_files as write_aiperf_files;

use std::fmt;
use std::io::{self, Write};

use super::requests::Unreadable;
use crate::metrics::metric::Metric;
use crate::plan::Slo;
use crate::run_file::schema::{DistributionBlock, LevelBlock};
use crate::run_file::{Loaded, ReadError, detail};

/// A form that a run can be written in.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// Its name in `--export NAME=PATH`.
    pub name: &'static str,
    /// What it is, in a few words.
    pub what: &'static str,
    /// It is files in a folder, not one file.
    pub is_folder: bool,
    /// Whether this build can write it; others need a feature of its name.
    pub is_built_in: bool,
    /// What it needs beside the run file.
    pub needs: Needs,
    /// Writes it.
    pub write: fn(&Source<'_>, &mut dyn Sink) -> Result<(), Error>,
}

/// What a form is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Needs {
    /// The run file alone.
    Nothing,
    /// The slices of time in it, which are there where they were asked for.
    Slices,
    /// The records of requests.
    Records,
    /// These, and better with the times of events.
    Events,
}

/// What is written.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The run.
    pub loaded: &'a Loaded,
    /// Limits of a good request.
    pub slo: Slo,
}

/// Takes the files of a form one after another.
pub trait Sink {
    /// Writes the file `name` of a folder, or the only one if it is empty, by `write`.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    fn file(
        &mut self,
        name: &str,
        write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Error>;
}

/// Why a run was not written.
#[derive(Debug)]
pub enum Error {
    /// The run cannot be read so.
    Unreadable(Unreadable),
    /// A file cannot be written; the sentence names it.
    Unwritable(String),
}

/// The only file of a form that is made of records, by `write`.
///
/// # Errors
///
/// When there are no records, before the file is made; when they cannot be read, or the file cannot be written.
fn records_file(
    source: &Source<'_>,
    sink: &mut dyn Sink,
    write: fn(&Source<'_>, &mut dyn Write) -> Result<(), Error>,
) -> Result<(), Error> {
    source.loaded.records()?;
    let mut unreadable = None;
    sink.file("", &mut |out| match write(source, out) {
        // The sink knows the name of the file.
        Err(Error::Unwritable(sentence)) => Err(io::Error::other(sentence)),
        Err(error) => {
            unreadable = Some(error);
            Ok(())
        }
        Ok(()) => Ok(()),
    })?;
    unreadable.map_or(Ok(()), Err)
}

/// Every form, by name.
pub const FORMS: [Form; 8] = [
    aiperf::FORM,
    csv::FORM,
    csv_records::FORM,
    hdrlog::FORM,
    hgrm::FORM,
    parquet::FORM,
    slices::FORM,
    vllm::FORM,
];

/// The distributions of a level whose histograms were kept.
fn histograms(level: &LevelBlock) -> impl Iterator<Item = (Metric, &DistributionBlock)> {
    let all = level.distributions.iter().map(|(metric, block)| (*metric, block));
    all.filter(|(_, block)| block.histogram.is_some())
}

impl From<Unreadable> for Error {
    fn from(error: Unreadable) -> Error {
        Error::Unreadable(error)
    }
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Error {
        Error::Unreadable(error.into())
    }
}

impl From<detail::Error> for Error {
    fn from(error: detail::Error) -> Error {
        match error {
            detail::Error::Read(error) => error.into(),
            detail::Error::Write(error) => Error::Unwritable(error.to_string()),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Unreadable(error) => error.fmt(f),
            Error::Unwritable(sentence) => f.write_str(sentence),
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_named_once_and_in_order() {
        assert!(FORMS.is_sorted_by(|a, b| a.name < b.name));
    }
}
