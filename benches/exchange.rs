//! Nanoseconds per event of the whole pure path: HTTP framing, event stream, JSON, exchange, tally.
//!
//! One iteration is one read, with a typical vLLM chunk for each event; a path of ten per read is shown per read, and
//! the items per second are events. Once in a thousand events a request ends and another begins.

mod rig;

use divan::Bencher;
use divan::counter::ItemsCount;

use rig::{PATHS, Path, Rig};

fn main() {
    divan::main();
}

#[divan::bench(args = PATHS.iter().filter(|path| !path.cut))]
fn read(bencher: Bencher<'_, '_>, path: &Path) {
    let mut rig = Rig::new(path);
    bencher.counter(ItemsCount::new(path.events_per_read)).bench_local(|| rig.read());
}

/// Two reads: the event is put together in the decoder.
#[divan::bench(args = PATHS.iter().filter(|path| path.cut))]
fn two_reads(bencher: Bencher<'_, '_>, path: &Path) {
    let mut rig = Rig::new(path);
    bencher.counter(ItemsCount::new(path.events_per_read)).bench_local(|| {
        rig.read();
        rig.read();
    });
}
