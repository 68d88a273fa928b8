//! Full blocks of records from the shards to their file, on a thread of their own.
//!
//! A shard hands over a block and forgets it. A disk that is full or gone loses records, never the run: what is lost
//! is counted, and the first error is reported. A disk that is merely slow may be `BEHIND_MAX` bytes behind before it
//! counts as gone, so that memory stays bounded. The same thread keeps the [books](crate::run::books) of the level: slices of
//! time, and once a second a checkpoint, by when the records are in their file as well.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::metrics::{Gaps, Record, Slices};
use crate::plan::Level;
use crate::run::books::{Books, Keeping};
use crate::stats::Totals;
use crate::sys::clock::RunClock;
use crate::time::Stamp;

/// What may wait to be written, in bytes: a disk that is further behind loses records.
const BEHIND_MAX: u64 = 256 << 20;
/// How long what is written may stay in our own buffers.
const FLUSH_EVERY: Duration = Duration::from_millis(250);
/// From one checkpoint to the next, at least.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(1);

/// Where records and event times go; opened by the caller, who owns the files.
pub struct SpoolFiles {
    /// Encoded records.
    pub records: Box<dyn Write + Send>,
    /// For each record in order, the stamps of its content events, u64 ns little endian.
    pub chunks: Option<Box<dyn Write + Send>>,
}

impl std::fmt::Debug for SpoolFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SpoolFiles").field("chunks", &self.chunks.is_some()).finish_non_exhaustive()
    }
}

/// Records and the times of their events, in the same order.
#[derive(Debug, Default)]
pub struct Block {
    /// Encoded records.
    pub records: Vec<u8>,
    /// Stamps of their content events.
    pub chunks: Vec<u8>,
    /// Buckets of the gaps of those that ended well.
    pub gaps: Vec<u16>,
    /// For each record the totals of its gaps, whose number is in them.
    pub gap_totals: Vec<Totals>,
}

impl Block {
    /// Adds a record, the stamps of its content events, and its gaps.
    pub(crate) fn push(&mut self, record: &Record, times: &[u64], gaps: &Gaps) {
        self.records.extend_from_slice(&record.encode());
        for at in times {
            self.chunks.extend_from_slice(&at.to_le_bytes());
        }
        if record.outcome.is_ok() && !gaps.is_empty() {
            self.gaps.extend(gaps.codes());
            self.gap_totals.push(gaps.totals());
        } else {
            self.gap_totals.push(Totals::new());
        }
    }

    /// The block, for which an empty one with as much room is left.
    pub(crate) fn take(&mut self) -> Block {
        let next = Block {
            records: Vec::with_capacity(self.records.len()),
            chunks: Vec::with_capacity(self.chunks.len()),
            gaps: Vec::with_capacity(self.gaps.len()),
            gap_totals: Vec::with_capacity(self.gap_totals.len()),
        };
        std::mem::replace(self, next)
    }

    /// Forgets what is in it, keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.records.clear();
        self.chunks.clear();
        self.gaps.clear();
        self.gap_totals.clear();
    }

    fn bytes(&self) -> u64 {
        let gaps = size_of_val(&*self.gaps) + size_of_val(&*self.gap_totals);
        (self.records.len() + self.chunks.len() + gaps) as u64
    }
}

#[derive(Debug)]
enum Message {
    Block(Block),
    Level(usize, Box<Level>),
    Measuring(Stamp),
    Flush(Sender<Spooled>),
}

/// What has reached the files so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spooled {
    /// Bytes of records written.
    pub record_bytes: u64,
    /// Bytes of records lost.
    pub lost_bytes: u64,
    /// The first error.
    pub error: Option<String>,
    /// Why no checkpoint is kept any more, said once.
    pub checkpoint_error: Option<String>,
    /// The slices of the level that is over, where any were asked for.
    pub slices: Option<Slices>,
}

impl Spooled {
    /// Records lost so far.
    #[must_use]
    pub fn records_lost(&self) -> u64 {
        self.lost_bytes / Record::BYTES as u64
    }

    /// What the user should know of it, one line each; so many records were `lost_before`, which has been said.
    #[must_use]
    pub fn notes(&self, lost_before: u64) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(error) = &self.checkpoint_error {
            notes.push(format!(
                "no checkpoint can be kept any more ({error}): the run goes on, but were it killed, no more could be reported \
                 than what was kept until then"
            ));
        }
        let lost = self.records_lost();
        if let Some(error) = &self.error {
            notes.push(format!(
                "records could not be written ({error}); {lost} are lost, the histograms have every request"
            ));
        } else if lost > lost_before {
            notes.push(format!(
                "the disk is too slow for the records; {lost} are lost, the histograms have every request"
            ));
        }
        notes
    }
}

