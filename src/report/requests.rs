//! The requests of a stored level with the times of their events: what the views of other tools are made of.

use std::fmt;

use crate::metrics::Record;
use crate::plan::Timestamps;
use crate::run_file::schema::LevelBlock;
use crate::run_file::{Chunks, Loaded, ReadError};
use crate::time::Stamp;

/// A request, and when its content events came.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Its record, by the stamps that the level is told in.
    pub record: Record,
    /// Times of its content events; `None` if they were not kept.
    pub events: Option<Vec<Stamp>>,
}

/// Why a run cannot be shown as another tool would have it.
#[derive(Debug)]
pub enum Unreadable {
    /// Records or times of events.
    Read(ReadError),
    /// The plan, or the setting of a level, of a later tokload.
    Setting(serde_json::Error),
}

/// The requests of `records`, all that a level has, its warm-up first and each part in the order of the plan; `chunks`
/// stands at its first record.
///
/// # Errors
///
/// When times of events cannot be read.
pub fn of_level(
    block: &LevelBlock,
    records: &[Record],
    mut chunks: Option<&mut Chunks>,
) -> Result<Vec<Request>, Unreadable> {
    let by_kernel = block.self_check.timestamps == Some(Timestamps::Kernel);
    let mut requests = Vec::with_capacity(records.len());
    for record in records {
        let mut events = None;
        if let Some(chunks) = chunks.as_deref_mut() {
            chunks.next(record, events.insert(Vec::new()))?;
        }
        let record = if by_kernel { record.by_kernel().unwrap_or(*record) } else { *record };
        requests.push(Request { record, events });
    }
    requests.sort_by_key(|request| (request.record.phase as u8, request.record.index));
    Ok(requests)
}

/// What `view` makes of each level of a stored run that has records.
///
/// # Errors
///
/// When there are no records, something cannot be read, or `view` fails.
pub fn by_level<T>(
    loaded: &Loaded,
    mut view: impl FnMut(&LevelBlock, &[Request]) -> Result<T, Unreadable>,
) -> Result<Vec<T>, Unreadable> {
    let records = loaded.records()?;
    let mut chunks = loaded.chunks()?;
    let mut levels = Vec::new();
    for block in &loaded.run.levels {
        let Some(range) = block.records else { continue };
        let records = records.read(range.into())?;
        levels.push(view(block, &of_level(block, &records, chunks.as_mut())?)?);
    }
    Ok(levels)
}

impl From<ReadError> for Unreadable {
    fn from(error: ReadError) -> Unreadable {
        Unreadable::Read(error)
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unreadable::Read(error) => error.fmt(f),
            Unreadable::Setting(error) => {
                write!(f, "the plan or the setting of a level cannot be read: {error}")
            }
        }
    }
}

impl std::error::Error for Unreadable {}
