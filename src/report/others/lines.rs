//! The rows of a level in the definitions of all tools: what each tool calls a number, and where it is found.

use super::discrepancies::{Entry, Line};
use super::{Level, Other, Rule, Spread};
use crate::metrics::metric::Metric;
use crate::report::aiperf::{self, Metric as A};
use crate::report::vllm::{self, Figure};
use crate::run_file::schema::LevelBlock;
use crate::stats::Quantile;

/// A level in all definitions.
pub(super) struct Seen<'a> {
    pub(super) block: &'a LevelBlock,
    pub(super) vllm: &'a vllm::Level,
    pub(super) aiperf: &'a aiperf::Level,
    pub(super) guidellm: &'a Level,
    pub(super) servebench: &'a Level,
    pub(super) mlperf: &'a Level,
}

/// What a row has of a distribution.
#[derive(Clone, Copy)]
enum Part {
    Mean,
    At(Quantile),
}

const PARTS: [Part; 3] = [Part::Mean, Part::At(Quantile::P50), Part::At(Quantile::P99)];

impl Part {
    fn name(self) -> String {
        match self {
            Part::Mean => "mean".to_owned(),
            Part::At(quantile) => format!("p{quantile}"),
        }
    }

    fn of(self, spread: Option<&Spread>, per: f64) -> Entry {
        entry(spread.map(|spread| match self {
            Part::Mean => spread.mean() / per,
            Part::At(quantile) => spread.percentile(quantile) / per,
        }))
    }
}

fn entry(value: Option<f64>) -> Entry {
    value.map_or(Entry::None, Entry::Value)
}

/// A row of latencies: what it is called by each tool, and the factor of its unit to ms.
struct Latency {
    name: &'static str,
    ours: Option<Metric>,
    vllm: Option<Figure>,
    aiperf: Option<A>,
    guidellm: Option<(&'static str, f64)>,
    servebench: Option<&'static str>,
    mlperf: Option<&'static str>,
}

const LATENCIES: [Latency; 5] = [
    Latency {
        name: "TTFT",
        ours: Some(Metric::Ttft),
        vllm: Some(Figure::Ttft),
        aiperf: Some(A::TimeToFirstToken),
        guidellm: Some(("time_to_first_token_ms", 1.0)),
        servebench: Some("ttft_ms"),
        mlperf: Some("first_token_latency_ns"),
    },
    Latency {
        name: "TPOT",
        ours: Some(Metric::Tpot),
        vllm: Some(Figure::Tpot),
        aiperf: Some(A::InterTokenLatency),
        guidellm: Some(("inter_token_latency_ms", 1.0)),
        servebench: Some("tpot_ms"),
        mlperf: Some("time_to_output_token_ns"),
    },
    Latency {
        name: "E2E / n",
        ours: None,
        vllm: None,
        aiperf: None,
        guidellm: Some(("time_per_output_token_ms", 1.0)),
        servebench: None,
        mlperf: None,
    },
    Latency {
        name: "ITL",
        ours: Some(Metric::Itl),
        vllm: Some(Figure::Itl),
        aiperf: Some(A::InterChunkLatency),
        guidellm: None,
        servebench: Some("itl_ms"),
        mlperf: None,
    },
    Latency {
        name: "E2E",
        ours: Some(Metric::E2e),
        vllm: Some(Figure::E2el),
        aiperf: Some(A::RequestLatency),
        guidellm: Some(("request_latency", 1e-3)),
        servebench: Some("e2e_ms"),
        mlperf: Some("latency_ns"),
    },
];

impl Seen<'_> {
    pub(super) fn lines(&self) -> Vec<Line> {
        let latencies = LATENCIES.iter().flat_map(|latency| {
            PARTS.map(|part| Line {
                name: format!("{} {}", latency.name, part.name()),
                unit: "ms",
                values: self.latency(latency, part),
            })
        });
        latencies.chain(self.rates()).chain(self.counts()).collect()
    }

    fn latency(&self, latency: &Latency, part: Part) -> [Entry; 6] {
        let ours = latency.ours.and_then(|metric| self.block.distributions.get(&metric));
        let ours = ours.and_then(|block| match part {
            Part::Mean => block.mean,
            Part::At(quantile) => block.quantile(quantile),
        });
        let spread = |figure: Figure| {
            let found = self.vllm.spreads.iter().find(|(of, _)| *of == figure)?;
            // Without any value vLLM prints zeros.
            (self.vllm.completed > 0).then_some(&found.1)
        };
        let of_vllm = latency.vllm.and_then(spread).and_then(|spread| match part {
            Part::Mean => Some(spread.mean_ms),
            Part::At(Quantile::P50) => Some(spread.median_ms),
            Part::At(quantile) => {
                spread.percentiles.iter().find(|(of, _)| *of == quantile).map(|(_, ms)| *ms)
            }
        });
        let of_aiperf =
            latency.aiperf.and_then(|metric| self.aiperf.figure(metric)).and_then(|figure| match part {
                Part::Mean => figure.stats.avg,
                Part::At(quantile) => figure.stats.percentile(quantile.parts() / 1000),
            });
        let (guidellm, per) = latency.guidellm.unwrap_or(("", 1.0));
        let servebench = match latency.servebench.map(|name| self.servebench.figure(name)) {
            // Its gaps are vLLM's, where times of events were not kept.
            Some(None) if latency.name == "ITL" => entry(of_vllm),
            spread => part.of(spread.flatten(), 1.0),
        };
        [
            entry(ours.map(|ns| ns / 1e6)),
            entry(of_vllm),
            entry(of_aiperf),
            part.of(self.guidellm.figure(guidellm), per),
            servebench,
            part.of(latency.mlperf.and_then(|name| self.mlperf.figure(name)), 1e6),
        ]
    }

