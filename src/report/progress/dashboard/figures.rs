//! What a dashboard shows, as values: series of the last minutes, percentiles now and of the level, failures.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::metrics::live::{Count, Part, Sums, Timing, quantile_of};
use crate::report::format;
use crate::report::progress::Course;
use crate::stats::Quantile;
use crate::stats::sort;
use crate::telemetry::Snapshot;

/// From one point of a series to the next, s.
pub(super) const STEP_S: f64 = 0.5;
/// Points that are kept: as many as the widest terminal shows.
const POINTS_MAX: usize = 512;
/// What is said to be now: so many readings back, 10 s.
const NOW: usize = 20;
/// What a point of a latency is over: 2 s, since in half a second nothing may have ended.
const OF_A_POINT: usize = 4;

/// The figures of a dashboard.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures {
    pub(super) facts: Facts,
    pub(super) title: String,
    /// How often it was asked to stop.
    pub(super) stops: usize,
    /// Lines of servers and their GPUs: their name and what they say; none where they say nothing.
    pub(super) servers: Vec<(String, String)>,
    pub(super) series: Series,
    /// The readings of the last [`NOW`], the newest last.
    readings: VecDeque<(f64, Sums)>,
}

/// What the run tells.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    pub(super) course: Course,
    /// The newest last.
    pub(super) notes: VecDeque<String>,
    /// The sums at the begin of the level.
    pub(super) base: Arc<Sums>,
}

/// One point for each [`STEP_S`], the newest last.
#[derive(Clone, Debug, Default)]
pub(super) struct Series {
    pub(super) in_flight: VecDeque<Option<f64>>,
    pub(super) requests_s: VecDeque<Option<f64>>,
    pub(super) tokens_s: VecDeque<Option<f64>>,
    /// TTFT in ns; `None` where no request with one ended.
    pub(super) ttft_p50: VecDeque<Option<f64>>,
    pub(super) ttft_p99: VecDeque<Option<f64>>,
}

/// One row of percentiles, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Row {
    pub(super) p50: Option<f64>,
    pub(super) p90: Option<f64>,
    pub(super) p99: Option<f64>,
}

/// A latency, of requests of some part.
type Latency = fn(Part) -> Timing;

/// The latencies of the table, by name.
pub(super) const LATENCIES: [(&str, Latency); 4] =
    [("TTFT", Timing::Ttft), ("TPOT", Timing::Tpot), ("ITL", Timing::Itl), ("E2E", Timing::E2e)];

/// What servers and GPUs said last, a line each; a reading that nobody has is left out.
pub(super) fn servers(said: &Snapshot) -> Vec<(String, String)> {
    let percent = |share: f64| format!("{} %", format::percent(share));
    let server = [
        said.running.map(|requests| format!("running {requests:.0}")),
        said.waiting.map(|requests| format!("waiting {requests:.0}")),
        said.kv_cache_use.map(|share| format!("KV cache {}", percent(share))),
    ];
    let gpus = [
        said.gpu_use.map(|share| format!("busy {}", percent(share))),
        said.power_w.map(|watts| format!("{watts:.0} W")),
    ];
    let name = if said.gpus > 1 { format!("{} GPUs", said.gpus) } else { "GPU".to_owned() };
    let line = |name: String, words: &[Option<String>]| {
        let words: Vec<&str> = words.iter().flatten().map(String::as_str).collect();
        (!words.is_empty()).then(|| (name, words.join(" · ")))
    };
    line("server".to_owned(), &server).into_iter().chain(line(name, &gpus)).collect()
}

impl Figures {
    /// None yet, of what `title` names.
    pub(super) fn new(title: String) -> Figures {
        Figures { title, ..Figures::default() }
    }

    /// Takes in a reading at `now_s`.
    pub(super) fn take(&mut self, now_s: f64, sums: Sums) {
        let in_flight = Some(sums.in_flight() as f64);
        let rates = self.readings.back().map(|(before_s, before)| {
            let (part, seconds) = (sums.since(before), (now_s - before_s).max(f64::MIN_POSITIVE));
            let (ok, failed, _) = part.ends();
            ((ok + failed) as f64 / seconds, part.count(Count::Events) as f64 / seconds)
        });
        self.readings.push_back((now_s, sums));
        if self.readings.len() > NOW + 1 {
            self.readings.pop_front();
        }
        let ttft = self.row(Timing::Ttft, &self.last(OF_A_POINT));
        for (series, point) in [
            (&mut self.series.in_flight, in_flight),
            (&mut self.series.requests_s, rates.map(|rates| rates.0)),
            (&mut self.series.tokens_s, rates.map(|rates| rates.1)),
            (&mut self.series.ttft_p50, ttft.p50),
            (&mut self.series.ttft_p99, ttft.p99),
        ] {
            series.push_back(point);
            if series.len() > POINTS_MAX {
                series.pop_front();
            }
        }
    }

    /// What came since the reading so many steps ago.
    fn last(&self, steps: usize) -> Sums {
        let Some((_, newest)) = self.readings.back() else { return Sums::default() };
        let place = self.readings.len().saturating_sub(steps + 1);
        self.readings.get(place).map_or_else(Sums::default, |(_, before)| newest.since(before))
    }