/// The writing thread.
#[derive(Debug)]
pub struct Spool {
    to: Sender<Message>,
    behind: Arc<Behind>,
    thread: JoinHandle<()>,
    keeps_records: bool,
}

/// A shard's end of the spool.
#[derive(Clone, Debug)]
pub struct SpoolSender {
    to: Sender<Message>,
    behind: Arc<Behind>,
}

/// What the writing thread has yet to do.
#[derive(Debug, Default)]
struct Behind {
    /// Bytes that wait.
    waiting: AtomicU64,
    /// Bytes of records that nobody took because too many waited.
    dropped: AtomicU64,
}

impl Spool {
    /// Starts the writing thread.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(files: SpoolFiles) -> io::Result<Spool> {
        Spool::keeping(files, Keeping::default(), None)
    }

    /// Starts the writing thread, which keeps books as well, with checkpoints by `clock` where there are any.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn keeping(files: SpoolFiles, keeping: Keeping, clock: Option<RunClock>) -> io::Result<Spool> {
        let (to, from) = channel();
        let behind = Arc::new(Behind::default());
        let mut writer = Writer {
            files,
            books: Books::new(keeping),
            spooled: Spooled::default(),
            behind: Arc::clone(&behind),
            clock,
            flushed: Stamp::ZERO,
            checkpointed: Stamp::ZERO,
        };
        let thread =
            std::thread::Builder::new().name("spool".to_owned()).spawn(move || writer.write_all(&from))?;
        Ok(Spool { to, behind, thread, keeps_records: true })
    }

    /// The same where records are looked at and not kept.
    #[must_use]
    pub fn without_records(self) -> Spool {
        Spool { keeps_records: false, ..self }
    }

    /// Whether records are kept.
    #[must_use]
    pub fn keeps_records(&self) -> bool {
        self.keeps_records
    }

    /// An end for one shard.
    #[must_use]
    pub fn sender(&self) -> SpoolSender {
        SpoolSender { to: self.to.clone(), behind: Arc::clone(&self.behind) }
    }

    /// A level begins, warm-up included.
    pub fn begin_level(&self, ordinal: usize, level: &Level) {
        // A thread that is gone is reported by the next flush.
        let _ = self.to.send(Message::Level(ordinal, Box::new(level.clone())));
    }

    /// Its measured requests begin; none of their records was handed over before.
    pub fn begin_measuring(&self, start: Stamp) {
        let _ = self.to.send(Message::Measuring(start));
    }

    /// Waits until everything handed over before is in the files.
    #[must_use]
    pub fn flush(&self) -> Spooled {
        let (to, from) = channel();
        let lost = |what: &str| Spooled { error: Some(what.to_owned()), ..Spooled::default() };
        match self.to.send(Message::Flush(to)) {
            Ok(()) => from.recv().unwrap_or_else(|_| lost("the writing thread has ended")),
            Err(_) => lost("the writing thread has ended"),
        }
    }

    /// Writes what is left and ends the thread.
    pub fn finish(self) -> Spooled {
        let spooled = self.flush();
        drop(self.to);
        // The thread only ends by itself; a panic in it has been reported by `flush`.
        let _ = self.thread.join();
        spooled
    }
}

