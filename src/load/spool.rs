//! Full blocks of records from the shards to their file, on a thread of their own.
//!
//! A shard hands over a block and forgets it. A disk that is full or gone loses records, never the run: what is lost
//! is counted, and the first error is reported.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

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
}

#[derive(Debug)]
enum Message {
    Block(Block),
    Flush(Sender<Spooled>),
}

/// What has reached the files so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spooled {
    /// Bytes of records written.
    pub record_bytes: u64,
    /// Bytes of records lost.
    pub lost_bytes: u64,
    /// The first error.
    pub error: Option<String>,
}

/// The writing thread.
#[derive(Debug)]
pub struct Spool {
    to: Sender<Message>,
    thread: JoinHandle<()>,
}

/// A shard's end of the spool.
#[derive(Clone, Debug)]
pub struct SpoolSender(Sender<Message>);

impl Spool {
    /// Starts the writing thread.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(files: SpoolFiles) -> io::Result<Spool> {
        let (to, from) = channel();
        let thread =
            std::thread::Builder::new().name("spool".to_owned()).spawn(move || write_all(files, &from))?;
        Ok(Spool { to, thread })
    }

    /// An end for one shard.
    #[must_use]
    pub fn sender(&self) -> SpoolSender {
        SpoolSender(self.to.clone())
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
    /// Hands a block over.
    pub fn send(&self, block: Block) {
        // A closed channel means that the thread is gone, which the next flush reports.
        let _ = self.0.send(Message::Block(block));
    }
}

fn write_all(mut files: SpoolFiles, from: &Receiver<Message>) {
    let mut spooled = Spooled::default();
    for message in from {
        match message {
            Message::Block(block) => write_block(&mut files, &mut spooled, &block),
            Message::Flush(reply) => {
                let flushed =
                    files.records.flush().and_then(|()| files.chunks.as_mut().map_or(Ok(()), Write::flush));
                note(&mut spooled, flushed);
                // The asker may have given up.
                let _ = reply.send(spooled.clone());
            }
        }
    }
}

fn write_block(files: &mut SpoolFiles, spooled: &mut Spooled, block: &Block) {
    let bytes = block.records.len() as u64;
    // After an error nothing more is written: a hole in the middle would be worse than a shorter file.
    if spooled.error.is_some() {
        spooled.lost_bytes += bytes;
        return;
    }
    let written = files.records.write_all(&block.records);
    if written.is_err() {
        spooled.lost_bytes += bytes;
    } else {
        spooled.record_bytes += bytes;
    }
    note(spooled, written);
    if let Some(chunks) = &mut files.chunks {
        let written = chunks.write_all(&block.chunks);
        note(spooled, written);
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
        Block { records: vec![byte; 100], chunks: Vec::new() }
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
