//! A level from its records: exact.

use crate::metrics::metric::Metric;
use crate::metrics::{Class, Flags, Phase, Record};
use crate::run::Window;
use crate::stats::{self, inflight, sort};
use crate::summary::groups::{self, is_slow};
use crate::summary::rates::{Amounts, level_nanos};
use crate::summary::statistics::{self, Judged, LatencyStatistics, Ordered, Served, is_wanted, steady};
use crate::summary::{
    Bounds, Counts, Distribution, Goodput, InFlight, Input, LevelSummary, Tokens, by_stamps, cache, columns,
    turns,
};

pub(super) fn summarise(input: &Input<'_>, records: &[Record]) -> LevelSummary {
    let Walked { measured, lives, in_flight, has_turns } = Walked::over(records);
    let cut = steady::cut(input, &in_flight);
    let input = &Input { window: cut.window, ..*input };
    let (mut in_window, mut in_level) = (Amounts::default(), Amounts::default());
    let level = Window { whole_level: true, ..input.window };
    let (mut planned, mut last_end) = (Vec::with_capacity(measured.len()), None);
    let mut served = Served::default();
    for record in &measured {
        in_window.add(record, &input.window);
        in_level.add(record, &level);
        served.add(record, &input.window);
        if record.outcome.class != Class::Cancelled {
            last_end = last_end.max(Some(record.end));
        }
        if input.window.contains(record.plan) {
            planned.push((record.plan.as_nanos(), *record));
        }
    }
    let population = in_order_of_plans(planned);
    let (mut counts, mut tokens) = (Counts::default(), Tokens::default());
    let (mut keys, mut known) = (groups::Keys::default(), Known::default());
    // What a slow reader waits for is its own doing, and would pass for the server's.
    let mut ranked: Vec<&Record> = Vec::with_capacity(population.len());
    for record in &population {
        counts.add(record);
        if record.outcome.is_ok() {
            tokens.add(record);
            known.add(record);
        }
        keys.add(record);
        if !is_slow(record) {
            ranked.push(record);
        }
    }
    let mut stamp_pairs = by_stamps::pairs(ok_of(&ranked, known.kernel_stamps), input.timestamps);
    if !stamp_pairs.is_empty() {
        stamp_pairs.extend(by_stamps::pairs_of(input.tally, &[(Metric::Itl, Metric::ItlKernel)]));
    }
    let judged = Judged::of(input, &ranked);
    let (distributions, latencies) = distributions(input, &ranked, counts.ranked_failed(), known.late_firsts);
    let level = statistics::Level {
        input: *input,
        cut,
        measured: &measured,
        has_turns,
        served,
        lives: &lives,
        judged: &judged,
        in_flight: &in_flight,
    };
    LevelSummary {
        window: input.window,
        distributions,
        groups: groups::of(input, &keys.told_apart(), &population, &measured),
        window_rates: in_window.over(input.window.nanos()),
        level_rates: in_level.over(level_nanos(&input.span, last_end)),
        goodput: goodput(input, judged.good(), &counts),
        in_flight: Some(in_flight_of(&in_flight, &input.window)),
        statistics: Some(statistics::of(&level, latencies)),
        cache_split: cache::split(ok_of(&population, known.cached)),
        counts,
        tokens,
        stamp_pairs,
        turns: if has_turns { turns::of(&population, input.from_plan) } else { Vec::new() },
    }
}

/// The requests of a level and their lives. Of hundreds of thousands most of what a walk over them costs is to fetch them, so
/// that lives, which are asked for again and again, are put beside them.
struct Walked<'r> {
    measured: Vec<&'r Record>,
    /// Of each of these, whatever its outcome.
    lives: Vec<inflight::Span>,
    in_flight: stats::InFlight,
    /// Some are later turns of their sessions.
    has_turns: bool,
}

/// What some of the requests that ended well have, so that those are only looked at again for it where there is any.
#[derive(Default)]
struct Known {
    kernel_stamps: bool,
    cached: bool,
    late_firsts: bool,
}

impl Known {
    fn add(&mut self, record: &Record) {
        self.kernel_stamps |= record.kernel_first.is_some();
        self.cached |= record.cached_tokens.is_some();
        self.late_firsts |= record.flags.contains(Flags::FIRST_COALESCED);
    }
}