    /// The sums of the level so far.
    pub(super) fn level(&self) -> Sums {
        self.readings.back().map_or_else(Sums::default, |(_, newest)| newest.since(&self.facts.base))
    }

    /// The sums of the last 10 s.
    pub(super) fn now(&self) -> Sums {
        self.last(NOW)
    }

    /// Percentiles of a latency, ramp and window together: while a level runs, who looks wants to see both.
    pub(super) fn row(&self, timing: Latency, sums: &Sums) -> Row {
        let [ramp, window] = Part::ALL.map(|part| sums.times(timing(part)).counts);
        let of =
            |quantile| quantile_of(ramp.iter().zip(window).map(|(ramp, window)| ramp + window), quantile);
        Row { p50: of(Quantile::P50), p90: of(Quantile::P90), p99: of(Quantile::P99) }
    }

    /// Failures of the level by their kind, the most frequent first.
    pub(super) fn failures(&self, level: &Sums) -> Vec<(String, u64)> {
        let mut kinds: Vec<(String, u64)> = Vec::new();
        for (outcome, count) in Part::ALL.into_iter().flat_map(|part| level.outcomes(part)) {
            let label = outcome.label();
            match kinds.iter_mut().find(|(known, _)| *known == label) {
                _ if !outcome.is_failure() => {}
                Some(known) => known.1 += count,
                None => kinds.push((label, count)),
            }
        }
        sort::few_by_key(&mut kinds, |kind| std::cmp::Reverse(kind.1));
        kinds
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::metrics::{Class, Gaps, Kind, Live, Outcome, Record};
    use crate::plan::{Level, Load, Stop};
    use crate::run::{Event, Tick};
    use crate::time::Stamp;

    /// A request that ended, with so many ms to its first token and 5 ms for each of nine further ones.
    fn done(live: &Live, ttft_ms: u64, outcome: Outcome) {
        let shard = live.shard(0).unwrap();
        let mut record = Record::planned(0, Stamp::ZERO);
        record.outcome = outcome;
        let (first, last) = (Stamp::from_millis(ttft_ms), Stamp::from_millis(ttft_ms + 45));
        (record.first, record.last, record.end) = (Some(first), Some(last), last);
        (record.events, record.output_tokens) = (10, Some(10));
        let mut gaps = Gaps::default();
        (0..9).for_each(|_| gaps.record(5_000_000));
        shard.on_done(&record, &gaps, Stamp::ZERO);
        shard.count(Count::Ended, 1);
        shard.count(Count::Events, 10);
        shard.time(Timing::ScheduleDelay, 60_000);
        shard.time(Timing::LoopLag, 120_000);
    }

    /// The figures in the middle of the second of three levels, after 30 s of it: always the same.
    pub(in super::super) fn example() -> Figures {
        let live = Live::new(1);
        let shard = live.shard(0).unwrap();
        let mut figures = Figures { title: "mock · http://127.0.0.1:8000".to_owned(), ..Figures::default() };
        let level = Level {
            load: Load::closed(8),
            stop: Stop { units: None, duration_s: Some(45.0), grace_s: 30.0 },
            ..Level::default()
        };
        figures.facts.course.on_event(&Event::LevelStarted { ordinal: 1, levels: Some(3), level: &level });
        done(&live, 900, Outcome::ok(200));
        figures.facts.base = Arc::new(live.read());
        shard.count(Count::Started, 9);
        for step in 0..60_u32 {
            figures.take(f64::from(step) * STEP_S, live.read());
            let many = 1 + step % 12;
            shard.count(Count::Started, u64::from(many));
            (0..many)
                .for_each(|place| done(&live, 20 + 10 * u64::from((step + place) % 7), Outcome::ok(200)));
            if step % 20 == 19 {
                shard.count(Count::Started, 1);
                done(&live, 20, Outcome::new(Class::Http, Kind::HttpStatus, 429));
            }
        }
        figures.take(30.0, live.read());
        let tick = Tick { elapsed_s: 30.0, in_flight: 8, ok: 390, failed: 3, events: 3930 };
        figures.facts.course.on_event(&Event::Tick(tick));
        figures
    }

    #[test]
    fn rates_are_those_of_the_last_step_and_percentiles_leave_out_earlier_levels() {
        let figures = example();
        let last = |series: &VecDeque<Option<f64>>| *series.back().unwrap();
        // Twelve ended well and one failed within half a second.
        assert_eq!(last(&figures.series.requests_s), Some(26.0));
        assert_eq!(last(&figures.series.tokens_s), Some(260.0));
        assert_eq!(last(&figures.series.in_flight), Some(8.0));
        assert_eq!((figures.series.tokens_s.front(), figures.series.tokens_s.len()), (Some(&None), 61));
        let level = figures.level();
        assert_eq!(level.ends(), (390, 3, 0));
        assert_eq!(figures.failures(&level), [("http_429".to_owned(), 3)]);
        let row = figures.row(Timing::Ttft, &level);
        // 20 to 80 ms in steps of ten, about as many of each.
        assert!((45e6..=50e6).contains(&row.p50.unwrap()), "{row:?}");
        assert!((71e6..=80e6).contains(&row.p99.unwrap()), "{row:?}");
        // None of the 900 ms before the level; they are in no reading of it either.
        assert_eq!(figures.row(Timing::Ttft, &Sums::default()), Row::default());
    }
}
