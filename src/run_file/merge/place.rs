//! Where the parts of a level stand on one time line.
//!
//! Each process has a clock of its own, and clocks of hosts are never mixed. The parts of a level are put together at their
//! first planned sends, which are one instant of the plan: so every planned time is where the plan of one process has it.
//! Wall clocks are only looked at for whether that is true. If they say that the processes began far apart, that is no
//! matter of clocks: the parts then stand where the clocks put them, and the level is what was truly there together.

use std::time::Duration;

use super::level::Parts;
use super::{Member, MergeError, cut};
use crate::run::{Span, Window};
use crate::run_file::schema::apart_max_ns;
use crate::run_file::wall::WallTime;
use crate::time::Stamp;

/// Where the parts of a level stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Align {
    /// Together, unless wall clocks say that they began too far apart for that ([`apart_max_ns`]).
    #[default]
    Auto,
    /// Together, whatever wall clocks say.
    Start,
}

/// Where one level stands.
#[derive(Debug)]
pub(super) struct Placed {
    /// Its marks.
    pub(super) span: Span,
    /// Its window.
    pub(super) window: Window,
    /// For each part how much later than the level it begins.
    pub(super) later: Vec<Duration>,
    /// The same by wall clocks; empty in virtual time.
    pub(super) by_clock: Vec<Duration>,
}

impl Placed {
    /// The first planned send of part `place`.
    pub(super) fn start_of(&self, place: usize) -> Stamp {
        self.span.t0 + self.later.get(place).copied().unwrap_or_default()
    }
}

/// The time line of the merged run.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// The end of the last level.
    end: Stamp,
    /// For each part the end of its last level on its own line.
    ends: Vec<Stamp>,
    /// The first planned send of the first level, and its earliest wall-clock time.
    first: Option<(Stamp, Option<u64>)>,
}

impl Line {
    /// Puts the next level behind those before it, as far away as in the part that took longest in between: so that warm-up
    /// requests have room.
    pub(super) fn place(&mut self, parts: &Parts<'_>, align: Align) -> Result<Placed, MergeError> {
        let spans: Vec<Span> = parts.all.iter().map(|part| part.block.span.into()).collect();
        self.ends.resize(spans.len(), Stamp::ZERO);
        let pauses = spans.iter().zip(&self.ends).map(|(span, end)| span.t0 - *end);
        let t0 = self.end + pauses.max().unwrap_or_default();
        let walls: Option<Vec<u64>> = parts.all.iter().map(|part| part.wall_t0()).collect();
        let walls = walls.unwrap_or_default();
        let earliest = walls.iter().copied().min();
        self.first.get_or_insert((t0, earliest));
        let by_clock: Vec<Duration> =
            walls.iter().map(|wall| Duration::from_nanos(wall - earliest.unwrap_or(0))).collect();
        let apart = by_clock.iter().max().copied().unwrap_or_default();
        let planned = spans.iter().map(|span| span.t1.nanos_since(span.t0)).max().unwrap_or(0);
        let together = align == Align::Start || apart <= Duration::from_nanos(apart_max_ns(planned));
        let later = if together || by_clock.is_empty() {
            vec![Duration::ZERO; spans.len()]
        } else {
            by_clock.clone()
        };
        let ends = |of: fn(&Span) -> Stamp| {
            spans
                .iter()
                .zip(&later)
                .map(|(span, later)| t0 + *later + (of(span) - span.t0))
                .max()
                .unwrap_or(t0)
        };
        let span = Span { t0, t1: ends(|span| span.t1), t2: ends(|span| span.t2) };
        let known = known_until(parts, span, &later)?;
        let window = window(parts, span, &later, known);
        let Some(window) = window else {
            return Err(MergeError::NotTogether { label: parts.label(), apart_s: apart.as_secs_f64() });
        };
        self.end = span.t2;
        self.ends = spans.iter().map(|span| span.t2).collect();
        Ok(Placed { span, window, later, by_clock })
    }

    /// Wall-clock time of the line's epoch: in virtual time that of the first share.
    pub(super) fn created(&self, members: &[Member]) -> WallTime {
        match self.first {
            Some((t0, Some(wall))) => WallTime::from_unix_nanos(wall.saturating_sub(t0.as_nanos())),
            _ => {
                let stored = members.iter().find_map(|member| WallTime::parse(&member.loaded.run.created));
                stored.unwrap_or(WallTime::from_unix_nanos(0))
            }
        }
    }
}

/// Until when all that was planned is known and was sent, where a process was killed in the level, or stopped by its user
/// while others went on: the earliest of them.
fn known_until(parts: &Parts<'_>, span: Span, later: &[Duration]) -> Result<Option<Stamp>, MergeError> {
    let mut until: Option<Stamp> = None;
    let others_went_on = parts.all.iter().any(|part| !part.block.interrupted);
    // Without records there are only the sums of whole levels.
    let has_records = parts.all.iter().all(|part| part.block.records.is_some());
    for (part, later) in parts.all.iter().zip(later) {
        let stopped = || (part.block.interrupted && others_went_on && has_records).then(|| part.sent_for());
        if let Some(known) = cut::known_for(part, &parts.level.load)?.or_else(stopped) {
            let known = span.t0 + *later + known;
            until = Some(until.map_or(known, |until| until.min(known)));
        }
    }
    Ok(until)
}

/// The time in which all parts were measured; the whole level where one of them is a whole level. `None` if there is no
/// such time. Where a process was killed it is the time until which all is known, from the beginning of the level if no
/// window of the others begins before that.
fn window(parts: &Parts<'_>, span: Span, later: &[Duration], known: Option<Stamp>) -> Option<Window> {
    let windows: Vec<Window> = parts.all.iter().map(|part| part.block.fixed_window()).collect();
    let whole = Window { start: span.t0, end: span.t2, whole_level: true };
    let is_cut = |place: usize| parts.all[place].is_cut();
    if known.is_none() && windows.iter().any(|window| window.whole_level) {
        return Some(whole);
    }
    let moved = |of: fn(&Window) -> Stamp| {
        let parts = parts.all.iter().zip(&windows).zip(later).enumerate();
        let limiting = parts.filter(|(place, ((_, window), _))| !window.whole_level && !is_cut(*place));
        limiting.map(move |(_, ((part, window), later))| {
            span.t0 + *later + (of(window) - Stamp::from_nanos(part.block.span.t0_ns))
        })
    };
    let (start, end) = (moved(|window| window.start).max(), moved(|window| window.end).min());
    let Some(known) = known else {
        let (start, end) = (start?, end?);
        return (start < end).then_some(Window { start, end, whole_level: false });
    };
    let end = end.map_or(known, |end| end.min(known));
    let all_there = span.t0 + later.iter().max().copied().unwrap_or_default();
    let start = start.filter(|start| *start < end).unwrap_or(all_there);
    Some(if start < end { Window { start, end, whole_level: false } } else { whole })
}
