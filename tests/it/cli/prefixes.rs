//! What prompts share: options, what is stored and printed of it, and what is refused.

use super::Dir;

#[test]
fn a_run_tells_the_cached_from_the_uncached_and_what_was_to_be_found() {
    let dir = Dir::new();
    let options = "--prefix-cache --random-prefix-len 320 --random-input-len 80 --prefix-hit-fraction 0.5 \
                   --random-output-len 2 --num-prompts 600 -c 1 --seed 3";
    let said = dir.tokload(&format!("simulate {options} --output-file run.json"));
    said.shows(0);
    let run: serde_json::Value =
        serde_json::from_slice(&std::fs::read(dir.path("run.json")).unwrap()).unwrap();
    let level = &run["levels"][0];
    let split = &level["cache_split"];
    let (cached, uncached) = (&split["cached"], &split["uncached"]);
    let n = |group: &serde_json::Value| group["n"].as_u64().unwrap();
    assert_eq!(n(cached) + n(uncached), 600);
    // 10.5 ms and a twentieth for each token to compute, and a nanosecond on the way: of 80 and of 400 tokens.
    for (group, ttft) in [(cached, 14_500_001.0), (uncached, 30_500_001.0)] {
        for quantile in ["p50", "p90", "p99"] {
            assert_eq!(group["ttft"][quantile].as_f64(), Some(ttft), "{split}");
        }
    }
    assert_eq!(split["cut"].as_f64(), Some(0.8));
    let reuse = &level["reuse"];
    assert_eq!(reuse["prompt_tokens"].as_u64(), Some(240_000));
    assert_eq!(reuse["found_tokens"], level["tokens"]["cached"]);
    let share = format!("{:.1} %", 100.0 * reuse["found_tokens"].as_f64().unwrap() / 240_000.0);
    let text = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(&format!("TTFT of {} requests found in the cache", n(cached))), "{text}");
    assert!(
        text.contains(&format!("an unlimited prefix cache finds {share} of the prompt tokens")),
        "{text}"
    );
    assert!(!text.contains("cache_share_off"), "{text}");

    // The same before the run, and after it from the file.
    let dry = dir.tokload(&format!("simulate {options} --dry-run")).out;
    assert!(
        dry.contains(&format!(
            "# an unlimited prefix cache finds {share} of the 240000 prompt tokens of 600 requests"
        )),
        "{dry}"
    );
    assert!(dry.contains("hit_fraction = 0.5"), "{dry}");
    assert!(dir.tokload("report run.json").out.contains("found in the cache"));

    // Without a cache nothing is found, which is said.
    let none = dir.tokload(&format!("simulate {} --no-save", options.replace("--prefix-cache ", "")));
    assert!(!none.out.contains("found in the cache"), "{}", none.out);
}

#[test]
fn what_cannot_be_shared_is_refused_with_what_to_do() {
    let dir = Dir::new();
    for (options, wrong) in [
        ("--prefix-hit-fraction 0.5", "says how shared beginnings are drawn, and there are none"),
        ("--prefix-zipf 1", "says how shared beginnings are drawn, and there are none"),
        ("--random-prefix-len 9 --prefix-hit-fraction 1.5", "1.5 is no share to aim at"),
        ("--random-prefix-len 9 --prefix-zipf -1", "-1 is no exponent"),
        (
            "--random-prefix-len 100 --random-input-len 100 --prefix-hit-fraction 0.6",
            "at most 0.492 of the tokens",
        ),
        (
            "--shared-system-prompt-length 900 --random-prefix-len 50 --random-input-len 50 --prefix-hit-fraction 0.5",
            "the system message is 0.886 of the tokens",
        ),
        ("--random-prefix-len 9 --prefix-hit-fraction 0.01 --num-dataset-entries 3", "found as a whole"),
        ("--shared-system-prompt-length 9 --backend completions", "the API openai has no system messages"),
        ("--shared-system-prompt-length x", "'x' is not a whole number"),
        (
            "--user-context-prompt-length 9 --random-prefix-len 5",
            "stands where prompts have a shared beginning",
        ),
    ] {
        dir.tokload(&format!("simulate {options}")).refuses(2, &[wrong]);
    }
}

/// Without its own share each level after the first would find four fifths.
#[test]
fn every_level_of_a_search_has_the_hit_fraction_asked_for() {
    let dir = Dir::new();
    dir.tokload(
        "simulate --find-capacity --max 4 --prefix-cache --random-prefix-len 320 --random-input-len 80 \
         --prefix-hit-fraction 0.5 --random-output-len 2 --num-prompts 400 --output-file run.json",
    )
    .shows(0);
    let run: serde_json::Value =
        serde_json::from_slice(&std::fs::read(dir.path("run.json")).unwrap()).unwrap();
    let levels = run["levels"].as_array().unwrap();
    assert!(levels.len() > 2);
    for level in levels {
        let reuse = &level["reuse"];
        let of = |name: &str| reuse[name].as_f64().unwrap();
        let share = of("found_tokens") / of("prompt_tokens");
        assert!((share - 0.5).abs() < 0.12, "{share}: {}", level["label"]);
    }
}
