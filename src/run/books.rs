//! What is added up of a level beside its shards, while it runs: slices of time, and checkpoints.
//!
//! Fed with the blocks of records that shards hand over, on the thread that writes them: the path of an event knows
//! nothing of it. A [`Keeper`] is told what is new from time to time, so that a run that is killed has left it somewhere.

use std::io;
use std::time::Duration;

use crate::metrics::slices::{Added, Slices};
use crate::metrics::{Phase, Record};
use crate::plan::Level;
use crate::stats::Totals;
use crate::time::Stamp;

/// The slices of a checkpoint where nobody asked for any.
pub const USUAL_SLICE: Duration = Duration::from_secs(60);

/// Who keeps what is known so far.
pub trait Keeper: Send {
    /// A level begins, warm-up included; so many records lie before its own.
    ///
    /// # Errors
    /// It cannot be written.
    fn on_level(&mut self, ordinal: usize, level: &Level, records: u64) -> io::Result<()>;

    /// Its measured requests begin, with slices of so many ns.
    ///
    /// # Errors
    /// It cannot be written.
    fn on_start(&mut self, ordinal: usize, start: Stamp, slice_ns: u64) -> io::Result<()>;

    /// What came to finished slices since the last time, and what is in the open one.
    ///
    /// # Errors
    /// It cannot be written.
    fn on_news(&mut self, news: &[Added], open: Option<&Added>) -> io::Result<()>;
}

/// What is wanted of a level beside its records.
#[derive(Default)]
pub struct Keeping {
    /// Length of its slices; `None`: none are wanted.
    pub slice: Option<Duration>,
    /// Latencies are those of the kernel's stamps.
    pub by_kernel: bool,
    /// Who keeps checkpoints.
    pub keeper: Option<Box<dyn Keeper>>,
}

/// The books of a run.
#[derive(Debug)]
pub struct Books {
    keeping: Keeping,
    ordinal: usize,
    slices: Option<Slices>,
    /// Something came since the last checkpoint.
    is_changed: bool,
    /// Why no checkpoint can be kept any more.
    error: Option<String>,
}

impl std::fmt::Debug for Keeping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keeping")
            .field("slice", &self.slice)
            .field("by_kernel", &self.by_kernel)
            .field("keeper", &self.keeper.is_some())
            .finish()
    }
}

impl Books {
    /// Empty books.
    #[must_use]
    pub fn new(keeping: Keeping) -> Books {
        Books { keeping, ordinal: 0, slices: None, is_changed: false, error: None }
    }

    /// A level begins, warm-up included; so many records were written before it.
    pub fn begin_level(&mut self, ordinal: usize, level: &Level, records: u64) {
        (self.ordinal, self.slices) = (ordinal, None);
        self.tell(|keeper| keeper.on_level(ordinal, level, records));
    }

    /// Its first measured request is planned for `start` at the earliest.
    pub fn begin_measuring(&mut self, start: Stamp) {
        let usual = self.keeping.keeper.as_ref().map(|_| USUAL_SLICE);
        let Some(length) = self.keeping.slice.or(usual) else { return };
        let mut slices = Slices::new(start, length);
        if self.keeping.keeper.is_some() {
            slices.tell_news();
        }
        let (ordinal, slice_ns) = (self.ordinal, slices.asked_ns());
        self.slices = Some(slices);
        self.tell(|keeper| keeper.on_start(ordinal, start, slice_ns));
    }

    /// Whether records are looked at at all.
    #[must_use]
    pub fn are_kept(&self) -> bool {
        self.slices.is_some()
    }

    /// Adds a block of encoded records, with the gaps of each: their buckets, and for each request their totals.
    pub fn add(&mut self, records: &[u8], gaps: &[u16], totals: &[Totals]) {
        let Some(slices) = &mut self.slices else { return };
        let mut gaps = gaps;
        for (bytes, totals) in records.chunks_exact(Record::BYTES).zip(totals) {
            let n = usize::try_from(totals.n()).unwrap_or(usize::MAX).min(gaps.len());
            let (own, rest) = gaps.split_at(n);
            gaps = rest;
            let record = bytes.try_into().ok().and_then(Record::decode);
            let Some(record) = record.filter(|record| record.phase == Phase::Measured) else { continue };
            let by_kernel = if self.keeping.by_kernel { record.by_kernel() } else { None };
            slices.add(&by_kernel.unwrap_or(record), own, totals);
            self.is_changed = true;
        }
    }

    /// Tells the keeper what is new, if anything is.
    pub fn checkpoint(&mut self) {
        if !std::mem::take(&mut self.is_changed) {
            return;
        }
        let Some(slices) = &mut self.slices else { return };
        let news = slices.take_news();
        let open = self.keeping.keeper.as_ref().and_then(|_| slices.open());
        self.tell(|keeper| keeper.on_news(&news, open.as_ref()));
    }

    /// The level is over: its slices, where any were asked for.
    pub fn end_level(&mut self) -> Option<Slices> {
        self.checkpoint();
        let mut slices = self.slices.take().filter(|_| self.keeping.slice.is_some())?;
        slices.close();
        slices.take_news();
        Some(slices)
    }

    /// Why no checkpoint can be kept, once.
    pub fn take_error(&mut self) -> Option<String> {
        self.error.take()
    }

    /// After a failure nobody is told any more: half of it would be taken for all.
    fn tell(&mut self, what: impl FnOnce(&mut dyn Keeper) -> io::Result<()>) {
        if let Some(keeper) = &mut self.keeping.keeper
            && let Err(error) = what(keeper.as_mut())
        {
            self.error = Some(error.to_string());
            self.keeping.keeper = None;
        }
    }
}
