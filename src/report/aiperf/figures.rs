//! From the requests of a level to aiperf's metrics.

use super::answer::{Answer, Value};
use super::metric::Metric;
use super::stats::Stats;
use super::{About, Figure, sweeps};
use crate::stats::sort;

/// The metrics of `answers` that have a value, in the order of [`Metric`], the adjusted ones behind.
pub(super) fn of(answers: &[Answer], about: &About) -> Vec<Figure> {
    if answers.is_empty() {
        return Vec::new();
    }
    let mut each = values(answers, about);
    let mut figures = sweeps::of(answers, about.begun_ns, about.ended_ns);
    figures.extend(waits(answers));
    figures.extend(sums(answers, about, &each));
    let failed = answers.iter().filter(|answer| answer.failure.is_some()).count() as u64;
    let adjusted: Vec<Figure> = each
        .iter()
        .filter(|(metric, _)| failed > 0 && metric.has_adjusted())
        .filter_map(|(metric, values)| {
            let stats = Stats::adjusted(values.clone(), failed)?;
            Some(Figure { metric: *metric, adjusted: true, stats })
        })
        .collect();
    let has_gaps = each.iter().any(|(metric, _)| *metric == Metric::InterChunkLatency);
    if let Some(gaps) = about.gaps.clone().filter(|_| !has_gaps) {
        figures.push((Metric::InterChunkLatency, gaps));
    }
    figures.extend(each.drain(..).filter_map(|(metric, values)| Some((metric, Stats::of(values)?))));
    sort::few_by_key(&mut figures, |(metric, _)| *metric as usize);
    let plain = figures.into_iter().map(|(metric, stats)| Figure { metric, adjusted: false, stats });
    plain.chain(adjusted).collect()
}

/// The values of each metric that requests have by themselves.
fn values(answers: &[Answer], about: &About) -> Vec<(Metric, Vec<f64>)> {
    let mut each: Vec<(Metric, Vec<f64>)> = Vec::new();
    for (metric, value) in answers.iter().flat_map(|answer| answer.values(about.per_chunk_usage)) {
        let place = each.iter().position(|(of, _)| *of == metric).unwrap_or_else(|| {
            each.push((metric, Vec::new()));
            each.len() - 1
        });
        let values = &mut each[place].1;
        match value {
            Value::Count(count) => values.push(count as f64),
            Value::Real(real) => values.push(real),
            Value::List(list) => values.extend(list),
        }
    }
    sort::few_by_key(&mut each, |(metric, _)| *metric as usize);
    each
}

/// What requests waited before their start, and took from when they were due; failures, too.
fn waits(answers: &[Answer]) -> Vec<(Metric, Stats)> {
    let of = |until: fn(&Answer) -> u64| {
        let ms = |answer: &Answer| until(answer).saturating_sub(answer.issued_ns) as f64 / 1e6;
        Stats::of(answers.iter().map(ms).collect())
    };
    let all = [
        (Metric::EffectiveLatency, of(|answer| answer.end_ns)),
        (Metric::CreditToStartLatency, of(|answer| answer.start_ns)),
    ];
    all.into_iter().filter_map(|(metric, stats)| Some((metric, stats?))).collect()
}

/// Numbers of the level as a whole.
fn sums(answers: &[Answer], about: &About, each: &[(Metric, Vec<f64>)]) -> Vec<(Metric, Stats)> {
    let ok = answers.iter().filter(|answer| answer.failure.is_none());
    let completed = ok.clone().count() as f64;
    let all = answers.len() as f64;
    let total =
        |of: Metric| each.iter().find(|(metric, _)| *metric == of).map(|(_, v)| v.iter().sum::<f64>());
    let some_ok = Some(completed).filter(|n| *n > 0.0);
    let is_limited = [about.slo.ttft_ms, about.slo.ttfa_ms, about.slo.tpot_ms, about.slo.e2e_ms]
        .iter()
        .any(Option::is_some);
    let good = ok.clone().filter(|answer| answer.is_good(&about.slo, about.per_chunk_usage)).count() as f64;
    let good = is_limited.then_some(good);
    let window_s = about.ended_ns.saturating_sub(about.begun_ns) as f64 / 1e9;
    let per_second = |amount: Option<f64>| amount.filter(|_| window_s > 0.0).map(|n| n / window_s);
    let (isl, osl) = (total(Metric::InputSequenceLength), total(Metric::OutputSequenceLength));
    let (prompt, cached) = (total(Metric::UsagePromptTokens), total(Metric::UsagePromptCacheReadTokens));
    let first = ok.clone().map(|answer| answer.start_ns).min();
    let last = ok.map(|answer| answer.start_ns + answer.latency_ns).max();
    let duration_s = first.zip(last).map(|(first, last)| last.saturating_sub(first) as f64 / 1e9);
    let failed = Some(all - completed).filter(|n| *n > 0.0);
    let both = isl.zip(osl).map(|(isl, osl)| isl + osl);
    let share = cached.zip(prompt.filter(|n| *n > 0.0)).map(|(cached, prompt)| 100.0 * cached / prompt);
    let numbers = [
        (Metric::TotalUsagePromptTokens, prompt),
        (Metric::TotalUsagePromptCacheReadTokens, cached),
        (Metric::OverallUsagePromptCacheReadPct, share),
        (Metric::TotalUsageCompletionTokens, total(Metric::UsageCompletionTokens)),
        (Metric::TotalUsageReasoningTokens, total(Metric::UsageReasoningTokens)),
        (Metric::TotalUsageTotalTokens, total(Metric::UsageTotalTokens)),
        (Metric::OutputTokenThroughput, per_second(osl)),
        (Metric::InputTokenThroughput, per_second(isl)),
        (Metric::RequestThroughput, per_second(some_ok)),
        (Metric::Goodput, per_second(good.filter(|_| some_ok.is_some()))),
        (Metric::CompletedRequestCount, Some(all)),
        (Metric::RequestErrorRate, Some(100.0 * (all - completed) / all)),
        (Metric::RequestCount, some_ok),
        (Metric::GoodRequestCount, good.filter(|_| some_ok.is_some())),
        (Metric::GoodRequestFraction, good.map(|good| good / all)),
        (Metric::ErrorRequestCount, failed),
        (Metric::TotalErrorIsl, total(Metric::ErrorIsl)),
        (Metric::BenchmarkDuration, duration_s.filter(|s| *s > 0.0)),
        (Metric::TotalIsl, isl),
        (Metric::TotalOsl, osl),
        (Metric::TotalOutputTokens, total(Metric::OutputTokenCount)),
        (Metric::TotalReasoningTokens, total(Metric::ReasoningTokenCount)),
        (Metric::TotalTokenThroughput, per_second(both)),
    ];
    numbers.into_iter().filter_map(|(metric, value)| Some((metric, Stats::single(value?)))).collect()
}
