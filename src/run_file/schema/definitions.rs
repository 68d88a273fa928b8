//! What each number of a run file means, in words, so that a file explains itself when its program is long gone.
//!
//! The formulas themselves are in `metrics` and `summary`; this is their description.

use serde::{Deserialize, Serialize};

/// The meaning of one number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// Its key in the file.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Its formula in words.
    pub formula: String,
}

/// The definitions of all numbers of a level.
pub(super) fn all() -> Vec<Definition> {
    let owned = |&(name, unit, formula): &(&str, &str, &str)| Definition {
        name: name.to_owned(),
        unit: unit.to_owned(),
        formula: formula.to_owned(),
    };
    DISTRIBUTIONS.iter().chain(LEVEL).map(owned).collect()
}

/// Name, unit, formula of the metrics with a distribution.
const DISTRIBUTIONS: &[(&str, &str, &str)] = &[
    ("cap_wait", "ns", "from the planned send until the concurrency cap admits the request"),
    (
        "schedule_delay",
        "ns",
        "start of the request minus the later of its planned send and its admission: our own lateness",
    ),
    ("connect", "ns", "from the start until the connection is ready, TLS included; 0 on a reused one"),
    ("ttfb", "ns", "from the start until the first byte of the response"),
    (
        "ttft",
        "ns",
        "from the start until the first content event: the first streamed event with non-empty text, reasoning, refusal or tool-call fragment; role-only, empty, finish and usage events are none",
    ),
    ("ttft_kernel", "ns", "ttft by the kernel's receive stamp of the same read"),
    ("ttfa", "ns", "from the start until the first content event that is not reasoning"),
    (
        "e2e",
        "ns",
        "from the start until the last content event; for a body that is not streamed until its end",
    ),
    ("stream", "ns", "from the start until the end of the response, with finish, usage and [DONE]"),
    (
        "tpot",
        "ns",
        "time between the first and the last content event, divided by output tokens minus 1; undefined for one token, one content event or several choices",
    ),
    (
        "tpot_adj",
        "ns",
        "time between the first and the last content event, divided by the tokens after the first content event, where the server counts tokens on each event",
    ),
    (
        "itl",
        "ns",
        "gaps between consecutive content events of a choice, pooled over all requests; events of one read share a stamp",
    ),
    ("itl_kernel", "ns", "itl by the kernel's receive stamps"),
    ("itl_token", "ns", "gap before an event of k tokens divided by k, counted k times, where k is known"),
    ("stall", "ns", "largest gap between content events of a request"),
    ("user_speed", "tok/s", "1 / tpot: the decode speed that one user saw"),
    ("ttft_plan", "ns", "ttft measured from the planned send"),
    ("ttfa_plan", "ns", "ttfa measured from the planned send"),
    ("e2e_plan", "ns", "e2e measured from the planned send"),
    ("stream_plan", "ns", "stream measured from the planned send"),
];

