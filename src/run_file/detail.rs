//! `--save-detailed`: the records as JSON lines, for readers that do not want a binary file.
//!
//! One object per request, warm-up included, in the order of the record file. The keys are the fields of [`Line`].
//! Times are milliseconds since the first planned send of the request's level (negative in its warm-up), written so
//! that `round(ms * 1e6)` is the stored nanosecond; what did not happen or is not known is `null`.

use std::io::{self, Write};
use std::{error, fmt};

use serde::Serialize;

use super::chunks::Chunks;
use super::read::ReadError;
use crate::metrics::{Phase, Record, TokenSource};
use crate::time::Stamp;

/// The level that records belong to.
#[derive(Clone, Copy, Debug)]
pub struct Level<'a> {
    /// Its place in the run.
    pub ordinal: usize,
    /// Its label.
    pub label: &'a str,
    /// Its first planned send: the zero of all times.
    pub t0: Stamp,
}

/// Why an export ended early.
#[derive(Debug)]
pub enum Error {
    /// The records or chunks could not be read.
    Read(ReadError),
    /// The lines could not be written.
    Write(io::Error),
}

/// Writes one line per record of a level, with the times of its content events if `chunks` is given.
///
/// # Errors
///
/// When a record cannot be read or a line cannot be written.
pub fn write<W: Write>(
    out: &mut W,
    level: Level<'_>,
    records: impl Iterator<Item = Result<Record, ReadError>>,
    mut chunks: Option<&mut Chunks>,
) -> Result<(), Error> {
    let mut times = Vec::new();
    for record in records {
        let record = record.map_err(Error::Read)?;
        if let Some(chunks) = chunks.as_deref_mut() {
            chunks.next(&record, &mut times).map_err(Error::Read)?;
        }
        let events = chunks.is_some().then_some(times.as_slice());
        serde_json::to_writer(&mut *out, &Line::new(level, &record, events))
            .map_err(|e| Error::Write(e.into()))?;
        out.write_all(b"\n").map_err(Error::Write)?;
    }
    Ok(())
}

/// One line of the export. `*_ms` are times since the level's first planned send, or durations where the name is
/// that of a metric (`ttft_ms`, `e2e_ms`, `tpot_ms`, `stall_ms` ...); an event's kernel stamp has `kernel` in its name.
#[derive(Debug, Serialize)]
pub struct Line<'a> {
    /// Place of the level, from 0.
    pub level: usize,
    /// Its load in words.
    pub label: &'a str,
    /// Place of the request in the level's plan, from 0.
    pub index: u64,
    /// Session that it belongs to.
    pub session: u64,
    /// Turn within the session.
    pub turn: u16,
    /// Which of the plan's endpoints served it.
    pub endpoint: u16,
    /// Which replica answered, by its place in the level's `replicas`; null if not known.
    pub replica: Option<u16>,
    /// Which of the plan's models was asked.
    pub model: u16,
    /// `warmup` or `measured`.
    pub phase: &'static str,
    /// Class as printed: `ok`, `http_429`, `timeout_gap`.
    pub outcome: String,
    /// Finer reason, `none` if there is none.
    pub kind: &'static str,
    /// Final HTTP status; null if none was seen.
    pub status: Option<u16>,
    /// Names of its remarks.
    pub remarks: Vec<&'static str>,
    /// Intended send.
    pub plan_ms: f64,
    /// Admitted by the cap.
    pub permit_ms: f64,
    /// Taken in hand.
    pub start_ms: f64,
    /// Connection ready.
    pub conn_ms: Option<f64>,
    /// Last request byte handed to the kernel.
    pub sent_ms: Option<f64>,
    /// First response byte.
    pub byte_ms: Option<f64>,
    /// First content event.
    pub first_ms: Option<f64>,
    /// First content event that is not reasoning.
    pub answer_ms: Option<f64>,
    /// Last content event.
    pub last_ms: Option<f64>,
    /// End, or the moment of failure.
    pub end_ms: f64,
    /// `first_ms` by the kernel's stamp.
    pub kernel_first_ms: Option<f64>,
    /// `answer_ms` by the kernel's stamp.
    pub kernel_answer_ms: Option<f64>,
    /// `last_ms` by the kernel's stamp.
    pub kernel_last_ms: Option<f64>,
    /// Wait for the cap.
    pub cap_wait_ms: f64,
    /// Our own lateness.
    pub schedule_delay_ms: f64,
    /// TTFT.
    pub ttft_ms: Option<f64>,
    /// Time to the first answer token.
    pub ttfa_ms: Option<f64>,
    /// TPOT.
    pub tpot_ms: Option<f64>,
    /// TPOT after the first content event.
    pub tpot_adj_ms: Option<f64>,
    /// E2E.
    pub e2e_ms: Option<f64>,
    /// Start to end.
    pub stream_ms: f64,
    /// Largest gap.
    pub stall_ms: Option<f64>,
    /// Largest gap by the kernel's stamps.
    pub kernel_stall_ms: Option<f64>,
    /// Prompt tokens.
    pub prompt_tokens: Option<u32>,
    /// Where that number is from.
    pub prompt_source: TokenSource,
    /// Output tokens, reasoning included.
    pub output_tokens: Option<u32>,
    /// Where that number is from.
    pub output_source: TokenSource,
    /// Prompt tokens from the prefix cache.
    pub cached_tokens: Option<u32>,
    /// Reasoning tokens as the server counts them.
    pub reasoning_tokens: Option<u32>,
    /// Content events.
    pub events: u32,
    /// Tokens after the first content event.
    pub tokens_after_first: Option<u32>,
    /// Time of each content event; absent without chunks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_ms: Option<Vec<f64>>,
}

