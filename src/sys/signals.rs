//! Ctrl-C and SIGTERM as a counter.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How often the user has asked to stop.
#[derive(Clone, Debug, Default)]
pub struct Interrupts(Arc<AtomicUsize>);

impl Interrupts {
    /// Counts SIGINT, SIGTERM and SIGHUP from now on: one count for the process, whoever asks for it.
    ///
    /// # Errors
    /// Somebody else has installed a handler, or the system refused.
    pub fn listen() -> io::Result<Interrupts> {
        static LISTENING: Mutex<Option<Interrupts>> = Mutex::new(None);
        let mut listening = LISTENING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(interrupts) = &*listening {
            return Ok(interrupts.clone());
        }
        let interrupts = Interrupts::default();
        let count = Arc::clone(&interrupts.0);
        ctrlc::set_handler(move || {
            count.fetch_add(1, Ordering::Relaxed);
        })
        .map_err(io::Error::other)?;
        *listening = Some(interrupts.clone());
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