/// Name, unit, formula of the other numbers of a level.
const LEVEL: &[(&str, &str, &str)] = &[
    (
        "counts",
        "requests",
        "requests whose planned send lies in the window, by how they ended; failed holds all but ok and cancelled",
    ),
    (
        "quantiles",
        "as the metric",
        "nearest rank max(1, ceil(n * p)) over the ok requests planned in the window; exact values where records are kept, else the highest equivalent value of the histogram bucket (at most 0.1 % above, and never above max)",
    ),
    (
        "with_failures",
        "as the metric",
        "the same over all requests planned in the window but the cancelled, every failed one being infinitely slow: null where the rank falls on a failed one",
    ),
    ("std", "as the metric", "population standard deviation"),
    ("offered_s", "requests/s", "planned sends in the span, divided by its length"),
    ("req_s", "requests/s", "ok requests whose last content event lies in the span, divided by its length"),
    (
        "out_tok_s",
        "tokens/s",
        "output tokens by the time of their content events in the span, divided by its length",
    ),
    (
        "in_tok_s",
        "tokens/s",
        "prompt tokens, counted at the first content event, divided by the length of the span",
    ),
    ("total_tok_s", "tokens/s", "out_tok_s plus in_tok_s"),
    ("rates.window", "per second", "the span is the measurement window"),
    (
        "rates.level",
        "per second",
        "the span is the whole level, from the first planned send to the end of the last request that was not cancelled",
    ),
    (
        "goodput.good_s",
        "requests/s",
        "ok requests that keep every SLO (<=; an undefined tpot keeps it), divided by the length of the window",
    ),
    (
        "goodput.attainment",
        "share",
        "good requests divided by all requests planned in the window but the cancelled",
    ),
    (
        "goodput.from_plan",
        "flag",
        "true: ttft, ttfa and e2e are judged from the planned send (open loop); false: from the start (closed loop)",
    ),
    ("in_flight", "requests", "requests between their start and their end, time-weighted over the window"),
    (
        "statistics",
        "as the number",
        "every interval holds with 95 %; values stand in the order of their planned sends, and design_effect is the largest of: 10 batches' size times the variance of their means over q (1 - q), and 1 + 2 times the sum of the autocorrelations (Geyer's monotone sequence) of the zeros and ones and of the value behind them; n_eff = n / design_effect",
    ),
    (
        "statistics.attainment",
        "share",
        "the ones are good requests, the value behind each is the largest of its values over their limits; the interval is the exact binomial one of n_eff together with that of 10 batch means",
    ),
    (
        "statistics.latencies",
        "ns",
        "the ones are values over p90; low and high are the values at the ranks that bound the quantile of n_eff independent values, null where there is none; supported: n_eff is at least needed, below which no upper rank exists; conservative: the estimate of LoadGen's early stopping (99 %, one-sided) for n_eff values; mean by 10 batch means with Student's t",
    ),
    (
        "statistics.throughput",
        "per second",
        "10 batch means, with Student's t, of 20 equal slices of the window",
    ),
    (
        "statistics.steady.trend",
        "requests",
        "20 equal slices of mean requests under way, from their start (from their planned send where a cap held some back), over the window up to the last planned send, of a whole level without its first 2 median E2E; growing: Mann-Kendall z above 2.33 and last quarter above 1.5 times the first",
    ),
    ("statistics.steady.saturated", "flag", "completed / planned below 0.95, open loops with a window only"),
    (
        "statistics.little",
        "requests, 1/s, s",
        "over the window as the engine had it, every request counting with its life from start to end: in_flight L from the overlaps, ended_s lambda, life_s W; broken where |lambda W / L - 1| exceeds (in flight at both edges) times the longest life over L T, or the count kept while the level ran differs from L by more than 1e-6",
    ),
    (
        "statistics.little.turnaround_s",
        "s",
        "users / lambda - W - think time: what the client needs between an answer and the next request",
    ),
    (
        "statistics.whole_level",
        "requests, ns",
        "counts and latencies of all requests of the level, those of ramp and drain included, where the window is a part of it",
    ),
    (
        "tokens.sources",
        "requests",
        "requests whose output tokens are known from usage, from a tokenizer, from the number of content events, not at all: in this order",
    ),
    (
        "cache_split",
        "ns, tokens",
        "ok requests in two groups by the share of their prompt tokens that the server says it had cached: the cut leaves the least variance of that share within the groups; absent unless that is below a fifth of the whole, the groups' means are 0.1 apart and each has 10 requests and a twentieth of all; ttft by nearest rank",
    ),
    (
        "reuse",
        "tokens",
        "of the prompts of the ok requests planned in the window, words being tokens: found_tokens are those that a cache of any size finds that holds all prompts of the level with a lower index; of a trace whole hashed blocks only",
    ),
    (
        "bounds",
        "as the metric",
        "k gaps between events of one read that the client was late for are known in their sum s only: no quantile is below that with s/k, 0, ... in their place, nor above that with s, s/2, ..., s/k; a first event that a late client read with a later one came after the request was sent, and after an earlier read of the head: ttft, ttfa and tpot lie between that and the stamp of the read",
    ),
    (
        "self_check.client_error",
        "ns",
        "by how much the client may have falsified a quantile: with both stamps |by user stamps - by kernel stamps| of the same requests plus stamp_error_ns, or the distance to the farther of the bounds where that is more; by kernel stamps stamp_error_ns; by user stamps alone the p99 of loop_lag plus that of schedule_delay, estimated",
    ),
    (
        "self_check.stamp_error_ns",
        "ns",
        "largest change of the wall clock against the run's clock between two looks 10 ms apart, plus half the duration of a look",
    ),
    (
        "self_check.receive_lag",
        "ns",
        "time from the kernel's stamp of the last byte of a read until the read has returned",
    ),
    (
        "self_check.loop_lag",
        "ns",
        "how late a shard saw a tick of 10 ms; ticks that passed unseen count each with its own lag",
    ),
    (
        "self_check.rtt",
        "ns",
        "the kernel's smoothed round-trip time of the connection, at the end of a request, at most ten times a second of each",
    ),
    ("self_check.cpu_share", "share", "CPU time of a shard's thread divided by the length of the level"),
    (
        "self_check.coalesced_share",
        "share",
        "content events that shared a read with an earlier one, divided by all content events",
    ),
    (
        "self_check.joined",
        "events",
        "coalesced events whose read the client was late for: it had not looked for more than 1 ms, or the last byte had waited so long; other coalesced events were sent together",
    ),
    (
        "findings",
        "list",
        "what makes the numbers less than they seem: the rule, its grade (info, warn, invalid), evidence and a remedy; those of the plan stand beside the levels",
    ),
    (
        "verdict",
        "word",
        "invalid where a finding is, degraded where one is a warning, else valid; the run's is that of its plan and levels together",
    ),
    (
        "lengthened",
        "as the figure",
        "the figure of plan.until over all requests of the level and its 95 % interval, by which the level was lengthened while it ran; an interval that a level was lengthened for holds a little less than it says",
    ),
    (
        "repeats",
        "as the figure",
        "mean of the runs of a load, each with requests of its own, and its interval: mean ± t(n - 1) * sd / sqrt(n), sd with n - 1",
    ),
    (
        "knee",
        "users, requests/s or times",
        "the lowest load of a sweep whose throughput the higher ones, up to the best of them, exceed by no more than 5 % on average, the highest load being at least 1.25 times it; a knee of the server where mean E2E of the highest load is at least 1.1 times that of the knee",
    ),
    ("series", "per bin", "the level over time, a bin's length doubling when 1800 bins are full"),
    (
        "slices",
        "per slice",
        "requests by the slice in which they ended, with all that was measured of them, a slice's length doubling when there are 1440; quantiles are the upper ends of histogram buckets",
    ),
    (
        "slices.drift",
        "per hour",
        "over the slices that lie wholly between the window's start (of a whole level, 2 median E2E) and the last planned send: median of the slopes between all pairs (Theil-Sen), its interval by Kendall's rank statistic with the variance widened by the correlations of the ranks of what is left (Hamed and Rao), the figures sharing 5 %; drifts: the statistic is beyond what that allows and the change over the slices at least 5 % of the median (failed_share: 0.01)",
    ),
    (
        "stress.recovery",
        "s",
        "from the end of the overload to the planned send of the first request that ended well with TTFT and E2E, both from the planned send, of at most their 95th percentiles before the ramp, and of which and the 19 after it no more than 3 did not; resolution_s: the distance to the planned send before it",
    ),
    (
        "herd",
        "ns",
        "over the requests of one planned instant: from the first hand-over of a request's last byte to the kernel to the last of them",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::metric::Metric;
    use crate::run_file::schema::Unit;

    #[test]
    fn definitions_of_distributions_are_named_as_in_files() {
        let mut last = None;
        for (name, unit, _) in DISTRIBUTIONS {
            let metric: Metric = serde_json::from_value((*name).into()).unwrap();
            assert!(last < Some(metric), "{name} is out of order");
            assert_eq!(serde_json::to_value(Unit::of(metric)).unwrap(), *unit, "{name}");
            last = Some(metric);
        }
        assert_eq!(last, Some(Metric::StreamPlan));
        assert_eq!(DISTRIBUTIONS.len(), Metric::StreamPlan as usize + 1);
    }
}
