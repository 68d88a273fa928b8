//! The parts of a level, added up.

use std::time::Duration;

use super::place::Placed;
use super::{Member, MergeError};
use crate::metrics::{Slices, Tally};
use crate::plan::{Level, Timestamps};
use crate::run::{Example, HostCheck, LevelResult, ShardCheck, Stamps};
use crate::run_file::schema::{LevelBlock, LevelShareBlock, Part, ShareNumbers};
use crate::time::Stamp;

/// The parts that the shares have of one level.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    /// Its setting.
    pub(super) level: Level,
    /// The parts, in the order of the shares.
    pub(super) all: Vec<PartOf<'a>>,
}

/// The part of one share.
#[derive(Debug)]
pub(super) struct PartOf<'a> {
    pub(super) member: &'a Member,
    pub(super) block: &'a LevelBlock,
}

impl<'a> Parts<'a> {
    /// Those of a level, which must be the same in all shares.
    pub(super) fn of(all: &[(&'a Member, &'a LevelBlock)]) -> Result<Parts<'a>, MergeError> {
        let all: Vec<PartOf<'a>> = all.iter().map(|(member, block)| PartOf { member, block }).collect();
        let mut settings = Vec::new();
        for PartOf { member, block } in &all {
            let malformed = |source| MergeError::Malformed { path: member.path.clone(), source };
            settings.push(block.setting.read().map_err(malformed)?);
        }
        let first = &all[0];
        for (other, setting) in all.iter().zip(&settings) {
            if *setting != settings[0] || other.block.ordinal != first.block.ordinal {
                let what = format!(
                    "level {} is '{}' in one and '{}' in the other",
                    first.block.ordinal + 1,
                    first.block.label,
                    other.block.label
                );
                let (first, other) = (first.member.path.clone(), other.member.path.clone());
                return Err(MergeError::Differ { first, other, what });
            }
        }
        Ok(Parts { level: settings.swap_remove(0), all })
    }

    pub(super) fn label(&self) -> String {
        self.all[0].block.load_label()
    }
}

impl PartOf<'_> {
    /// The wall-clock time of its first planned send by the clock of the first share, as far as that is known to be
    /// another one, ns since 1970; `None` in virtual time.
    pub(super) fn wall_t0(&self) -> Option<u64> {
        let own = self.member.epoch?.unix_nanos().saturating_add(self.block.span.t0_ns);
        let clock = self.member.loaded.run.environment.clock_offset;
        Some(own.saturating_add_signed(clock.map_or(0, |clock| clock.correction_ns())))
    }

    /// Its process was killed in it, and left records of what had ended alone: neither counts of its own nor a self-check.
    pub(super) fn is_cut(&self) -> bool {
        self.member.loaded.run.cut.is_some() && self.block.self_check.shards.is_empty()
    }

    /// Its first planned send on its own time line.
    pub(super) fn t0(&self) -> Stamp {
        Stamp::from_nanos(self.block.span.t0_ns)
    }

    /// From its first planned send until it planned no more.
    pub(super) fn sent_for(&self) -> Duration {
        Duration::from_nanos(self.block.span.t1_ns.saturating_sub(self.block.span.t0_ns))
    }

    fn read(&self) -> Result<Part, MergeError> {
        use serde::de::Error as _;
        let malformed = |source| MergeError::Malformed { path: self.member.path.clone(), source };
        let part = self.block.part.as_ref();
        part.ok_or_else(|| malformed(serde_json::Error::custom("a level has no `part`")))?
            .read()
            .map_err(malformed)
    }
}

/// The result of a level, but for its records.
pub(super) fn result(parts: &Parts<'_>, placed: &Placed) -> Result<LevelResult, MergeError> {
    let mut tally = Tally::default();
    tally.begin(placed.span.t0);
    let (mut shards, mut examples) = (Vec::<ShardCheck>::new(), Vec::<Example>::new());
    let mut all_counted = true;
    for (place, of) in parts.all.iter().enumerate() {
        let mut part = of.read()?;
        part.tally.move_to(placed.span.t0);
        part.tally.delay(placed.later[place]);
        tally.merge(&part.tally);
        let share = Some(of.member.share.index);
        let (from, to) = (of.block.span.t0_ns, placed.start_of(place).as_nanos());
        let moved = |check: ShardCheck| ShardCheck {
            share,
            running: check.running.map(|running| running.moved(from, to)),
            ..check
        };
        shards.extend(part.shards.into_iter().map(moved));
        all_counted &= !of.is_cut();
        for known in &of.block.examples {
            if examples.iter().all(|example| example.outcome != known.outcome) {
                examples.push(Example { outcome: known.outcome, message: known.message.clone() });
            }
        }
    }
    if !all_counted {
        // What the others counted is not what was in flight.
        shards.iter_mut().for_each(|shard| shard.running = None);
    }
    let is_part = |of: &PartOf<'_>| !of.block.window.whole_level;
    if placed.window.whole_level && parts.all.iter().any(is_part) {
        // One process was stopped before its window was over: no window is left, and every request counts.
        tally.include_early();
    }
    let (stamps, judged_by_kernel) = stamps(parts);
    if stamps.in_use == Timestamps::User {
        tally.forget_kernel_stamps(judged_by_kernel);
    }
    Ok(LevelResult {
        slices: slices(parts, placed)?,
        ordinal: parts.all[0].block.ordinal,
        level: parts.level.clone(),
        span: placed.span,
        window: placed.window,
        tally,
        records: None,
        shards,
        host: hosts(parts),
        stamps,
        examples,
        replicas: replicas(parts),
        lengthened: None,
        judged: None,
        interrupted: parts.all.iter().any(|part| part.block.interrupted),
    })
}

