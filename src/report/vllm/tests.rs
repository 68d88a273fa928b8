use super::*;

fn answer(start_s: f64, ttft_s: f64, gaps_s: &[f64], output_tokens: u64) -> Answer {
    Answer {
        ok: true,
        start_s,
        ttft_s: Some(ttft_s),
        latency_s: ttft_s + gaps_s.iter().sum::<f64>(),
        gaps_s: Some(gaps_s.to_vec()),
        input_tokens: 10,
        output_tokens,
        ..Answer::default()
    }
}

fn about() -> About {
    About { duration_s: 4.0, generates: true, ..About::default() }
}

fn all() -> Selection {
    Selection { figures: Figure::ALL.to_vec(), percentiles: vec![Quantile::P99] }
}

fn of(level: &Level, figure: Figure) -> Option<&Spread> {
    level.spreads.iter().find(|(of, _)| *of == figure).map(|(_, spread)| spread)
}

#[test]
fn an_answer_in_one_piece_has_a_tpot_of_zero_and_one_of_one_token_has_none() {
    assert_eq!(answer(0.0, 0.5, &[], 8).tpot_s(), Some(0.0));
    assert_eq!(answer(0.0, 0.5, &[], 1).tpot_s(), None);
    assert_eq!(answer(0.0, 0.5, &[], 0).tpot_s(), None);
    assert_eq!(answer(0.0, 0.5, &[0.25, 0.25], 3).tpot_s(), Some(0.25));
    let level = Level::of(vec![answer(0.0, 0.5, &[], 8), answer(0.0, 0.5, &[0.5], 2)], about(), &all());
    // numpy: mean([0, 0.5]), std([0, 0.5]), percentile([0, 0.5], 99), in ms.
    let tpot = of(&level, Figure::Tpot).unwrap();
    assert_eq!((tpot.mean_ms, tpot.std_ms, tpot.percentiles[0].1), (250.0, 250.0, 495.0));
}

#[test]
fn goodput_takes_an_undefined_tpot_for_zero_and_equality_for_kept() {
    let slo = Slo { ttft_ms: Some(500.0), tpot_ms: Some(250.0), ..Slo::default() };
    let answers = vec![
        answer(0.0, 0.5, &[], 1),
        answer(0.0, 0.5, &[0.25], 2),
        answer(0.0, 0.5, &[0.26], 2),
        answer(0.0, 0.51, &[], 1),
        Answer { ok: false, ..answer(0.0, 0.1, &[], 1) },
        Answer { ok: false, cancelled: true, ..answer(0.0, 0.1, &[], 1) },
    ];
    let level = Level::of(answers, About { slo, ..about() }, &all());
    assert_eq!((level.completed, level.failed, level.cancelled, level.good), (4, 1, 1, Some(2)));
    assert_eq!(level.per_second(2), 0.5);
    assert_eq!(Level::of(Vec::new(), about(), &all()).good, None, "no limits, no goodput");
}

#[test]
fn peaks_are_of_seconds_after_the_first_start_and_of_half_open_lives() {
    // Events at 0.5, 1.25 | 1.5, 1.75 after the first start, which is not that of the level.
    let level = Level::of(
        vec![answer(10.0, 0.5, &[0.75], 2), answer(11.25, 0.25, &[0.25], 2), answer(11.75, 1.0, &[], 1)],
        about(),
        &all(),
    );
    assert_eq!(level.peak_tokens_s, Some(3));
    // The third begins as the second ends.
    assert_eq!(level.peak_requests, Some(1));
    let overlapping = Level::of(vec![answer(0.0, 1.0, &[], 1), answer(0.5, 1.0, &[], 1)], about(), &all());
    assert_eq!(overlapping.peak_requests, Some(2));
    let without_times = Answer { gaps_s: None, ..answer(0.0, 1.0, &[0.5], 2) };
    let level = Level::of(vec![without_times], about(), &all());
    assert_eq!((level.peak_tokens_s, level.peak_requests), (None, Some(1)));
    assert_eq!(of(&level, Figure::Itl), None, "no times and no histogram");
}

#[test]
fn queueing_is_shown_behind_a_limit_and_added_to_a_rate_only() {
    let waited = || vec![Answer { queue_s: 0.5, ..answer(0.0, 1.0, &[], 1) }];
    let shown = |max_concurrency, request_rate| {
        let level = Level::of(waited(), About { max_concurrency, request_rate, ..about() }, &all());
        [Figure::ClientQueueTime, Figure::E2elIncludingClientQueue]
            .map(|figure| of(&level, figure).map(|spread| spread.mean_ms))
    };
    assert_eq!(shown(None, Some(2.0)), [None, None]);
    assert_eq!(shown(Some(4), None), [Some(500.0), None]);
    assert_eq!(shown(Some(4), Some(2.0)), [Some(500.0), Some(1500.0)]);
}

