//! Lengths in tokens from outside: who counts, what is stored of it, and what cannot be had.

use serde_json::{Value, json};
use tokload::mock::{Mock, Settings};
use tokload::model;

use super::canned::{Canned, counted_stream, error, models};
use super::{Dir, json, json_lines, run, url};

/// A quick server that puts one token before texts and twelve around messages.
fn counting(change: impl FnOnce(&mut Settings)) -> Mock {
    let serving = model::Settings::fixed(2.0, 1.0);
    let mut settings = Settings {
        model: "m".to_owned(),
        serving,
        bos_tokens: 1,
        template_tokens: 12,
        ..Settings::default()
    };
    change(&mut settings);
    Mock::start(settings).unwrap()
}

/// Runs with `options`, and gives the run file and what was said.
fn ran(dir: &Dir, base: &str, options: &str) -> (Value, String) {
    let line =
        run(base, &format!("{options} -c 2 --num-prompts 4 --save-detailed --force --output-file run.json"));
    let said = dir.tokload(&line.replacen("--random-input-len 8 ", "", 1));
    said.shows(0);
    (json(&dir.path("run.json")), said.err)
}

/// What the server counted of each prompt, the same for all.
fn reported(dir: &Dir) -> u64 {
    let records = json_lines(&dir.path("run.jsonl"));
    let tokens: Vec<u64> = records.iter().map(|record| record["prompt_tokens"].as_u64().unwrap()).collect();
    assert!(tokens.len() == 5 && tokens.iter().all(|count| *count == tokens[0]), "{tokens:?}");
    tokens[0]
}

#[test]
fn the_server_counts_exactly_what_is_asked_for_and_its_template_on_top() {
    let (dir, mock) = (Dir::new(), counting(|_| {}));
    for tokens in [2, 17, 512, 4000] {
        for (api, added, template) in
            [("openai", 1, Value::Null), ("llama.cpp", 1, Value::Null), ("chat", 0, json!(12))]
        {
            let options = format!("--backend {api} --calibrate --random-input-len {tokens}");
            let (run, said) = ran(&dir, &url(&mock), &options);
            assert_eq!(reported(&dir), tokens + template.as_u64().unwrap_or(0), "{api}");
            assert!(said.contains("exactly the tokens asked for"), "{said}");
            let found = &run["plan"]["workload"]["tokens"]["found"];
            assert_eq!(found["begins"], "bare");
            assert_eq!((found["added"].as_u64().unwrap_or(0), &found["template"]), (added, &template));
            let findings = run["levels"][0]["findings"].to_string();
            assert!(!findings.contains("prompt_tokens_off"), "{findings}");
        }
    }
}

#[test]
fn what_was_found_is_a_part_of_the_plan_and_is_not_asked_for_again() {
    let (dir, mock) = (Dir::new(), counting(|_| {}));
    let (first, _) = ran(&dir, &url(&mock), "--backend openai --calibrate --random-input-len 40 --seed 5");
    let plan = toml::to_string(&first["plan"]).unwrap();
    std::fs::write(dir.path("plan.toml"), plan).unwrap();
    // A server that could not tell.
    let silent = counting(|settings| settings.tokenize = false);
    let line = format!("run --config plan.toml --base-url {} --output-file again.json", url(&silent));
    let said = dir.tokload(&line);
    said.shows(0);
    let again = json(&dir.path("again.json"));
    assert_eq!(again["levels"][0]["bodies"], first["levels"][0]["bodies"]);
    assert_eq!(again["plan"]["workload"], first["plan"]["workload"]);
    assert!(!said.err.contains("exactly"), "{}", said.err);
}

#[test]
fn a_server_that_cannot_be_asked_is_measured_by_short_requests() {
    let (dir, mock) = (Dir::new(), counting(|settings| settings.tokenize = false));
    let (run, said) = ran(&dir, &url(&mock), "--backend openai --calibrate --random-input-len 40");
    assert_eq!(reported(&dir), 40);
    assert!(said.contains("no /tokenize") && said.contains("1.000 each"), "{said}");
    assert_eq!(run["plan"]["workload"]["tokens"]["found"], json!({ "added": 1 }));
}

