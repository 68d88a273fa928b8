//! Findings and verdicts from outside: `lint`, the lines before a run, `--strict`.

use tokload::mock::{Answer, Fault, Faults, When};

use super::canned::{Canned, models, stream};
use super::{Dir, json, mock, run, url};

#[test]
fn lint_sends_nothing_and_lists_what_is_found_with_remedies() {
    let canned = Canned::start(|asked| if asked.is_post() { stream() } else { models() });
    let plan = format!("--base-url {} -c 8 --num-prompts 20 --num-warmups 0 --no-fresh-server", canned.url());
    let said = Dir::new().tokload(&format!("lint {plan}"));
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let words = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for line in [
        "! no_warmup: 1 level without warm-up: first requests meet cold caches and new connections; give --num-warmups 2",
        "! few_requests: 20 requests in a level: a single one of them makes its p99; give --num-prompts 200",
        "! server_reused_across_configs: the server goes on from one configuration to the next",
        "not_production_platform: not declared whether it is that of production; give --same-as-production",
        "client_on_server_host: client and server share this machine",
    ] {
        assert!(words.contains(line), "{line}\n{words}");
    }
    assert!(
        said.out.ends_with("verdict: degraded (no_warmup, few_requests, server_reused_across_configs)\n")
    );
    assert_eq!(canned.posts(), 0);

    let said = Dir::new().tokload(&format!("lint {plan} --format json --strict"));
    let document: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(
        (said.code, &document["verdict"], &document["schema"]),
        (0, &"degraded".into(), &"tokload.lint".into())
    );
    let few = &document["findings"][1];
    assert_eq!((&few["rule"], &few["grade"]), (&"few_requests".into(), &"warn".into()));
}

#[test]
fn lint_takes_the_plan_of_a_file_and_of_other_tools() {
    let dir = Dir::new();
    std::fs::write(
        dir.path("plan.toml"),
        "target.endpoints = [{ url = \"http://127.0.0.1:1\" }]\ndeclared.same_as_production = true\n",
    )
    .unwrap();
    let said = dir.tokload("lint -f plan.toml");
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("server_reused") && !said.out.contains("not_production_platform"), "{said:?}");
    dir.tokload("lint -f plan.toml --dry-run").refuses(2, &["--dry-run", "tokload run"]);
    dir.tokload("lint --base-url http://127.0.0.1:1 --fresh-server --no-fresh-server")
        .refuses(2, &["--fresh-server", "contradicts --no-fresh-server"]);
}

#[test]
fn an_invalid_run_has_an_exit_code_of_its_own_where_that_is_wanted() {
    let broken = Fault::Answer(Answer::Status { status: 500, retry_after_s: None });
    let one_in_ten = Faults { requests: vec![(When::EveryNth(10), broken)], ..Faults::default() };
    let (dir, mock) = (Dir::new(), mock(one_in_ten));
    let said = dir.tokload(&run(&url(&mock), "-c 2 --num-prompts 40 --output-file run.json"));
    let table = said.shows(0);
    assert!(table.contains("verdict: invalid (failures, few_requests"), "{table}");
    assert!(said.err.starts_with("few_requests: 40 requests"), "{}", said.err);
    let stored = json(&dir.path("run.json"));
    assert_eq!((&stored["verdict"], &stored["levels"][0]["verdict"]), (&"invalid".into(), &"invalid".into()));

    let said = dir.tokload(&run(&url(&mock), "-c 2 --num-prompts 40 --no-save --quiet --strict"));
    said.shows(4);
    assert_eq!(said.err, "tokload: the measurement is invalid (--strict)\n");
    dir.tokload("report run.json").shows(0);
    dir.tokload("report run.json --strict").shows(4);
}

#[test]
fn a_run_that_is_valid_or_only_degraded_is_no_failure() {
    let dir = Dir::new();
    let simulate = |more: &str| dir.tokload(&format!("simulate --no-save --strict {more}"));
    let said = simulate("--request-rate 8 --num-prompts 300");
    assert!(said.shows(0).contains("verdict: valid\n"), "{said:?}");
    assert_eq!(said.err, "");
    let said = simulate("--request-rate 8 --num-prompts 30");
    assert!(said.shows(0).contains("verdict: degraded (few_requests)\n"), "{said:?}");
    assert!(said.err.starts_with("few_requests: 30 requests in a level"), "{said:?}");
    // Even then, that every request failed is the shorter word for it.
    let said = simulate("-c 1 --num-prompts 3 --queue-max 0 --cold-start 100");
    assert_eq!(said.code, 1, "{said:?}");
}
