//! Throughput: events by the time at which they happened, over a span.

use crate::metrics::Record;
use crate::run::{Span, Window};
use crate::summary::Rates;
use crate::time::Stamp;

/// What a rate divides.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Amounts {
    /// Planned sends.
    pub(super) planned: f64,
    /// Requests that ended well.
    pub(super) ok: f64,
    /// Output tokens of such requests.
    pub(super) output: f64,
    /// Prompt tokens of such requests.
    pub(super) prompt: f64,
}

impl Amounts {
    /// What of `record` falls into the window: its planned send by its plan, its end by its last content event, each
    /// output token by its event, its prompt by its first content event.
    pub(super) fn add(&mut self, record: &Record, window: &Window) {
        if window.contains(record.plan) {
            self.planned += 1.0;
        }
        if !record.outcome.is_ok() {
            return;
        }
        if window.contains(record.last.unwrap_or(record.end)) {
            self.ok += 1.0;
        }
        self.output += output_tokens_in(record, window);
        if window.contains(record.first.unwrap_or(record.end)) {
            self.prompt += f64::from(record.prompt_tokens.unwrap_or(0));
        }
    }

    /// The amounts over a span of `nanos`; no rate for a span of no length.
    pub(super) fn over(self, nanos: u64) -> Rates {
        let span_s = nanos as f64 / 1e9;
        let rate = |amount: f64| if nanos == 0 { 0.0 } else { amount / span_s };
        Rates {
            span_s,
            offered_s: rate(self.planned),
            req_s: rate(self.ok),
            out_tok_s: rate(self.output),
            in_tok_s: rate(self.prompt),
            total_tok_s: rate(self.output + self.prompt),
        }
    }
}

/// The span of the `level_*` rates, ns: from T0 to the end of the last request that was not cancelled, at most T2.
pub(super) fn level_nanos(span: &Span, last_end: Option<Stamp>) -> u64 {
    last_end.map_or(0, |end| end.min(span.t2).nanos_since(span.t0))
}

/// The output tokens of a request whose events fall into the window.
///
/// A record has the first and the last content event and their number; those between are taken as evenly spaced, and
/// the tokens as evenly spread over the events: over those after the first where it is known how many came after it.
/// A body without events has its tokens at its end.
fn output_tokens_in(record: &Record, window: &Window) -> f64 {
    let n = f64::from(record.output_tokens.unwrap_or(0));
    let (Some(first), Some(last)) = (record.first, record.last) else {
        return if window.contains(record.end) { n } else { 0.0 };
    };
    if window.whole_level {
        return n;
    }
    let events = record.events.max(1);
    let before = |at| events_before(at, first, last, events);
    let inside = f64::from(before(window.end) - before(window.start));
    let later = record.tokens_after_first.get().map(f64::from).filter(|later| events > 1 && *later <= n);
    match later {
        None => n * inside / f64::from(events),
        Some(later) => {
            let opens = if window.contains(first) { 1.0 } else { 0.0 };
            opens * (n - later) + (inside - opens) * later / f64::from(events - 1)
        }
    }
}

/// How many of `events` events, evenly spaced from `first` to `last`, come before `at`.
fn events_before(at: Stamp, first: Stamp, last: Stamp, events: u32) -> u32 {
    if at <= first {
        return 0;
    }
    if at > last {
        return events;
    }
    // first < at <= last. Event i is at first + i * (last - first) / (events - 1): count the i with that below at.
    let reached = u128::from(at.nanos_since(first)) * u128::from(events - 1);
    // At most events - 1, because `at` is at most `last`.
    reached.div_ceil(u128::from(last.nanos_since(first))) as u32
}