#[test]
fn a_level_without_successes_has_zeros_as_in_vllm_and_whole_answers_no_tokens_to_time() {
    let failed = Answer { error: "connect".to_owned(), ..Answer::default() };
    let level = Level::of(vec![failed], about(), &all());
    assert_eq!((level.completed, level.failed, level.peak_requests), (0, 1, None));
    let whole = Answer { ttft_s: None, gaps_s: None, ..answer(0.0, 2.0, &[], 5) };
    let level = Level::of(vec![whole], about(), &all());
    let figures: Vec<Figure> = level.spreads.iter().map(|(figure, _)| *figure).collect();
    assert_eq!(figures, [Figure::E2el]);
    assert_eq!(level.spreads[0].1.mean_ms, 2000.0);
}

fn text(level: &Level) -> String {
    let mut out = Vec::new();
    write(level, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn the_block_has_the_lines_of_what_was_set_and_kept() {
    let about = About { max_concurrency: Some(2), request_rate: Some(1.5), ..about() };
    let level = Level::of(
        vec![answer(0.0, 1.0, &[0.25, 0.75], 3)],
        about,
        &Selection {
            figures: vec![Figure::E2el],
            percentiles: vec!["25".parse().unwrap(), "99.9".parse().unwrap()],
        },
    );
    let expected = "\
============ Serving Benchmark Result ============
Successful requests:                     1
Failed requests:                         0
Maximum request concurrency:             2
Request rate configured (RPS):           1.50
Benchmark duration (s):                  4.00
Total input tokens:                      10
Total generated tokens:                  3
Request throughput (req/s):              0.25
Output token throughput (tok/s):         0.75
Peak output token throughput (tok/s):    2.00
Peak concurrent requests:                1.00
Total token throughput (tok/s):          3.25
----------------End-to-end Latency----------------
Mean E2EL (ms):                          2000.00
Median E2EL (ms):                        2000.00
P25 E2EL (ms):                           2000.00
P99.9 E2EL (ms):                         2000.00
==================================================
";
    assert_eq!(text(&level), expected);
    let embeddings = Level { about: About { generates: false, ..level.about.clone() }, ..level };
    let text = text(&embeddings);
    assert!(text.contains("Input throughput (inputs/s):             0.25\n"), "{text}");
    assert!(text.contains("Total token throughput (tok/s):          2.50\n"), "{text}");
    assert!(!text.contains("generated") && !text.contains("Output token"), "{text}");
}

#[test]
fn the_object_has_the_keys_that_readers_of_vllms_files_look_for() {
    let saved = Saved {
        date: "20261130-204453".to_owned(),
        backend: "openai-chat".to_owned(),
        model: "org/name".to_owned(),
        num_prompts: 1,
        metadata: [("tp".to_owned(), "2".to_owned())].into(),
        burstiness: 1.0,
        ..Saved::default()
    };
    let level = Level::of(vec![answer(0.0, 1.0, &[0.5], 2)], about(), &Selection::usual(true));
    let object = to_json(&level, &saved);
    for (key, value) in [
        ("backend", serde_json::json!("openai-chat")),
        ("completed", serde_json::json!(1)),
        ("duration", serde_json::json!(4.0)),
        ("label", serde_json::Value::Null),
        ("max_concurrency", serde_json::Value::Null),
        ("max_output_tokens_per_s", serde_json::json!(2.0)),
        ("mean_itl_ms", serde_json::json!(500.0)),
        ("p99_ttft_ms", serde_json::json!(1000.0)),
        ("request_goodput", serde_json::Value::Null),
        ("request_rate", serde_json::json!("inf")),
        ("std_tpot_ms", serde_json::json!(0.0)),
        ("total_token_throughput", serde_json::json!(3.0)),
        ("tp", serde_json::json!("2")),
    ] {
        assert_eq!(object.get(key), Some(&value), "{key}");
    }
    assert!(!object.contains_key("ttfts") && !object.contains_key("mean_e2el_ms"));
    let detailed = to_json(&level, &Saved { detailed: true, ..saved.clone() });
    assert_eq!(detailed["itls"], serde_json::json!([[0.5]]));
    assert_eq!(detailed["output_lens"], serde_json::json!([2]));
    assert!(!detailed.contains_key("generated_texts"), "texts are not kept");

    assert_eq!(file_name(&level, &saved), "openai-chat-infqps-name-20261130-204453.json");
    let limited = About { max_concurrency: Some(8), request_rate: Some(10.0), ..about() };
    let level = Level { about: limited, ..level };
    let saved = Saved { label: Some("a/b".to_owned()), ..saved };
    assert_eq!(file_name(&level, &saved), "a_b-10.0qps-concurrency8-name-20261130-204453.json");
}
