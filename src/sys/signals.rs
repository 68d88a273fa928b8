//! Ctrl-C and SIGTERM as a counter.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How often the user has asked to stop.
#[derive(Clone, Debug, Default)]
pub struct Interrupts(Arc<AtomicUsize>);

impl Interrupts {
    /// Counts SIGINT, SIGTERM and SIGHUP from now on. May be called once per process.
    ///
    /// # Errors
    /// A handler is installed already, or the system refused.
    pub fn listen() -> io::Result<Interrupts> {
        let interrupts = Interrupts::default();
        let count = Arc::clone(&interrupts.0);
        ctrlc::set_handler(move || {
            count.fetch_add(1, Ordering::Relaxed);
        })
        .map_err(io::Error::other)?;
        Ok(interrupts)
    }

    /// Counts one more, as a signal would.
    pub fn raise(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of requests to stop so far.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}
