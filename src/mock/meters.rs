//! What `/metrics` tells: the numbers under the names that vLLM gives them, in the text format of Prometheus (0.0.4).
//!
//! Counters run from the start of the server and are never reset, as vLLM's.

use std::time::Duration;

use super::account::{Account, Ending};
use super::ask::Finish;
use crate::model::Gauges;
use crate::wire::exposition::{self, Page};

/// The numbers of one thread; added up when somebody asks.
#[derive(Clone, Debug, Default)]
pub(super) struct Meters {
    pub(super) prompt_tokens: u64,
    pub(super) generation_tokens: u64,
    success: [u64; REASONS.len()],
    ttft: Buckets<22>,
    itl: Buckets<19>,
    tpot: Buckets<19>,
    e2e: Buckets<21>,
}

/// Finish reasons, in vLLM's order.
const REASONS: [&str; 4] = ["stop", "length", "abort", "error"];

/// A histogram of set bounds: how many fell below each, not below the one before.
#[derive(Clone, Debug)]
struct Buckets<const N: usize> {
    counts: [u64; N],
    count: u64,
    sum_s: f64,
}

const TTFT_S: [f64; 22] = [
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0,
    80.0, 160.0, 640.0, 2560.0,
];
const ITL_S: [f64; 19] = [
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
];
const E2E_S: [f64; 21] = [
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0,
    960.0, 1920.0, 7680.0,
];

impl<const N: usize> Default for Buckets<N> {
    fn default() -> Buckets<N> {
        Buckets { counts: [0; N], count: 0, sum_s: 0.0 }
    }
}

impl<const N: usize> Buckets<N> {
    fn record(&mut self, bounds: &[f64; N], time: Duration) {
        let seconds = time.as_secs_f64();
        let place = bounds.partition_point(|bound| *bound < seconds);
        if let Some(count) = self.counts.get_mut(place) {
            *count += 1;
        }
        self.count += 1;
        self.sum_s += seconds;
    }

    fn add(&mut self, other: &Buckets<N>) {
        for (mine, others) in self.counts.iter_mut().zip(other.counts) {
            *mine += others;
        }
        self.count += other.count;
        self.sum_s += other.sum_s;
    }
}

impl Meters {
    /// The first content event of a request is sent.
    pub(super) fn on_first(&mut self, prompt_tokens: u32, ttft: Duration) {
        self.prompt_tokens += u64::from(prompt_tokens);
        self.ttft.record(&TTFT_S, ttft);
    }

    /// A further one.
    pub(super) fn on_gap(&mut self, gap: Duration) {
        self.itl.record(&ITL_S, gap);
    }

    /// A generation request is over.
    pub(super) fn on_end(&mut self, account: &Account, finish: Finish) {
        let reason = match (account.ending, finish) {
            (Ending::Refused, _) => return,
            (Ending::Complete, Finish::Stop | Finish::ToolCalls) => 0,
            (Ending::Complete, Finish::Length) => 1,
            (Ending::BrokenOff | Ending::ClientLeft | Ending::Stopped, _) => 2,
            (Ending::Failed, _) => 3,
        };
        self.success[reason] += 1;
        if account.ending == Ending::Complete {
            let of = |ns: Option<u64>| ns.map(Duration::from_nanos);
            of(account.tpot_ns()).into_iter().for_each(|tpot| self.tpot.record(&ITL_S, tpot));
            of(account.e2e_ns()).into_iter().for_each(|e2e| self.e2e.record(&E2E_S, e2e));
        }
    }

    /// Adds another thread's part.
    pub(super) fn add(&mut self, other: &Meters) {
        self.prompt_tokens += other.prompt_tokens;
        self.generation_tokens += other.generation_tokens;
        for (mine, others) in self.success.iter_mut().zip(other.success) {
            *mine += others;
        }
        self.ttft.add(&other.ttft);
        self.itl.add(&other.itl);
        self.tpot.add(&other.tpot);
        self.e2e.add(&other.e2e);
    }

