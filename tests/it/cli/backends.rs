//! APIs from outside: each by its names and its path, what it cannot do, and what is not spoken.

use std::sync::{Arc, Mutex};

use super::canned::{Canned, models, stream};
use super::{Dir, json, mock, run, url};
use tokload::mock::Faults;

#[test]
fn each_api_is_spoken_by_name_and_by_path() {
    let (dir, mock) = (Dir::new(), mock(Faults::default()));
    for (name, path, dialect) in [
        ("chat", "/v1/chat/completions", "openai-chat"),
        ("vllm", "/v1/completions", "openai"),
        ("anthropic", "/v1/messages", "messages"),
        ("responses", "/v1/responses", "responses"),
        ("ollama", "/api/chat", "ollama-chat"),
        ("ollama-generate", "/api/generate", "ollama-generate"),
        ("llama.cpp", "/completion", "llama.cpp"),
        ("sglang", "/generate", "sglang"),
    ] {
        let base = url(&mock);
        for line in [
            run(&base, &format!("--backend {name}")),
            run(&base, &format!("--endpoint {path}")),
            run(&format!("{base}{path}"), ""),
        ] {
            let said = dir.tokload(&format!("{line} -c 2 --num-prompts 4 --output-file run.json --force"));
            said.shows(0);
            let run = json(&dir.path("run.json"));
            assert_eq!(run["plan"]["target"]["dialect"], dialect, "{line}");
            let level = &run["levels"][0];
            assert_eq!(
                (&level["counts"]["ok"], &level["tokens"]["output"]),
                (&4.into(), &20.into()),
                "{line}"
            );
            assert_eq!(level["tokens"]["prompt"], 32, "{line}");
        }
        // The same requests in virtual time.
        let simulated = format!(
            "simulate --backend {name} --random-input-len 8 --random-output-len 5 -c 2 --num-prompts 4 --no-save"
        );
        dir.tokload(&simulated).shows(0);
    }
}

#[test]
fn embeddings_have_a_latency_and_prompt_tokens() {
    let (dir, mock) = (Dir::new(), mock(Faults::default()));
    let line = run(&url(&mock), "--backend openai-embeddings -c 2 --num-prompts 4 --goodput e2e:5000");
    let said = dir.tokload(&format!("{line} --output-file run.json"));
    let table = said.shows(0);
    assert!(table.contains("prompt tokens/s") && !table.contains("are not known"), "{table}");
    assert!(table.contains("--backend openai-embeddings ") && table.contains("--goodput e2e"), "{table}");
    assert!(!table.contains("not_streaming") && !table.contains("output_length_not_fixed"), "{table}");
    let level = &json(&dir.path("run.json"))["levels"][0];
    assert_eq!((&level["counts"]["ok"], &level["tokens"]["prompt"]), (&4.into(), &32.into()));
    assert!(level["rates"]["window"]["in_tok_s"].as_f64().unwrap() > 0.0);
    assert_eq!(mock.stop().unwrap().tokens, 0, "nothing was generated");

    let base = "--base-url http://127.0.0.1:1 --backend embeddings";
    dir.tokload(&format!("run {base} --streaming")).refuses(2, &["--streaming", "are not streamed"]);
    dir.tokload(&format!("run {base} --goodput ttft:5")).refuses(2, &["--goodput", "e2e"]);
}

#[test]
fn what_an_api_cannot_ask_for_is_said() {
    let (dir, mock) = (Dir::new(), mock(Faults::default()));
    let line = run(&url(&mock), "--backend messages --ignore-eos -c 1 --num-prompts 2 --no-save");
    let said = dir.tokload(&line);
    let table = said.shows(0);
    assert!(said.err.contains("the API messages has no --ignore-eos: requests go without"), "{said:?}");
    assert!(table.contains("output_length_not_fixed: the API messages has no ignore_eos"), "{table}");
    let said =
        dir.tokload(&run(&url(&mock), "--backend llama.cpp --ignore-eos -c 1 --num-prompts 2 --no-save"));
    assert!(!said.shows(0).contains("output_length_not_fixed") && !said.err.contains("has no"), "{said:?}");
}