impl SpoolSender {
    /// Hands a block over when there is room: virtual time can wait for a disk.
    pub(crate) fn send_or_wait(&self, block: Block) {
        while self.behind.waiting.load(Ordering::Relaxed) > BEHIND_MAX / 2 {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.send(block);
    }

    /// Hands a block over.
    pub fn send(&self, block: Block) {
        let bytes = block.bytes();
        if self.behind.waiting.fetch_add(bytes, Ordering::Relaxed) > BEHIND_MAX {
            self.behind.waiting.fetch_sub(bytes, Ordering::Relaxed);
            self.behind.dropped.fetch_add(block.records.len() as u64, Ordering::Relaxed);
            return;
        }
        // A closed channel means that the thread is gone, which the next flush reports.
        let _ = self.to.send(Message::Block(block));
    }
}

/// What the writing thread owns.
struct Writer {
    files: SpoolFiles,
    books: Books,
    spooled: Spooled,
    behind: Arc<Behind>,
    clock: Option<RunClock>,
    flushed: Stamp,
    checkpointed: Stamp,
}

impl Writer {
    fn write_all(&mut self, from: &Receiver<Message>) {
        loop {
            match from.recv_timeout(FLUSH_EVERY) {
                Ok(Message::Block(block)) => {
                    self.behind.waiting.fetch_sub(block.bytes(), Ordering::Relaxed);
                    self.write_block(&block);
                    if self.books.are_kept() {
                        self.books.add(&block.records, &block.gaps, &block.gap_totals);
                    }
                }
                Ok(Message::Level(ordinal, level)) => {
                    let records = self.spooled.record_bytes / Record::BYTES as u64;
                    self.books.begin_level(ordinal, &level, records);
                }
                Ok(Message::Measuring(start)) => self.books.begin_measuring(start),
                Ok(Message::Flush(reply)) => {
                    self.flush();
                    self.spooled.lost_bytes += self.behind.dropped.swap(0, Ordering::Relaxed);
                    let slices = self.books.end_level();
                    let checkpoint_error = self.books.take_error();
                    // The asker may have given up.
                    let _ = reply.send(Spooled { slices, checkpoint_error, ..self.spooled.clone() });
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.keep_up();
        }
    }

    /// Passes on to the system what is written, and keeps a checkpoint, each when it is time.
    fn keep_up(&mut self) {
        let Some(now) = self.clock.as_ref().map(RunClock::now) else { return };
        if now - self.flushed >= FLUSH_EVERY {
            self.flushed = now;
            self.flush();
        }
        if now - self.checkpointed >= CHECKPOINT_EVERY {
            self.checkpointed = now;
            // What the books have must be in the files as well: its records are what is counted.
            self.flush();
            self.books.checkpoint();
        }
    }

    fn flush(&mut self) {
        let files = &mut self.files;
        let flushed = files.records.flush().and_then(|()| files.chunks.as_mut().map_or(Ok(()), Write::flush));
        note(&mut self.spooled, flushed);
    }

    fn write_block(&mut self, block: &Block) {
        let bytes = block.records.len() as u64;
        // After an error nothing more is written: a hole in the middle would be worse than a shorter file.
        if self.spooled.error.is_some() {
            self.spooled.lost_bytes += bytes;
            return;
        }
        let written = self.files.records.write_all(&block.records);
        if written.is_err() {
            self.spooled.lost_bytes += bytes;
        } else {
            self.spooled.record_bytes += bytes;
        }
        note(&mut self.spooled, written);
        if let Some(chunks) = &mut self.files.chunks {
            let written = chunks.write_all(&block.chunks);
            note(&mut self.spooled, written);
        }
    }
}

fn note(spooled: &mut Spooled, result: io::Result<()>) {
    if let Err(error) = result {
        spooled.error.get_or_insert_with(|| error.to_string());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Paper {
        written: Arc<Mutex<Vec<u8>>>,
        room: usize,
    }

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut written = self.written.lock().unwrap();
            if written.len() + bytes.len() > self.room {
                return Err(io::Error::new(io::ErrorKind::StorageFull, "no space left on device"));
            }
            written.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn spool(room: usize) -> (Spool, Paper) {
        let paper = Paper { room, ..Paper::default() };
        let files = SpoolFiles { records: Box::new(paper.clone()), chunks: None };
        (Spool::start(files).unwrap(), paper)
    }

    fn block(byte: u8) -> Block {
        Block { records: vec![byte; 100], ..Block::default() }
    }

    #[test]
    fn a_flush_sees_everything_sent_before() {
        let (spool, paper) = spool(usize::MAX);
        spool.sender().send(block(1));
        assert_eq!(spool.flush().record_bytes, 100);
        spool.sender().send(block(2));
        assert_eq!(spool.finish().record_bytes, 200);
        assert_eq!(paper.written.lock().unwrap().len(), 200);
    }

    #[test]
    fn a_full_disk_loses_records_with_a_count_and_a_reason() {
        let (spool, _) = spool(150);
        for byte in 0..3 {
            spool.sender().send(block(byte));
        }
        let spooled = spool.finish();
        assert_eq!((spooled.record_bytes, spooled.lost_bytes), (100, 200));
        assert!(spooled.error.unwrap().contains("no space left"));
    }
}
