//! A run that ended without being saved, from what it left: its journal, its records, the slice that was being filled.
//!
//! Levels that were over are as they would have been. The one that was cut is made of its records, as one that the user
//! ended, and of the slices for its gaps, which are in no record.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::checkpoint::{Done, Leftover, Line, Open};
use super::layout;
use super::read::{Loaded, ReadError};
use super::records::Records;
use super::schema::{CutBlock, RunFile, SideFile};
use crate::metrics::slices::Slices;
use crate::metrics::{Gaps, Phase, Record, Tally};
use crate::plan::{Level, Plan, Timestamps};
use crate::run::{LevelResult, RecordRange, Span, Stamps, Window};
use crate::stats::{Sparse, Totals};
use crate::summary;
use crate::time::Stamp;
use crate::verdict::Verdict;

/// What the journal says of the level that was cut.
struct Begun {
    ordinal: usize,
    level: Level,
    first_record: u64,
    /// The first planned send and the slices, once its measured requests had begun.
    slices: Option<(Stamp, Slices)>,
}

/// Everything in a journal.
struct Told {
    run: RunFile,
    done: Vec<Done>,
    begun: Option<Begun>,
    /// Lines of news.
    news: u64,
}

/// The run that was to be saved at `path`, from what is left of it; `None` where nothing is.
pub(super) fn open(path: &Path) -> Option<Result<Loaded, ReadError>> {
    let leftover = Leftover::of(path)?;
    Some(of(&leftover))
}

fn of(leftover: &Leftover) -> Result<Loaded, ReadError> {
    let journal = leftover.journal.as_path();
    let text = fs::read(journal).map_err(|e| ReadError::io(journal, e))?;
    let broken = || {
        let what = "it broke off before it said what the run is";
        ReadError::ForeignSideFile { path: journal.to_owned(), what }
    };
    let Told { mut run, done, mut begun, news } = told(&text).ok_or_else(broken)?;
    if let Some(begun) = &mut begun {
        begun.take_open(&leftover.open, news);
    }
    let malformed = |source| ReadError::Malformed { path: journal.to_owned(), source };
    let plan = run.plan.read().map_err(malformed)?;
    let found = records_of(leftover, &done, begun.as_ref());
    let records = found.as_ref().map(|(records, _)| records);
    let mut unrecorded = 0;
    for one in done {
        let range = one.records.map(RecordRange::from);
        let own = records.zip(range).and_then(|(records, range)| of_range(records, range));
        if own.is_none() {
            unrecorded += range.map_or(0, |range| range.count);
        }
        push(&mut run, &one.into_result(), own.as_deref(), &plan);
    }
    let (mut until, mut lost) = (None, begun.as_ref().map_or(0, |begun| begun.lost(&[])));
    let mut uncounted = 0;
    if let (Some(begun), Some(records)) = (begun, records) {
        let count = records.count().saturating_sub(begun.first_record);
        let range = RecordRange { first: begun.first_record, count };
        let own = of_range(records, range).unwrap_or_default();
        (lost, uncounted) = (begun.lost(&own), begun.uncounted(&own));
        if let Some(result) = begun.into_result(&own, range, &plan) {
            until = Some(result.span.t2);
            push(&mut run, &result, Some(&own), &plan);
        }
    }
    run.interrupted = true;
    run.cut = Some(CutBlock {
        process: leftover.process,
        running: leftover.is_running(),
        until_s: until.map(|at| at.as_nanos() as f64 / 1e9),
        others: leftover.others,
        lost,
        uncounted,
        unrecorded,
    });
    match &found {
        Some((records, path)) => {
            run.records = Some(SideFile {
                file: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
                count: records.count(),
                item_bytes: Record::BYTES as u32,
            });
        }
        None => run.records_absent = Some("the file that they were written to is not there".to_owned()),
    }
    run.compare_repeats();
    run.find_knee();
    run.judge();
    if lost > 0 || run.levels.is_empty() {
        // What is left is no fair part of what was measured, or nothing.
        run.verdict = Some(Verdict::Invalid);
    }
    let records = found.map(|(_, path)| path);
    Ok(Loaded::of(run, journal.to_owned(), records))
}

