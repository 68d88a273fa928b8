//! What all threads of a server share: the settings, one counter and the wish to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustls::ServerConfig;

use super::Settings;
use super::ask::Terms;
use super::fixed::Timing;
use super::generation::Dress;
use crate::sys::clock::RunClock;
use crate::time::Stamp;

/// Shared by all threads; touched once per request, never per event, but for a look at the stop flag.
#[derive(Debug)]
pub(super) struct House {
    pub(super) settings: Settings,
    pub(super) clock: RunClock,
    pub(super) tls: Option<Arc<ServerConfig>>,
    model_json: Arc<str>,
    /// Generation requests so far.
    requests: AtomicU64,
    stopping: AtomicBool,
}

impl House {
    pub(super) fn new(settings: Settings, clock: RunClock, tls: Option<Arc<ServerConfig>>) -> House {
        let model_json = serde_json::Value::from(settings.model.as_str()).to_string().into();
        House {
            settings,
            clock,
            tls,
            model_json,
            requests: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
        }
    }

    /// Number of the generation request at hand.
    pub(super) fn next_number(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn model_json(&self) -> Arc<str> {
        Arc::clone(&self.model_json)
    }

    /// The wall clock at `now`, s since 1970.
    pub(super) fn wall_s(&self, now: Stamp) -> u64 {
        self.clock.epoch_wall_ns().saturating_add(now.as_nanos()) / 1_000_000_000
    }

    pub(super) fn terms(&self) -> Terms<'_> {
        Terms {
            model: &self.settings.model,
            max_model_len: self.settings.max_model_len,
            max_tokens: self.settings.max_tokens,
            refused_fields: &self.settings.faults.refused_fields,
        }
    }

    pub(super) fn dress(&self) -> Dress {
        let Settings { role, late_head, usage, tokens_per_chunk, .. } = self.settings;
        Dress { role, late_head, usage, tokens_per_chunk }
    }

    pub(super) fn timing(&self) -> Timing {
        let Settings { ttft, itl, ttft_jitter, itl_jitter, tokens_per_chunk, seed, .. } = self.settings;
        Timing { ttft, itl, ttft_jitter, itl_jitter, tokens_per_chunk, seed }
    }

    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }
}
