//! The counts of a histogram, kept where there are any.

use std::fmt;

use super::Histogram;

/// One count for each bucket, in rows of an eighth of the buckets between two powers of two (the lowest: of those of one
/// value each).
///
/// A row has memory from its first value on, 1 KiB. Durations of one kind lie close together, so that a histogram takes some
/// KiB and not hundreds, and what is counted often lies in the nearest cache; a value far from the others, which any run of
/// minutes has, costs a row in each histogram that it is in, and no more.
#[derive(Clone)]
pub(super) struct Rows {
    rows: [Option<Box<Row>>; ROWS],
    n: u64,
}

type Row = [u64; ROW];

/// Buckets of a row.
const ROW: usize = Histogram::HALF as usize / 8;
const ROWS: usize = Histogram::BUCKETS as usize / ROW;
const _: () = assert!(ROWS * ROW == Histogram::BUCKETS as usize);

impl Rows {
    /// No values.
    pub(super) fn new() -> Rows {
        Rows { rows: [const { None }; ROWS], n: 0 }
    }

    /// Counts `count` values of bucket `code`; counts stop at the largest number instead of wrapping.
    #[inline]
    pub(super) fn add(&mut self, code: u16, count: u64) {
        let (row, column) = (usize::from(code) / ROW, usize::from(code) % ROW);
        let row = match &mut self.rows[row] {
            Some(row) => row,
            empty => empty.insert(new_row()),
        };
        row[column] = row[column].saturating_add(count);
        self.n = self.n.saturating_add(count);
    }

    /// Number of values.
    pub(super) fn n(&self) -> u64 {
        self.n
    }

    /// Adds all counts of `other`.
    pub(super) fn merge(&mut self, other: &Rows) {
        for (ours, theirs) in self.rows.iter_mut().zip(&other.rows) {
            match (ours, theirs) {
                (_, None) => {}
                (ours @ None, Some(theirs)) => *ours = Some(theirs.clone()),
                (Some(ours), Some(theirs)) => {
                    for (ours, theirs) in ours.iter_mut().zip(theirs.iter()) {
                        *ours = ours.saturating_add(*theirs);
                    }
                }
            }
        }
        self.n = self.n.saturating_add(other.n);
    }

    /// Forgets the values, keeps the memory.
    pub(super) fn clear(&mut self) {
        self.rows.iter_mut().flatten().for_each(|row| row.fill(0));
        self.n = 0;
    }

    /// The buckets that hold values, ascending, with their counts.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u16, u64)> {
        let rows = self.rows.iter().enumerate().filter_map(|(place, row)| Some((place, row.as_deref()?)));
        rows.flat_map(|(place, row)| {
            let first = place * ROW;
            let held = row.iter().enumerate().filter(|(_, count)| **count > 0);
            held.map(move |(column, count)| ((first + column) as u16, *count))
        })
    }
}

/// Zeroed where it will lie: an array would be made on the stack first.
#[cold]
fn new_row() -> Box<Row> {
    let row: Result<Box<Row>, _> = vec![0; ROW].into_boxed_slice().try_into();
    row.unwrap_or_else(|_| unreachable!("the vector has the length of a row"))
}

impl PartialEq for Rows {
    /// Equal counts; whether empty rows have memory makes no difference.
    fn eq(&self, other: &Rows) -> bool {
        self.n == other.n && self.iter().eq(other.iter())
    }
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