#[test]
fn messages_carry_the_version_of_their_api_unless_another_is_given() {
    for (more, version) in [("", "2023-06-01"), ("--header anthropic-version=2024-01-01", "2024-01-01")] {
        let heads = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&heads);
        let canned = Canned::start(move |asked| {
            if asked.is_post() {
                seen.lock().unwrap().push(asked.head.clone());
            }
            if asked.is_post() { stream() } else { models() }
        });
        let line = run(&canned.url(), &format!("--backend messages -c 1 --num-prompts 1 --no-save {more}"));
        // What comes is a stream of another API: its events say nothing in this one.
        let said = Dir::new().tokload(&line);
        assert_ne!(said.code, 101, "{said:?}");
        let heads = heads.lock().unwrap();
        assert!(!heads.is_empty());
        for head in heads.iter() {
            let found = head.contains(&format!("anthropic-version: {version}\r\n"));
            assert!(found && head.matches("-version").count() == 1, "{head}");
        }
    }
}

#[test]
fn apis_that_are_not_spoken_are_refused_with_what_to_use_instead() {
    let dir = Dir::new();
    for (name, word) in [
        ("tgi", "openai-chat"),
        ("huggingface_generate", "openai-chat"),
        ("tensorrt-llm", "trtllm-serve"),
        ("vllm-rerank", "rankings"),
        ("openai-embeddings-clip", "openai-embeddings"),
        ("openai-audio", "audio"),
    ] {
        dir.tokload(&format!("run --base-url http://127.0.0.1:1 --backend {name}"))
            .refuses(2, &["--backend", "is not supported", word]);
    }
}

#[test]
fn an_api_of_ones_own_is_described_by_a_body_and_pointers() {
    let (dir, mock) = (Dir::new(), mock(Faults::default()));
    let body = r#"{"prompt": "{{prompt}}", "n_predict": "{{max_tokens}}", "stream": "{{stream}}"}"#;
    std::fs::write(dir.path("body.json"), body).unwrap();
    let places = "--raw-content /content --raw-finish /stop --raw-prompt-tokens /tokens_evaluated \
                  --raw-output-tokens /tokens_predicted";
    let line = run(&url(&mock), "--backend raw --endpoint /completion --raw-body body.json");
    let said = dir.tokload(&format!("{line} {places} -c 2 --num-prompts 4 --output-file run.json"));
    said.shows(0);
    let file = json(&dir.path("run.json"));
    let level = &file["levels"][0];
    assert_eq!((&level["counts"]["ok"], &level["tokens"]["output"]), (&4.into(), &20.into()));
    assert_eq!(
        (&level["tokens"]["prompt"], &file["plan"]["target"]["raw"]["body"]),
        (&32.into(), &body.into())
    );

    // The plan holds all of it.
    let said = dir.tokload(&format!("{line} {places} -c 2 --num-prompts 4 --print-config"));
    std::fs::write(dir.path("plan.toml"), said.out).unwrap();
    dir.tokload("run --config plan.toml --no-save").shows(0);
    // Another API takes its place.
    dir.tokload("run --config plan.toml --backend chat --no-save").shows(0);

    for (options, parts) in [
        ("--backend raw --endpoint /x", ["--raw-body", "is missing"]),
        ("--backend raw --endpoint /x --raw-body nowhere.json", ["--raw-body nowhere.json", "No such file"]),
        ("--backend raw --raw-body body.json", ["--endpoint", "is missing"]),
        ("--backend raw --endpoint /x --raw-body {}", ["--raw-body", "no {{prompt}}"]),
        (
            "--backend raw --endpoint /x --raw-body body.json --raw-finish stop",
            ["--raw-finish", "JSON pointer"],
        ),
        ("--backend raw --endpoint /x --raw-body body.json --temperature 0", ["--temperature", "--raw-body"]),
        ("--backend chat --raw-body body.json", ["--raw-body", "--backend raw"]),
        ("--backend raw --endpoint /x --raw-body body.json --n 2", ["--n", "one answer"]),
    ] {
        dir.tokload(&format!("run --base-url http://127.0.0.1:1 {options}")).refuses(2, &parts);
    }
}