    fn rates(&self) -> Vec<Line> {
        let window = self.block.rates.window;
        let vllm = self.vllm;
        let total = |level: &Level, name: &str| entry(level.total(name));
        let of_aiperf = |metric: A| entry(self.aiperf.figure(metric).and_then(|figure| figure.stats.avg));
        let goodput = self.block.goodput.as_ref();
        let line =
            |name: &str, unit: &'static str, values: [Entry; 6]| Line { name: name.to_owned(), unit, values };
        let passes = self
            .mlperf
            .passes
            .map_or(Entry::None, |passes| Entry::Word(if passes { "limits hold" } else { "missed" }));
        let share = |value: Option<f64>| entry(value.map(|share| share * 100.0));
        vec![
            line(
                "duration",
                "s",
                [
                    Entry::Value(window.span_s),
                    Entry::Value(vllm.about.duration_s),
                    of_aiperf(A::BenchmarkDuration),
                    total(self.guidellm, "duration"),
                    total(self.servebench, "duration_s"),
                    total(self.mlperf, "final_query_done_s"),
                ],
            ),
            line(
                "requests",
                "req/s",
                [
                    Entry::Value(window.req_s),
                    Entry::Value(vllm.per_second(vllm.completed)),
                    of_aiperf(A::RequestThroughput),
                    total(self.guidellm, "requests_per_second"),
                    total(self.servebench, "request_throughput"),
                    total(self.mlperf, "completed_samples_per_second"),
                ],
            ),
            line(
                "output",
                "tok/s",
                [
                    Entry::Value(window.out_tok_s),
                    Entry::Value(vllm.per_second(vllm.output_tokens)),
                    of_aiperf(A::OutputTokenThroughput),
                    total(self.guidellm, "output_tokens_per_second"),
                    total(self.servebench, "output_throughput"),
                    total(self.mlperf, "completed_tokens_per_second"),
                ],
            ),
            line(
                "total",
                "tok/s",
                [
                    Entry::Value(window.total_tok_s),
                    Entry::Value(vllm.per_second(vllm.input_tokens + vllm.output_tokens)),
                    of_aiperf(A::TotalTokenThroughput),
                    total(self.guidellm, "tokens_per_second"),
                    total(self.servebench, "total_throughput"),
                    Entry::None,
                ],
            ),
            line(
                "goodput",
                "req/s",
                [
                    entry(goodput.map(|goodput| goodput.good_s)),
                    entry(vllm.good.map(|good| vllm.per_second(good))),
                    of_aiperf(A::Goodput),
                    Entry::None,
                    total(self.servebench, "goodput"),
                    passes,
                ],
            ),
            line(
                "good",
                "%",
                [
                    share(goodput.map(|goodput| goodput.attainment)),
                    Entry::None,
                    share(self.aiperf.figure(A::GoodRequestFraction).and_then(|figure| figure.stats.avg)),
                    Entry::None,
                    share(self.servebench.total("attainment")),
                    Entry::None,
                ],
            ),
        ]
    }

    fn counts(&self) -> Vec<Line> {
        let counts = &self.block.counts;
        let of_aiperf = |metric: A| {
            let avg = self.aiperf.figure(metric).and_then(|figure| figure.stats.avg);
            Entry::Count(avg.unwrap_or(0.0) as u64)
        };
        let line = |name: &str, values: [Entry; 6]| Line { name: name.to_owned(), unit: "", values };
        let word = |rule: Rule| Entry::Word(rule.name());
        vec![
            line(
                "ok",
                [
                    Entry::Count(counts.ok),
                    Entry::Count(self.vllm.completed),
                    of_aiperf(A::RequestCount),
                    Entry::Count(self.guidellm.ok),
                    Entry::Count(self.servebench.ok),
                    Entry::Count(self.mlperf.ok),
                ],
            ),
            line(
                "failed",
                [
                    Entry::Count(counts.failed),
                    Entry::Count(self.vllm.failed),
                    of_aiperf(A::ErrorRequestCount),
                    Entry::Count(self.guidellm.failed),
                    Entry::Count(self.servebench.failed),
                    Entry::Count(self.mlperf.failed),
                ],
            ),
            line(
                "percentiles",
                [
                    word(Rule::NearestRank),
                    word(Rule::Linear),
                    word(Rule::Linear),
                    word(Other::Guidellm.rule()),
                    word(Other::Servebench.rule()),
                    word(Other::Mlperf.rule()),
                ],
            ),
        ]
    }
}
