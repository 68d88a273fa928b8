//! A trace of a million lines needs no more memory than one of a thousand.
//!
//! A binary of its own, because it measures the allocations of the whole process. The file is made up while it is read.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::Write as _;
use std::io::{self, BufRead, Read, Seek, SeekFrom};
use std::sync::atomic::{AtomicUsize, Ordering};

use tokload::workload::trace::{Format, Options, Replay, Survey};

#[global_allocator]
static ALLOCATOR: Peak = Peak;

/// The system's allocator, and what was held at most.
struct Peak;

static HELD: AtomicUsize = AtomicUsize::new(0);
static HELD_MAX: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is handed to the system's allocator as it came; only sizes are added up beside it.
unsafe impl GlobalAlloc for Peak {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        HELD_MAX.fetch_max(held, Ordering::Relaxed);
        // SAFETY: the caller's promises are the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the block came from `alloc` above, that is from the system's allocator.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Bytes that `work` held at most, beyond those held before.
fn peak(work: impl FnOnce()) -> usize {
    let before = HELD.load(Ordering::Relaxed);
    HELD_MAX.store(before, Ordering::Relaxed);
    work();
    HELD_MAX.load(Ordering::Relaxed) - before
}

/// A Mooncake file of so many rows, every one 1 ms after the one before it, but for `disorder`.
struct Made {
    rows: u64,
    is_disordered: bool,
    /// Bytes of the file before the row that is shown.
    at: u64,
    row: String,
    shown: usize,
}

/// All rows have the same length, so that a place is a row.
const ROW_BYTES: u64 = 94;

impl Made {
    fn new(rows: u64, is_disordered: bool) -> Made {
        Made { rows, is_disordered, at: 0, row: String::new(), shown: 0 }
    }

    fn show(&mut self, at: u64) {
        let row = at / ROW_BYTES;
        self.at = at - at % ROW_BYTES;
        self.row.clear();
        self.shown = (at % ROW_BYTES) as usize;
        if row < self.rows {
            let time = if self.is_disordered { row ^ 1 } else { row };
            let written = writeln!(
                self.row,
                r#"{{"timestamp": {time:>9}, "input_length": {:>5}, "output_length": 7, "hash_ids": [1, {:>7}]}}"#,
                row % 10_000,
                row % 1000
            );
            written.unwrap();
            assert_eq!(self.row.len() as u64, ROW_BYTES);
        }
    }
}

impl Read for Made {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let taken = available.len().min(into.len());
        into[..taken].copy_from_slice(&available[..taken]);
        self.consume(taken);
        Ok(taken)
    }
}

impl BufRead for Made {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.shown == self.row.len() {
            self.show(self.at + self.shown as u64);
        }
        Ok(&self.row.as_bytes()[self.shown..])
    }

    fn consume(&mut self, bytes: usize) {
        self.shown += bytes;
    }
}

impl Seek for Made {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let to = match to {
            SeekFrom::Start(at) => at,
            SeekFrom::Current(distance) => {
                (self.at + self.shown as u64).checked_add_signed(distance).unwrap()
            }
            SeekFrom::End(_) => unreachable!("nobody asks for the end"),
        };
        self.show(to);
        Ok(to)
    }
}

fn replayed(rows: u64, is_disordered: bool) {
    let mut file = Made::new(rows, is_disordered);
    let options = Options { format: Some(Format::Mooncake), ..Options::default() };
    let survey = Survey::of("made", &mut file, &options).unwrap();
    assert_eq!(survey.is_in_order, !is_disordered);
    let mut count = 0;
    for planned in Replay::new("made", &mut file, &options, &survey).unwrap() {
        assert_eq!(planned.unwrap().offset_ns, Some(count * 1_000_000));
        count += 1;
    }
    assert_eq!(count, rows);
}

#[test]
fn memory_does_not_grow_with_a_trace() {
    // The optimised tests read the million.
    let rows = if cfg!(debug_assertions) { 60_000 } else { 1_000_000 };
    replayed(1000, false);
    let short = peak(|| replayed(1000, false));
    let long = peak(|| replayed(rows, false));
    assert!(long <= short + 1024, "{long} bytes for {rows} rows, {short} for 1000");
    assert!(short < 256 << 10, "{short}");

    let rows = rows / 10;
    // Out of order it takes 16 bytes per row, and twice that while the list grows.
    let disordered = peak(|| replayed(rows, true));
    assert!(disordered <= short + 3 * 16 * rows as usize, "{disordered} bytes for {rows} rows");
}