    /// All of it as text, with what the model says of itself.
    pub(super) fn exposition(&self, model: &str, gauges: &Gauges) -> String {
        let mut page = Page::new("vllm:", &[("engine", "0"), ("model_name", model)]);
        page.one("num_requests_running", "gauge", "Sequences being generated.", gauges.running as f64);
        page.one("num_requests_waiting", "gauge", "Sequences waiting for a place.", gauges.waiting as f64);
        let blocks = gauges.cache_blocks as f64;
        let usage = gauges.cache_blocks_max.map_or(0.0, |most| blocks / most.max(1) as f64);
        // The older name is still what many dashboards ask for.
        for name in ["kv_cache_usage_perc", "gpu_cache_usage_perc"] {
            page.one(name, "gauge", "Share of the KV cache in use, 1 is all of it.", usage);
        }
        let caches = gauges.cache_blocks > 0 || gauges.cache_blocks_max.is_some();
        let queries = if caches { gauges.prompt_tokens as f64 } else { 0.0 };
        page.one(
            "prefix_cache_queries_total",
            "counter",
            "Prompt tokens looked up in the prefix cache.",
            queries,
        );
        page.one(
            "prefix_cache_hits_total",
            "counter",
            "Prompt tokens found in the prefix cache.",
            gauges.cached_tokens as f64,
        );
        page.one("prompt_tokens_total", "counter", "Prompt tokens processed.", self.prompt_tokens as f64);
        let tokens = self.generation_tokens as f64;
        page.one("generation_tokens_total", "counter", "Tokens generated.", tokens);
        page.head("request_success_total", "counter", "Requests that are over, by their end.");
        for (reason, count) in REASONS.iter().zip(self.success) {
            page.line("request_success_total", &[("finished_reason", reason)], count as f64);
        }
        histogram(&mut page, "time_to_first_token_seconds", "Time to first token.", (&TTFT_S, &self.ttft));
        // One set of numbers under the newer and the older name.
        for name in ["inter_token_latency_seconds", "time_per_output_token_seconds"] {
            histogram(&mut page, name, "Time between content events.", (&ITL_S, &self.itl));
        }
        let help = "Time per output token of each request.";
        histogram(&mut page, "request_time_per_output_token_seconds", help, (&ITL_S, &self.tpot));
        histogram(&mut page, "e2e_request_latency_seconds", "Time of whole requests.", (&E2E_S, &self.e2e));
        page.into_text()
    }
}

fn histogram<const N: usize>(page: &mut Page, name: &str, help: &str, of: (&[f64; N], &Buckets<N>)) {
    let (bounds, buckets) = of;
    page.head(name, "histogram", help);
    let values =
        exposition::Buckets { bounds, counts: &buckets.counts, count: buckets.count, sum: buckets.sum_s };
    page.buckets(name, &[], values);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock::generation::Content;
    use crate::time::Stamp;

    #[test]
    fn numbers_stand_under_vllms_names() {
        let gauges = Gauges {
            running: 4,
            cache_blocks: 3,
            cache_blocks_max: Some(6),
            prompt_tokens: 32,
            cached_tokens: 16,
            ..Gauges::default()
        };
        let mut one = Meters { generation_tokens: 5, ..Meters::default() };
        one.on_first(7, Duration::from_millis(20));
        one.on_first(1, Duration::from_secs(10_000));
        one.on_gap(Duration::from_millis(11));
        let mut account = Account { stream: true, ..Account::new(0, None, Stamp::ZERO) };
        for ms in [100, 200, 300] {
            let content = Content { choice: 0, tokens: 1, due: Stamp::ZERO };
            account.on_content(&content, Stamp::from_millis(ms));
        }
        account.ending = Ending::Complete;
        one.on_end(&account, Finish::Length);
        let mut sum = Meters::default();
        sum.add(&one);
        sum.add(&one);
        let text = sum.exposition("a\"b", &gauges);
        let has = |line: &str| assert!(text.lines().any(|there| there == line), "{line}\n{text}");
        let labels = r#"engine="0",model_name="a\"b""#;
        has("# TYPE vllm:num_requests_running gauge");
        has(&format!("vllm:num_requests_running{{{labels}}} 4.0"));
        has(&format!("vllm:kv_cache_usage_perc{{{labels}}} 0.5"));
        has(&format!("vllm:prefix_cache_queries_total{{{labels}}} 32.0"));
        has(&format!("vllm:prefix_cache_hits_total{{{labels}}} 16.0"));
        has(&format!("vllm:prompt_tokens_total{{{labels}}} 16.0"));
        has(&format!("vllm:generation_tokens_total{{{labels}}} 10.0"));
        has(&format!("vllm:request_success_total{{{labels},finished_reason=\"length\"}} 2.0"));
        has(&format!("vllm:request_success_total{{{labels},finished_reason=\"stop\"}} 0.0"));
        has(&format!("vllm:time_to_first_token_seconds_bucket{{{labels},le=\"0.01\"}} 0.0"));
        has(&format!("vllm:time_to_first_token_seconds_bucket{{{labels},le=\"0.02\"}} 2.0"));
        has(&format!("vllm:time_to_first_token_seconds_bucket{{{labels},le=\"2560.0\"}} 2.0"));
        has(&format!("vllm:time_to_first_token_seconds_bucket{{{labels},le=\"+Inf\"}} 4.0"));
        has(&format!("vllm:time_per_output_token_seconds_bucket{{{labels},le=\"0.025\"}} 2.0"));
        has(&format!("vllm:request_time_per_output_token_seconds_bucket{{{labels},le=\"0.1\"}} 2.0"));
        has(&format!("vllm:e2e_request_latency_seconds_sum{{{labels}}} 0.6"));
    }
}
