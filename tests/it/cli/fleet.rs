//! Several servers on the command line.

use tokload::mock::{Mock, ServedBy, Settings};
use tokload::model;

use super::{Dir, json, run, url};

fn named(name: &str) -> Mock {
    let serving = model::Settings::fixed(5.0, 1.0);
    let served_by = ServedBy::new(name).unwrap();
    Mock::start(Settings { model: "m".to_owned(), served_by, serving, ..Settings::default() }).unwrap()
}

#[test]
fn a_fleet_of_a_file_is_told_apart_and_one_that_is_down_stops_nobody() {
    let mocks = [named("left"), named("right")];
    let dir = Dir::new();
    let fleet =
        format!("# two that answer\n{} 2\nhttp://127.0.0.1:1  # and one that does not\n", url(&mocks[1]));
    std::fs::write(dir.path("fleet.txt"), fleet).unwrap();
    let options = "--base-url @fleet.txt --replica-header X-Served-By --request-rate 200 --num-prompts 80 \
                   --output-file run.json --export csv=parts.csv --seed 5";
    let said = dir.tokload(&run(&url(&mocks[0]), options));
    assert!(said.err.contains("http://127.0.0.1:1: "), "{}", said.err);
    assert!(said.err.contains("the run goes on with the other servers"), "{}", said.err);
    assert!(said.out.contains("http://127.0.0.1:1 failed 20 of 20 requests (100.0 %)"), "{}", said.out);
    let file = json(&dir.path("run.json"));
    assert_eq!(file["plan"]["target"]["url_strategy"], "weighted");
    assert_eq!(file["plan"]["target"]["url_weights"], serde_json::json!([1, 2, 1]));
    let level = &file["levels"][0];
    let groups = level["groups"].as_array().unwrap();
    let of = |by: &str| -> Vec<(u64, u64)> {
        let of_kind = groups.iter().filter(|group| group["by"] == by);
        let counts = of_kind.map(|group| [&group["counts"]["ok"], &group["counts"]["failed"]]);
        counts.map(|[ok, failed]| (ok.as_u64().unwrap(), failed.as_u64().unwrap())).collect()
    };
    assert_eq!(of("endpoint"), [(20, 0), (40, 0), (0, 20)]);
    let mut replicas = of("replica");
    replicas.sort_unstable();
    assert_eq!(replicas, [(20, 0), (40, 0)]);
    assert!(said.out.contains("replica left") && said.out.contains("replica right"), "{}", said.out);
    // The same rows once more from the file, as a page and as a table.
    let page = dir.tokload("report run.json --format html");
    assert!(page.out.contains("TTFT by endpoint") && page.out.contains("TTFT by replica"));
    let rows = std::fs::read_to_string(dir.path("parts.csv")).unwrap();
    let parts: Vec<Vec<&str>> = rows.lines().map(|line| line.split(',').collect()).collect();
    let planned = parts[0].iter().position(|head| *head == "planned").unwrap();
    let part = parts[0].iter().position(|head| *head == "part").unwrap();
    let down = parts.iter().find(|row| row[part] == "http://127.0.0.1:1").unwrap_or_else(|| panic!("{rows}"));
    // Heads, the level twice because some failed, three endpoints, two replicas.
    assert_eq!((down[planned], parts.len()), ("20", 8), "{rows}");
    let cell = |head: &str| down[parts[0].iter().position(|other| *other == head).unwrap()];
    assert_eq!((cell("ttft_p50_ms"), cell("schedule_delay_p50_ms")), ("inf", ""), "{rows}");
    assert!(groups[0]["rates"]["out_tok_s"].as_f64().unwrap() > 0.0);
}

#[test]
fn answers_that_do_not_name_their_replica_are_said_to_be_in_no_row() {
    let serving = model::Settings::fixed(5.0, 1.0);
    let silent = Mock::start(Settings { model: "m".to_owned(), serving, ..Settings::default() }).unwrap();
    let mocks = [named("left"), named("right"), silent];
    let dir = Dir::new();
    let said = |header: &str, count: usize| {
        let others: Vec<String> =
            mocks[1..count].iter().map(|mock| format!("--base-url {}", url(mock))).collect();
        let options =
            format!("{} --replica-header {header} -c 3 --num-prompts 30 --seed 5", others.join(" "));
        dir.tokload(&run(&url(&mocks[0]), &options)).shows(0).to_owned()
    };
    let missing = said("x-serve-by", 2);
    assert!(missing.contains("no answer has the header x-serve-by"), "{missing}");
    let some = said("x-served-by", 3).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        some.contains("10 of 30 ok requests are in no replica's row: their answers have no header"),
        "{some}"
    );
    let all = said("x-served-by", 2);
    assert!(!all.contains("no replica's row") && !all.contains("no answer has"), "{all}");
}

#[test]
fn a_slower_replica_of_a_simulation_is_named() {
    let dir = Dir::new();
    let options = "simulate --replicas 4 --speeds 1,1,0.667,1 --slots 8 --noise 0.2 --url-strategy round_robin \
                   --request-rate 40 --num-prompts 600 --random-output-len 8 --no-save";
    let said = dir.tokload(options);
    assert!(said.out.contains("http://replica-3.simulation.invalid:80 is 1."), "{}", said.out);
    let refused = dir.tokload("simulate --url-strategy random --num-prompts 5");
    assert!(refused.err.contains("--replicas 4"), "{}", refused.err);
    let both =
        dir.tokload("simulate --replicas 2 --router round_robin --url-strategy random --num-prompts 5");
    assert!(both.err.contains("leave out one of the two"), "{}", both.err);
}
