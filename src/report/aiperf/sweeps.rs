//! Concurrency, throughput and tokens in flight over time: aiperf's `effective` and `active` metrics.
//!
//! A request prefills from its start to its first content event and decodes from there to its last. In prefill its
//! prompt tokens pass evenly, in decode its tokens but the first: evenly between each two events where their times are
//! known, else evenly over the whole. Failures count in the concurrency alone.

use super::answer::Answer;
use super::curve::Curve;
use super::metric::Metric;
use super::stats::Stats;

/// The metrics from `begun_ns` to `ended_ns`, in their order.
pub(super) fn of(answers: &[Answer], begun_ns: u64, ended_ns: u64) -> Vec<(Metric, Stats)> {
    let lives: Vec<Life> = answers.iter().map(|answer| Life::of(answer, begun_ns)).collect();
    // As in aiperf, times of events are used where anybody has any.
    let by_events = lives.iter().any(|life| !life.gaps.is_empty());
    let spans = |of: &dyn Fn(&Life) -> Option<(f64, f64)>| {
        let changes = lives.iter().filter_map(of).flat_map(|(from, until)| [(from, 1.0), (until, -1.0)]);
        Curve::of(changes.collect())
    };
    let in_flight = spans(&|life| Some((life.start, life.end)));
    let decoding = spans(&|life| Some((life.first?, life.end)));
    let prefilling = spans(&|life| Some((life.start, life.first?)));
    let prefill_changes = lives.iter().flat_map(Life::prefill).collect::<Vec<_>>();
    let even_changes = lives.iter().flat_map(Life::decode_evenly).collect::<Vec<_>>();
    let both = Curve::of([prefill_changes.clone(), even_changes.clone()].concat());
    let prefill = Curve::of(prefill_changes);
    let decode = match by_events {
        true => Curve::of(lives.iter().flat_map(Life::decode_by_events).collect()),
        false => Curve::of(even_changes),
    };
    let held = Curve::of(lives.iter().flat_map(|life| life.held(by_events)).collect());
    let decode_each = decode.over(&decoding);
    let prefill_each = prefill.over(&prefilling);

    let until = ended_ns.saturating_sub(begun_ns) as f64;
    let over_all = |curve: &Curve, scale| curve.stats(0.0, until, scale);
    let while_on = |curve: &Curve, mask: &Curve| curve.stats_where(mask, 0.0, until, PER_SECOND);
    vec![
        (Metric::EffectiveConcurrency, over_all(&in_flight, 1.0)),
        (Metric::EffectiveDecodeThroughput, over_all(&decode, PER_SECOND)),
        (Metric::EffectivePrefillThroughput, over_all(&prefill, PER_SECOND)),
        (Metric::EffectiveDecodeConcurrency, over_all(&decoding, 1.0)),
        (Metric::EffectivePrefillConcurrency, over_all(&prefilling, 1.0)),
        (Metric::EffectiveTotalThroughput, over_all(&both, PER_SECOND)),
        (Metric::EffectiveDecodeThroughputPerUser, over_all(&decode_each, PER_SECOND)),
        (Metric::EffectivePrefillThroughputPerUser, over_all(&prefill_each, PER_SECOND)),
        (Metric::TokensInFlight, over_all(&held, 1.0)),
        (Metric::ActiveDecodeThroughput, while_on(&decode, &decoding)),
        (Metric::ActivePrefillThroughput, while_on(&prefill, &prefilling)),
        (Metric::ActiveDecodeThroughputPerUser, while_on(&decode_each, &decoding)),
        (Metric::ActivePrefillThroughputPerUser, while_on(&prefill_each, &prefilling)),
        (Metric::ActiveTotalThroughput, while_on(&both, &in_flight)),
    ]
}

const PER_SECOND: f64 = 1e9;

/// A request on the time line of the level, ns since it began.
struct Life<'a> {
    start: f64,
    first: Option<f64>,
    end: f64,
    gaps: &'a [u64],
    input: Option<f64>,
    output: Option<f64>,
}

impl<'a> Life<'a> {
    fn of(answer: &'a Answer, begun_ns: u64) -> Life<'a> {
        // Subtracted as integers: so long after 1970 the steps of a float are 256 ns.
        let at = |ns: u64| (i128::from(ns) - i128::from(begun_ns)) as f64;
        let is_ok = answer.failure.is_none();
        let ttft_ns = answer.ttft_ns.filter(|_| is_ok);
        let tokens = |count: Option<u64>| count.filter(|_| is_ok).map(|count| count as f64);
        Life {
            start: at(answer.start_ns),
            first: ttft_ns.map(|ttft| at(answer.start_ns) + ttft as f64),
            end: at(answer.end_ns),
            gaps: answer.gaps_ns.as_deref().filter(|_| ttft_ns.is_some()).unwrap_or_default(),
            input: tokens(answer.input_tokens),
            output: tokens(answer.output_tokens),
        }
    }

    fn prefill(&self) -> Vec<(f64, f64)> {
        let Some((first, input)) = self.first.zip(self.input) else { return Vec::new() };
        let (rate, took) = (input / (first - self.start), first - self.start);
        if took > 0.0 { vec![(self.start, rate), (first, -rate)] } else { Vec::new() }
    }

    /// First event and tokens, where there are any of each.
    fn decoded(&self) -> Option<(f64, f64)> {
        self.first.zip(self.output.filter(|output| *output >= 1.0))
    }

    fn decode_evenly(&self) -> Vec<(f64, f64)> {
        let Some((first, output)) = self.decoded() else { return Vec::new() };
        let took = self.end - first;
        let rate = (output - 1.0) / took;
        if took > 0.0 { vec![(first, rate), (self.end, -rate)] } else { Vec::new() }
    }

    fn decode_by_events(&self) -> Vec<(f64, f64)> {
        let Some((first, output)) = self.decoded() else { return Vec::new() };
        // Events that came together bring their tokens in no time, for which there is no rate.
        let gaps = self.gaps.iter().filter(|gap| **gap > 0).count();
        let tokens = (output - 1.0) / gaps as f64;
        let mut passed = 0;
        let mut changes = Vec::with_capacity(2 * gaps);
        for gap in self.gaps.iter().copied().filter(|gap| *gap > 0) {
            let rate = tokens / gap as f64;
            changes.push((first + passed as f64, rate));
            passed += gap;
            changes.push((first + passed as f64, -rate));
        }
        changes
    }

    /// Tokens that the server must hold for it: the prompt from the start, those of the answer as they come, all up to
    /// the end.
    fn held(&self, by_events: bool) -> Vec<(f64, f64)> {
        let mut changes = Vec::new();
        let mut held = 0.0;
        let mut add = |at: f64, tokens: f64| {
            held += tokens;
            changes.push((at, tokens));
        };
        if let Some((input, _)) = self.input.zip(self.first.filter(|first| *first > self.start)) {
            add(self.start, input);
        }
        match self.decoded() {
            Some((first, output)) if by_events && !self.gaps.is_empty() => {
                add(first, 1.0);
                let each = (output - 1.0) / self.gaps.len() as f64;
                let mut passed = 0;
                for gap in self.gaps {
                    passed += gap;
                    // What comes with the end would be taken away before it is there.
                    let at = first + passed as f64;
                    add(if at >= self.end { self.end.next_down() } else { at }, each);
                }
            }
            Some((first, output)) if !by_events && self.end > first => add(first, output),
            _ => {}
        }
        if held > 0.0 {
            changes.push((self.end, -held));
        }
        changes
    }
}