/// The records of the run, and where they are. They have their own name if they were complete and only the run file could not
/// be written; but those of an earlier run may bear it, too.
fn records_of(leftover: &Leftover, done: &[Done], begun: Option<&Begun>) -> Option<(Records, PathBuf)> {
    let open = |path: &PathBuf| Some((Records::open(path).ok()?, path.clone()));
    open(&leftover.records).or_else(|| {
        let ends = done.iter().filter_map(|one| one.records).map(|range| range.first + range.count);
        let needed = ends.chain(begun.map(|begun| begun.first_record + 1)).max()?;
        let is_own = leftover.is_older_than(&leftover.whole_records);
        open(&leftover.whole_records).filter(|(records, _)| is_own && records.count() >= needed)
    })
}

/// What the journal tells, up to the first line that is not whole; `None` where that is the first.
fn told(text: &[u8]) -> Option<Told> {
    let mut lines = text.split(|byte| *byte == b'\n');
    let Ok(Line::Run(run)) = layout::of_line(lines.next()?) else { return None };
    let mut told = Told { run: *run, done: Vec::new(), begun: None, news: 0 };
    for line in lines {
        match layout::of_line(line) {
            Ok(Line::Level { ordinal, level, records }) => {
                told.begun = Some(Begun { ordinal, level: *level, first_record: records, slices: None });
            }
            Ok(Line::Start { ordinal, start_ns, slice_ns }) => {
                if let Some(begun) = told.begun.as_mut().filter(|begun| begun.ordinal == ordinal) {
                    let start = Stamp::from_nanos(start_ns);
                    let slices = Slices::new(start, std::time::Duration::from_nanos(slice_ns));
                    begun.slices = Some((start, slices));
                }
            }
            Ok(Line::News(news)) => {
                told.news += 1;
                if let Some((_, slices)) = told.begun.as_mut().and_then(|begun| begun.slices.as_mut()) {
                    news.into_iter().for_each(|added| slices.add_news(added));
                }
            }
            Ok(Line::Done(done)) => {
                told.begun = None;
                told.done.push(*done);
            }
            Ok(Line::Run(_)) | Err(_) => break,
        }
    }
    Some(told)
}

impl Begun {
    /// How many requests the slices have counted that are not among `records`, where it is more than those of two seconds:
    /// so many may have been on the way to the disk.
    fn lost(&self, records: &[Record]) -> u64 {
        let (counted, told, seconds) = self.counts(records);
        let missing = counted.saturating_sub(told);
        if missing as f64 * seconds > 2.0 * counted as f64 { missing } else { 0 }
    }

    /// How many requests among `records` the slices have not counted, where it is more than those of two seconds: the
    /// checkpoint could not be kept any more.
    fn uncounted(&self, records: &[Record]) -> u64 {
        let (counted, told, _) = self.counts(records);
        let beyond = told.saturating_sub(counted);
        let span = |(first, last): (Stamp, Stamp), one: &Record| (first.min(one.end), last.max(one.end));
        let Some(first) = records.first() else { return 0 };
        let (first, last) = records.iter().fold((first.end, first.end), span);
        let seconds = last.nanos_since(first) as f64 / 1e9;
        if beyond as f64 * seconds > 2.0 * told as f64 { beyond } else { 0 }
    }

    /// Requests that the slices have counted, those that `records` tell of, and the length of the slices, s.
    fn counts(&self, records: &[Record]) -> (u64, u64, f64) {
        let Some((_, slices)) = &self.slices else { return (0, 0, 0.0) };
        let counted: u64 = slices.rows().iter().map(|row| row.ok + row.failed).sum();
        let told =
            |one: &&Record| one.phase == Phase::Measured && (one.outcome.is_ok() || one.outcome.is_failure());
        let told = records.iter().filter(told).count() as u64;
        (counted, told, slices.rows().len() as f64 * slices.width_ns() as f64 / 1e9)
    }

