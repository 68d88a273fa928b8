//! The defaults of the other tools' command lines, what of theirs is printed and saved, and presets.

use tokload::cli::plan_from_args::Order;
use tokload::cli::presets;
use tokload::plan::{Finding, Grade, Limits, Plan, Sampling, lint};
use tokload::report::vllm::Selection;

use crate::plan::ordered;

/// Defaults of vllm/benchmarks/serve.py that a request or a level shows, each with the line that asks for another.
#[test]
fn the_defaults_of_vllm_hold_until_an_option_says_otherwise() {
    let of = |more: &str| ordered(&format!("bench serve --model m {more}")).unwrap();
    let ignores = |more: &str| of(more).plan.workload.options.ignore_eos;
    for (more, expected) in [
        ("", true),
        ("--dataset-name random", true),
        ("--dataset-name prefix_repetition", false),
        ("--dataset-name prefix_repetition --ignore-eos", true),
        ("--dataset-name custom --dataset-path p.jsonl", false),
        ("--dataset-name sharegpt --dataset-path p.json", false),
        ("--dataset-name timed_trace --dataset-path t.jsonl", true),
        ("--backend openai-chat", true),
    ] {
        assert_eq!(ignores(more), expected, "{more}");
    }
    let plan = of("").plan;
    assert_eq!(plan.limits, Limits { connect_s: 0.0, first_s: 0.0, gap_s: 0.0, total_s: 21_600.0 });
    assert_eq!(plan.workload.sampling, Sampling::default());
    assert_eq!((plan.workload.choices, plan.workload.prefix), (1, None));
    assert_eq!(of("").ready_check_s, 0.0);
    assert_eq!(of("").output.vllm.unwrap().selection, Selection::usual(true));
    let embeddings = of("--backend openai-embeddings --endpoint /v1/embeddings");
    assert_eq!(embeddings.output.vllm.unwrap().selection, Selection::usual(false));
    assert!(of("--dataset-name custom --dataset-path p.jsonl").notes[0].contains("256"));
    let limited = of("--request-timeout-seconds 9 --no-progress-timeout 3").plan.limits;
    assert_eq!((limited.total_s, limited.gap_s), (9.0, 3.0));
}

#[test]
fn vllms_block_and_file_are_had_on_any_command_line() {
    let of = |line: &str| ordered(&format!("run --base-url h:1 {line}"));
    assert_eq!(of("").unwrap().output.vllm, None);
    let saved = of("--save-result --save-detailed --result-dir d --result-filename f.json").unwrap().output;
    let vllm = saved.vllm.unwrap();
    assert!(!vllm.is_shown && saved.detailed);
    let file = vllm.file.unwrap();
    assert_eq!((file.name.as_deref(), saved.dir.as_deref()), (Some("f.json"), Some("d")));
    assert!(file.detailed && !file.appends && !file.overwrites);
    assert!(of("--save-result --force").unwrap().output.vllm.unwrap().file.unwrap().overwrites);
    let of_vllm = ordered("bench serve --append-result").unwrap().output.vllm.unwrap();
    assert!(of_vllm.file.is_some_and(|file| file.appends && file.overwrites));
    assert_eq!(ordered("bench serve --metric-view tokload").unwrap().output.vllm, None);
    for (line, subject) in [
        ("--metric-percentiles 50", "--metric-percentiles"),
        ("--result-filename f.json", "--result-filename"),
        ("--save-result --no-records", "--save-result"),
        ("--metric-view vllm --no-records", "--metric-view"),
        ("--metric-view genai", "--metric-view"),
        ("--result-dir d --no-save", "--result-dir"),
    ] {
        assert_eq!(of(line).unwrap_err().subject, subject, "{line}");
    }
}

#[test]
fn presets_are_plans_that_can_be_run_and_have_nothing_to_warn_of() {
    for preset in presets::ALL {
        let order = ordered(&format!("run --base-url h:1 -m a --preset {} --request-rate 5", preset.name));
        let Order { plan, output, .. } = order.unwrap();
        assert_eq!(Plan::from_toml(&plan.to_toml(), 0).as_ref(), Ok(&plan), "{}", preset.name);
        assert_eq!(output.metadata, [("preset".to_owned(), preset.name.to_owned())]);
        let without = ordered("run --base-url h:1 -m a --request-rate 5").unwrap().plan;
        // A prefix that many share is worth a remark, which is no warning.
        let warnings = |plan: &Plan| -> Vec<Finding> {
            let findings = lint::lint(plan, &lint::Surroundings::default());
            findings.into_iter().filter(|finding| finding.grade != Grade::Info).collect()
        };
        assert_eq!(warnings(&plan), warnings(&without), "{} brings warnings of its own", preset.name);
    }
}