impl<'a> Line<'a> {
    /// The line of record `r`, with the times of its content events if they are known.
    #[must_use]
    pub fn new(level: Level<'a>, r: &Record, events: Option<&[Stamp]>) -> Line<'a> {
        let at = |stamp: Stamp| since_ms(stamp, level.t0);
        Line {
            level: level.ordinal,
            label: level.label,
            index: r.index,
            session: r.session,
            turn: r.turn,
            endpoint: r.endpoint,
            replica: r.replica,
            model: r.model,
            phase: match r.phase {
                Phase::Warmup => "warmup",
                Phase::Measured => "measured",
            },
            outcome: r.outcome.label(),
            kind: r.outcome.kind.name(),
            status: Some(r.outcome.status).filter(|status| *status != 0),
            remarks: r.flags.names().collect(),
            plan_ms: at(r.plan),
            permit_ms: at(r.permit),
            start_ms: at(r.start),
            conn_ms: r.conn.map(at),
            sent_ms: r.sent.map(at),
            byte_ms: r.byte.map(at),
            first_ms: r.first.map(at),
            answer_ms: r.answer.map(at),
            last_ms: r.last.map(at),
            end_ms: at(r.end),
            kernel_first_ms: r.kernel_first.map(at),
            kernel_answer_ms: r.kernel_answer.map(at),
            kernel_last_ms: r.kernel_last.map(at),
            cap_wait_ms: ms(r.cap_wait_ns()),
            schedule_delay_ms: ms(r.schedule_delay_ns()),
            ttft_ms: r.ttft_ns().map(ms),
            ttfa_ms: r.ttfa_ns().map(ms),
            tpot_ms: r.tpot_ns().map(|ns| ns / 1e6),
            tpot_adj_ms: r.tpot_adjusted_ns().map(|ns| ns / 1e6),
            e2e_ms: r.e2e_ns().map(ms),
            stream_ms: ms(r.stream_ns()),
            stall_ms: r.stall_ns.get().map(ms),
            kernel_stall_ms: r.kernel_stall_ns.get().map(ms),
            prompt_tokens: r.prompt_tokens,
            prompt_source: r.prompt_source,
            output_tokens: r.output_tokens,
            output_source: r.output_source,
            cached_tokens: r.cached_tokens.get(),
            reasoning_tokens: r.reasoning_tokens.get(),
            events: r.events,
            tokens_after_first: r.tokens_after_first.get(),
            event_ms: events.map(|times| times.iter().copied().map(at).collect()),
        }
    }
}

/// The nearest `f64` of a decimal with six places is told apart from its neighbours up to 2^53 ns, 104 days.
fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

fn since_ms(stamp: Stamp, zero: Stamp) -> f64 {
    if stamp >= zero { ms(stamp.nanos_since(zero)) } else { -ms(zero.nanos_since(stamp)) }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Read(e) => e.fmt(f),
            Error::Write(e) => write!(f, "the detailed records cannot be written: {e}"),
        }
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Error::Read(e) => Some(e),
            Error::Write(e) => Some(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Outcome;

    #[test]
    fn milliseconds_rebuild_every_nanosecond() {
        let zero = Stamp::from_millis(10);
        for ns in (0..70_000_000_000_u64).step_by(999_983).chain(3_599_999_999_000..3_600_000_001_000) {
            let text = since_ms(Stamp::from_nanos(ns), zero).to_string();
            let back = (text.parse::<f64>().unwrap() * 1e6).round() as i64 + 10_000_000;
            assert_eq!(back, ns as i64, "{text}");
            assert!(text.split_once('.').is_none_or(|(_, places)| places.len() <= 6), "{text}");
        }
    }

    #[test]
    fn a_line_counts_from_the_first_planned_send() {
        let mut record = Record::planned(3, Stamp::from_nanos(999_000_001));
        record.phase = Phase::Warmup;
        record.outcome = Outcome::ok(200);
        record.first = Some(Stamp::from_nanos(1_412_000_000));
        let level = Level { ordinal: 1, label: "4 users", t0: Stamp::from_millis(1000) };
        let mut out = Vec::new();
        write(&mut out, level, [Ok(record)].into_iter(), None).unwrap();
        let line: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(line["plan_ms"].to_string(), "-0.999999");
        assert_eq!(line["first_ms"].to_string(), "412.0");
        assert_eq!(line["ttft_ms"].to_string(), "412.999999");
        assert_eq!((line["phase"].as_str(), line["outcome"].as_str()), (Some("warmup"), Some("ok")));
        assert!(line["conn_ms"].is_null());
        assert!(line.get("event_ms").is_none());
    }
}
