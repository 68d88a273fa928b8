//! vLLM's block and file: the golden text, and a run from the records that it left.

use serde_json::Value;
use tokload::plan::Slo;
use tokload::report::vllm::{About, Answer, Figure, Level, Selection, write};
use tokload::stats::Quantile;

use crate::goldens::{assert_close, inputs, values};

/// The requests of the golden report. Its program is older than the two lines with peaks.
fn golden() -> Level {
    let input = inputs("VllmReport");
    let number = |request: &Value, key: &str| request[key].as_f64().unwrap_or_default();
    let answers = input["requests"].as_array().unwrap().iter().map(|request| {
        let gaps = vec![number(request, "itl_s"); number(request, "gaps") as usize];
        Answer {
            ok: request["ok"].as_bool().unwrap(),
            start_s: number(request, "start_s"),
            ttft_s: Some(number(request, "ttft_s")),
            latency_s: number(request, "ttft_s") + gaps.iter().sum::<f64>(),
            gaps_s: Some(gaps),
            input_tokens: number(request, "prompt_tokens") as u64,
            output_tokens: number(request, "output_tokens") as u64,
            ..Answer::default()
        }
    });
    let slo = Slo {
        ttft_ms: input["slo"]["ttft_ms"].as_f64(),
        tpot_ms: input["slo"]["tpot_ms"].as_f64(),
        ..Slo::default()
    };
    let about =
        About { duration_s: input["duration_s"].as_f64().unwrap(), slo, generates: true, ..About::default() };
    let figures = vec![Figure::Ttft, Figure::Tpot, Figure::Itl, Figure::E2el];
    let level = Level::of(answers.collect(), about, &Selection { figures, percentiles: vec![Quantile::P99] });
    assert!(level.peak_tokens_s.is_some() && level.peak_requests.is_some());
    Level { peak_tokens_s: None, peak_requests: None, ..level }
}

#[test]
fn the_golden_block_is_written_to_the_letter() {
    let mut out = Vec::new();
    write(&golden(), &mut out).unwrap();
    let expected = include_str!("../golden/VllmReport.txt");
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn the_golden_numbers_are_met_unrounded() {
    let (level, golden) = (golden(), values("VllmReport"));
    let expected = |label: &str| golden[label].as_f64().unwrap_or_else(|| panic!("{label}"));
    assert_eq!(level.completed as f64, expected("Successful requests"));
    assert_eq!(level.failed as f64, expected("Failed requests"));
    assert_close(level.per_second(level.good.unwrap()), expected("Request goodput (req/s)"));
    assert_close(level.per_second(level.output_tokens), expected("Output token throughput (tok/s)"));
    for (figure, spread) in &level.spreads {
        let name = figure.name().to_uppercase();
        assert_close(spread.mean_ms, expected(&format!("Mean {name} (ms)")));
        assert_close(spread.median_ms, expected(&format!("Median {name} (ms)")));
        assert_close(spread.percentiles[0].1, expected(&format!("P99 {name} (ms)")));
    }
    assert_eq!(level.spreads.len(), 4);
}