    /// Adds what was in the slice that was being filled, unless the journal has it by now.
    fn take_open(&mut self, path: &Path, news: u64) {
        let read = fs::read(path).and_then(|bytes| {
            layout::of_line::<Open>(&bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
        });
        if let (Ok(open), Some((_, slices))) = (read, &mut self.slices)
            && open.news == news
        {
            slices.add_news(open.added);
        }
    }

    /// What is known of the level; `None` where no measured request had begun.
    fn into_result(self, records: &[Record], range: RecordRange, plan: &Plan) -> Option<LevelResult> {
        let (t0, mut slices) = self.slices?;
        slices.close();
        let by_kernel = plan.client.timestamps == Timestamps::Kernel;
        let mut tally = Tally::new(t0);
        let (mut t1, mut t2, mut stamped) = (t0, t0, false);
        // The slice that was being filled was kept once a second; records may go on behind that.
        let mut told = Slices::new(t0, std::time::Duration::from_nanos(slices.asked_ns()));
        for record in records.iter().filter(|record| record.phase == Phase::Measured) {
            stamped |= record.kernel_first.is_some();
            let judged = record.by_kernel().filter(|_| by_kernel).unwrap_or(*record);
            tally.on_sent(record.start);
            add_tokens(&mut tally, &judged);
            tally.on_done(&judged, &Gaps::default(), &Gaps::default(), t0);
            told.add(&judged, &[], &Totals::default());
            (t1, t2) = (t1.max(record.plan), t2.max(record.end));
        }
        slices.complete(told);
        let mut gaps = Sparse::default();
        slices.rows().iter().for_each(|row| gaps.merge(&row.itl));
        tally.add_gaps(&gaps);
        let t2 = t2.max(t1);
        Some(LevelResult {
            ordinal: self.ordinal,
            level: self.level,
            span: Span { t0, t1, t2 },
            window: Window { start: t0, end: t2, whole_level: true },
            tally,
            slices: plan.slice_s.map(|_| slices),
            records: Some(range),
            replicas: Vec::new(),
            shards: Vec::new(),
            host: None,
            stamps: Stamps {
                in_use: if stamped { plan.client.timestamps } else { Timestamps::User },
                why_not: None,
            },
            examples: Vec::new(),
            lengthened: None,
            judged: None,
            interrupted: true,
        })
    }
}

/// The content events of a request, as evenly spaced as its record knows them, each with a token.
fn add_tokens(tally: &mut Tally, record: &Record) {
    let (Some(first), Some(last)) = (record.first, record.last) else { return };
    let steps = u64::from(record.events.max(2) - 1);
    for event in 0..u64::from(record.events) {
        let after = (u128::from(last.nanos_since(first)) * u128::from(event) / u128::from(steps)) as u64;
        tally.on_content(Stamp::from_nanos(first.as_nanos() + after), 1);
    }
}

impl Done {
    fn into_result(self) -> LevelResult {
        LevelResult {
            ordinal: self.ordinal,
            level: self.level,
            span: self.span.into(),
            window: self.window.into(),
            tally: self.tally,
            slices: self.slices,
            records: self.records.map(RecordRange::from),
            replicas: self.replicas,
            shards: self.shards,
            host: None,
            stamps: Stamps { in_use: self.timestamps, why_not: self.timestamps_why_not },
            examples: Vec::new(),
            lengthened: None,
            judged: None,
            interrupted: self.interrupted,
        }
    }
}

fn of_range(records: &Records, range: RecordRange) -> Option<Vec<Record>> {
    records.read(range).ok()
}

fn push(run: &mut RunFile, result: &LevelResult, records: Option<&[Record]>, plan: &Plan) {
    let input = summary::Input::new(result, records, plan.slo);
    let users = summary::Users::of(&result.level.load, plan.own_share());
    let input = summary::Input { steady_cut: plan.steady_cut, users, ..input };
    run.push(result, &summary::level(&input));
    if let (Some(records), Some(level)) = (records, run.levels.last_mut()) {
        level.look_at(plan, records, &plan.slo);
    }
}