impl<'r> Walked<'r> {
    fn over(records: &'r [Record]) -> Walked<'r> {
        let (mut measured, mut lives) =
            (Vec::with_capacity(records.len()), Vec::with_capacity(records.len()));
        let mut has_turns = false;
        for record in records.iter().filter(|record| record.phase == Phase::Measured) {
            has_turns |= record.turn > 0;
            measured.push(record);
            lives.push(inflight::Span { start: record.start.as_nanos(), end: record.end.as_nanos() });
        }
        let in_flight = stats::InFlight::of(lives.iter().copied());
        Walked { measured, lives, in_flight, has_turns }
    }
}

/// Those of `records` that ended well, if any of them are `wanted`.
fn ok_of<'r>(records: &'r [&'r Record], wanted: bool) -> impl Iterator<Item = &'r Record> + Clone {
    let wanted = if wanted { records } else { &[] };
    wanted.iter().copied().filter(|record| record.outcome.is_ok())
}

/// The distributions, and how well those are known that statistics are taken of; `some_late` if some first events were read
/// late and together with later ones.
fn distributions(
    input: &Input<'_>,
    population: &[&Record],
    failed: u64,
    some_late: bool,
) -> (Vec<Distribution>, Vec<LatencyStatistics>) {
    let (mut distributions, mut latencies) = (Vec::new(), Vec::new());
    let ok = || population.iter().copied().filter(|record| record.outcome.is_ok());
    let columns = Metric::ALL.chunks(columns::TOGETHER);
    for (metric, mut values) in columns.flat_map(|metrics| columns::of(metrics.iter().copied(), ok())) {
        if !metric.is_per_request() {
            distributions.extend(Distribution::pooled(metric, input.tally));
            continue;
        }
        let in_order = if is_wanted(metric, input.from_plan) { values.clone() } else { Vec::new() };
        sort::values(&mut values);
        let ordered = Ordered::of(&in_order, &values);
        latencies.extend(ordered.map(|ordered| ordered.ranked(metric, &values)));
        let distribution = Distribution::of_sorted(metric, &values, failed);
        distributions.extend(distribution.map(|distribution| {
            match some_late && FROM_FIRST.contains(&metric) {
                true => {
                    Distribution { bounds: first_bounds(metric, population, &distribution), ..distribution }
                }
                false => distribution,
            }
        }));
    }
    (distributions, latencies)
}

/// What rests on the stamp of the first content event.
const FROM_FIRST: [Metric; 6] =
    [Metric::Ttft, Metric::Ttfa, Metric::TtftPlan, Metric::TtfaPlan, Metric::Tpot, Metric::TpotAdj];

/// How far the quantiles in `distribution` may be off where a late client read first events together with later ones;
/// `None` if there are none. An earlier first event makes TTFT shorter and TPOT longer, of whichever request.
fn first_bounds(metric: Metric, population: &[&Record], distribution: &Distribution) -> Option<Bounds> {
    let ok = population.iter().filter(|record| record.outcome.is_ok());
    let mut joined = 0;
    let mut values: Vec<f64> = ok
        .filter_map(|record| {
            let Some(earliest) = record.with_first_at_its_earliest() else { return metric.of(record) };
            let value = metric.of(&earliest);
            joined += u64::from(value.is_some());
            value
        })
        .collect();
    if joined == 0 {
        return None;
    }
    sort::values(&mut values);
    Some(Bounds::between(joined, distribution, &values))
}

/// The lives `[start, end)` of all requests, whatever their outcome. A request that was never taken in hand has none:
/// its start is its end.
fn in_flight_of(lives: &stats::InFlight, window: &Window) -> InFlight {
    let (start, end) = (window.start.as_nanos(), window.end.as_nanos());
    let span = inflight::Span { start, end };
    InFlight {
        mean: lives.mean(span).unwrap_or(0.0),
        max: lives.max(span).max(lives.at(start)),
        at_start: lives.at(start),
        at_end: lives.at(end),
    }
}

/// Requests with their planned sends, ns, in the order of these, those of one moment in that of their places in the plan.
fn in_order_of_plans(mut planned: Vec<(u64, &Record)>) -> Vec<&Record> {
    sort::by_key(&mut planned, |(plan, _)| *plan);
    for of_moment in planned.chunk_by_mut(|a, b| a.0 == b.0).filter(|of_moment| of_moment.len() > 1) {
        of_moment.sort_by_key(|(_, record)| record.index);
    }
    planned.into_iter().map(|(_, record)| record).collect()
}

/// Goodput where so many of the requests that `counts` counts have `kept` every limit.
pub(super) fn goodput(input: &Input<'_>, kept: u64, counts: &Counts) -> Option<Goodput> {
    if input.slo.is_empty() {
        return None;
    }
    let ratio = |over: f64| if over > 0.0 { kept as f64 / over } else { 0.0 };
    Some(Goodput {
        slo: input.slo,
        from_plan: input.from_plan,
        good: kept,
        good_s: ratio(input.window.nanos() as f64 / 1e9),
        attainment: ratio(counts.ranked() as f64),
    })
}