/// The slices of all parts together, each as much later as its process began; `None` where one of them has none.
fn slices(parts: &Parts<'_>, placed: &Placed) -> Result<Option<Slices>, MergeError> {
    let mut merged: Option<Slices> = None;
    for (place, of) in parts.all.iter().enumerate() {
        let Some(block) = &of.block.slices else { return Ok(None) };
        let malformed = |source| MergeError::Malformed { path: of.member.path.clone(), source };
        let mut slices = block.buckets.read().map_err(malformed)?;
        slices.delay(placed.later[place]);
        match &mut merged {
            None => merged = Some(slices),
            // Other lengths are other plans, which were refused before.
            Some(merged) => {
                let _ = merged.merge(&slices);
            }
        }
    }
    Ok(merged)
}

/// The names of the replicas of all parts, in the order in which they are first found.
pub(super) fn replicas(parts: &Parts<'_>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in parts.all.iter().flat_map(|part| &part.block.replicas) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// Which stamps all parts have, and whether some were judged by the kernel's.
fn stamps(parts: &Parts<'_>) -> (Stamps, bool) {
    let in_use = |part: &&PartOf<'_>| part.block.self_check.timestamps.unwrap_or_default();
    let judged_by_kernel = parts.all.iter().any(|part| in_use(&part) == Timestamps::Kernel);
    let by_user = parts.all.iter().find(|part| in_use(part) == Timestamps::User);
    let of = by_user.unwrap_or(&parts.all[0]);
    let why_not = of.block.self_check.timestamps_why_not.clone();
    (Stamps { in_use: in_use(&of), why_not }, judged_by_kernel)
}

/// What the machines went through: the worst share of each, and the sum of what is counted.
fn hosts(parts: &Parts<'_>) -> Option<HostCheck> {
    let hosts = parts.all.iter().filter_map(|part| part.block.self_check.host.as_ref().map(HostCheck::from));
    hosts.reduce(|a, b| HostCheck {
        busy_share: greater(a.busy_share, b.busy_share),
        steal_share: greater(a.steal_share, b.steal_share),
        throttled_s: greater(a.throttled_s, b.throttled_s),
        major_faults: a.major_faults + b.major_faults,
        minor_faults: a.minor_faults + b.minor_faults,
        preemptions: a.preemptions + b.preemptions,
        swapped_pages: a.swapped_pages.max(b.swapped_pages),
        // Both from the machine that has fewest ports left.
        time_wait: if ports_used(&a) >= ports_used(&b) { a.time_wait } else { b.time_wait },
        ports: if ports_used(&a) >= ports_used(&b) { a.ports } else { b.ports },
        records_lost: a.records_lost + b.records_lost,
    })
}

fn ports_used(host: &HostCheck) -> f64 {
    let used = host.time_wait.zip(host.ports).filter(|(_, ports)| *ports > 0);
    used.map_or(0.0, |(waiting, ports)| waiting as f64 / ports as f64)
}

fn greater(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    [a, b].into_iter().flatten().reduce(f64::max)
}

/// What is kept of each part.
pub(super) fn shares(parts: &Parts<'_>, placed: &Placed) -> Vec<LevelShareBlock> {
    let share = |(place, part): (usize, &PartOf<'_>)| LevelShareBlock {
        share: part.member.share.index,
        of: part.member.share.of,
        planned: part.block.counts.planned,
        began_s: placed.by_clock.get(place).map(|later| later.as_secs_f64()),
        placed_s: placed.later.get(place).map_or(0.0, |later| later.as_secs_f64()),
        interrupted: part.block.interrupted,
        host: part.block.self_check.host.clone(),
        own: Some(ShareNumbers::of(part.block)),
    };
    parts.all.iter().enumerate().map(share).collect()
}

/// What is to be said of how the parts fit.
pub(super) fn notes(parts: &Parts<'_>, placed: &Placed) -> Vec<String> {
    let mut notes = Vec::new();
    let label = parts.label();
    if let Some(apart) = placed.by_clock.iter().max().filter(|_| parts.all.len() > 1) {
        notes.push(format!(
            "{label}: by their clocks the processes began within {:.4} s",
            apart.as_secs_f64()
        ));
    }
    let cut = |part: &PartOf<'_>| part.block.fixed_window().start - part.t0();
    let cuts: Vec<_> = parts.all.iter().map(cut).collect();
    if !placed.window.whole_level
        && let (Some(least), Some(most)) = (cuts.iter().min(), cuts.iter().max())
        && least < most
    {
        notes.push(format!(
            "{label}: the windows of the shares began {:.3} to {:.3} s after their first sends; it is the time common to \
             all, but ITL is pooled from the windows of each",
            least.as_secs_f64(),
            most.as_secs_f64()
        ));
    }
    notes
        .extend(parts.all.iter().filter(|part| part.is_cut()).map(|part| cut_in_words(&label, part, placed)));
    notes
}

/// What became of a level in which a process was killed.
fn cut_in_words(label: &str, part: &PartOf<'_>, placed: &Placed) -> String {
    let share = part.member.share.index;
    let (window, t0) = (placed.window, placed.span.t0);
    if window.whole_level {
        return format!(
            "{label}: share {share} was cut before there was a time in which all shares are known: the whole level counts, \
             and the load of share {share} is missing from a part of it"
        );
    }
    format!(
        "{label}: share {share} was cut: the window is from {:.3} to {:.3} s, until where all that it had planned is known; \
         it left no counts of its own, so that Little's law is not held against them and the self-check is that of the \
         others",
        (window.start - t0).as_secs_f64(),
        (window.end - t0).as_secs_f64()
    )
}