/// The mark of warm-up prompts may be many tokens; measured prompts have none.
#[test]
fn what_a_template_adds_is_counted_without_the_mark_of_a_warm_up() {
    let dir = Dir::new();
    let server = Canned::start(|asked| {
        if !asked.is_post() {
            return models();
        }
        if asked.head.contains("/tokenize") {
            return error(404, "no such route");
        }
        let body: Value = serde_json::from_str(&asked.body).unwrap();
        let text = body["messages"][0]["content"].as_str().unwrap();
        let words = text.split_whitespace().count() + 12 + if text.contains("warm-") { 9 } else { 0 };
        counted_stream(words)
    });
    let line = "--backend chat --calibrate --random-input-len 40";
    let (run, said) = ran(&dir, &server.url(), line);
    assert_eq!(run["plan"]["workload"]["tokens"]["found"], json!({ "template": 12 }));
    assert!(said.contains("and 12 of the server's chat template on top"), "{said}");
    let mut records = json_lines(&dir.path("run.jsonl"));
    records.retain(|record| record["phase"] == "measured");
    assert!(records.len() == 4 && records.iter().all(|record| record["prompt_tokens"] == 52), "{records:?}");
}

#[test]
fn without_a_wish_words_are_words_and_what_they_are_is_said() {
    let (dir, mock) = (Dir::new(), counting(|_| {}));
    let (run, said) = ran(&dir, &url(&mock), "--random-input-len 40");
    assert_eq!(reported(&dir), 52);
    assert!(said.contains("1.000 tokens a word and adds 12") && said.contains("52 tokens"), "{said}");
    assert_eq!(run["target"]["words"], json!({ "tokens_per_word": 1.0, "added": 12 }));
    assert_eq!(run["plan"]["workload"].get("tokens"), None);
    // Long prompts hide a template, and nothing need be said.
    let (_, said) = ran(&dir, &url(&mock), "--random-input-len 4000");
    assert!(!said.contains("tokens a word"), "{said}");
    // Who cannot tell is not asked for more.
    let silent = counting(|settings| settings.tokenize = false);
    let (run, _) = ran(&dir, &url(&silent), "--random-input-len 40");
    assert_eq!(run["target"].get("words"), None);
}

#[test]
fn prompts_of_ids_are_as_long_as_asked() {
    let (dir, mock) = (Dir::new(), counting(|_| {}));
    for api in ["openai", "llama.cpp", "sglang"] {
        let options = format!("--backend {api} --tokenize-prompt --random-input-len 33");
        let (run, _) = ran(&dir, &url(&mock), &options);
        assert_eq!(reported(&dir), 33, "{api}");
        assert_eq!(run["plan"]["workload"]["tokens"]["found"]["ids"].as_array().unwrap().len(), 1025);
    }
    let silent = counting(|settings| settings.tokenize = false);
    let line = run(&url(&silent), "--backend openai --tokenize-prompt -c 1 --num-prompts 1");
    dir.tokload(&line).refuses(2, &["no /tokenize", "--tokenizer"]);
    dir.tokload("simulate --backend openai --tokenize-prompt -c 1").refuses(2, &["--tokenize-prompt"]);
}

#[test]
fn a_tokenizer_that_is_not_there_is_refused_before_anything_is_sent() {
    let dir = Dir::new();
    let line = "run --base-url http://127.0.0.1:1 -c 1 --dry-run --tokenizer";
    let parts: &[&str] = match cfg!(feature = "tokenizer") {
        true => &["--tokenizer nowhere.json", "no such file"],
        false => &["--tokenizer nowhere.json", "cargo install --path . --features tokenizer"],
    };
    dir.tokload(&format!("{line} nowhere.json")).refuses(2, parts);
}
