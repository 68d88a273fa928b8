//! Shares of a run, and the one run that is made of them: what several processes sent is what one would have sent, and
//! what they measured is what one would have measured.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tokload::metrics::{Phase, Record};
use tokload::mock::Faults;
use tokload::run_file::{Loaded, WallTime};
use tokload::time::Stamp;

use super::{Dir, json, mock, run, url};
use crate::run_file::against_the_schema;

/// A server whose requests do not know of each other: only then is what a process measures independent of the others.
const FIXED: &str = "simulate --ttft 120 --itl 11 --random-output-len 4 -q";

impl Dir {
    /// Runs `options` in one process and in `of`, merges those, and gives both runs.
    fn alone_and_merged(&self, options: &str, of: u32) -> (Value, Value) {
        self.tokload(&format!("{FIXED} {options} --output-file one.json")).shows(0);
        for index in 1..=of {
            self.tokload(&format!("{FIXED} {options} --share {index}/{of} --output-file part.json")).shows(0);
        }
        // In any order.
        let mut files: Vec<String> =
            (1..=of).map(|index| format!("part.share-{index}-of-{of}.json")).collect();
        files.reverse();
        self.tokload(&format!("merge {} --output-file all.json", files.join(" "))).shows(0);
        (json(&self.path("one.json")), json(&self.path("all.json")))
    }
}

/// What one run and a merged one have in common: all but where and when they were made, and of how many parts.
fn measured(mut run: Value) -> Value {
    for key in ["created", "environment", "merged", "records", "metadata"] {
        run[key] = Value::Null;
    }
    for level in run["levels"].as_array_mut().unwrap() {
        level["shares"] = Value::Null;
        level["self_check"]["shards"] = Value::Null;
    }
    run
}

/// The measured records and those of the warm-up of each level as stored, from its own beginning on, in the order of their plan.
fn records(path: &Path) -> Vec<[Vec<[u8; Record::BYTES]>; 2]> {
    let loaded = Loaded::open(path).unwrap();
    let stored = loaded.records().unwrap();
    let of_level = |level: &tokload::run_file::schema::LevelBlock| {
        let later = Stamp::from_millis(1_000_000);
        let t0 = Stamp::from_nanos(level.span.t0_ns);
        let all = stored.range(level.records.unwrap().into()).unwrap();
        let mut all: Vec<Record> = all.map(|record| record.unwrap().moved(t0, later)).collect();
        all.sort_by_key(|record| (record.index, record.plan));
        [Phase::Measured, Phase::Warmup]
            .map(|phase| all.iter().filter(|record| record.phase == phase).map(Record::encode).collect())
    };
    loaded.run.levels.iter().map(of_level).collect()
}

#[test]
fn shares_and_what_is_made_of_them_are_as_the_schema_has_them() {
    let dir = Dir::new();
    let (_, all) = dir.alone_and_merged("-c 4 --num-prompts 8", 2);
    assert_eq!(against_the_schema(&all), Ok(()));
    let part = json(&dir.path("part.share-2-of-2.json"));
    assert_eq!(against_the_schema(&part), Ok(()));
    // What is stored for merging is read and written without loss.
    let path = dir.path("part.share-2-of-2.json");
    let stored = fs::read_to_string(&path).unwrap();
    assert_eq!(tokload::run_file::write::to_json(&Loaded::open(&path).unwrap().run), stored);
    let part: tokload::run_file::schema::Part =
        Loaded::open(&path).unwrap().run.levels[0].part.as_ref().unwrap().read().unwrap();
    assert_eq!(part.tally.whole().counts.ok, 4);
    // A plan of a share is a plan file, too.
    let printed = dir.tokload("simulate -c 4 --share 2/2 --print-config").out;
    fs::write(dir.path("plan.toml"), &printed).unwrap();
    assert!(printed.contains("[share]\nindex = 2\nof = 2\n"), "{printed}");
    assert_eq!(dir.tokload("simulate --config plan.toml --print-config").out, printed);
}

#[test]
fn merged_shares_are_the_run_of_one_process() {
    for (options, of) in [
        ("--request-rate 20,50 --num-prompts 60 --num-warmups 4", 3),
        ("--request-rate 12 --burstiness 0.3 --duration 61 --steady-cut mser5", 4),
        ("--request-rate 8 --arrival-pattern constant --duration 60", 2),
        ("-c 7,9 --num-prompts 50 --num-warmups 5 --start-spread 0 --think-time 0.05", 4),
        ("-c 7 --pace 10 --duration 60", 3),
        ("--num-prompts 40 --num-runs 2", 5),
        ("-c 4 --start-spread 0 --num-prompts 60 --num-prefix-prompts 3 --prefix-prompt-length 40", 3),
    ] {
        let dir = Dir::new();
        let (one, all) = dir.alone_and_merged(options, of);
        let found = all["levels"][0]["reuse"]["found_tokens"].as_u64().unwrap();
        // Of three prefixes each is new once.
        assert_eq!(found, if options.contains("prefix") { 57 * 40 } else { 0 }, "{options}");
        assert_eq!(measured(all), measured(one), "{options}");
        let (all, one) = (records(&dir.path("all.json")), records(&dir.path("one.json")));
        // As sets: their order in the file is that of the shares.
        assert_eq!(all, one, "{options}");
        assert!(all.iter().all(|[measured, _]| !measured.is_empty()));
    }
}

#[test]
fn shares_without_records_are_merged_by_their_histograms() {
    let dir = Dir::new();
    let (one, all) = dir.alone_and_merged("--request-rate 20 --duration 70 --no-records", 3);
    assert_eq!(measured(all.clone()), measured(one));
    assert!(all["records"].is_null() && all["levels"][0]["counts"]["ok"].as_u64() > Some(1000));
    // Records of some are no records of all.
    let dir = Dir::new();
    for (index, keep) in [(1, "--no-records"), (2, "")] {
        let line = format!("{FIXED} -c 4 --share {index}/2 {keep} --output-file part.json");
        dir.tokload(&line).shows(0);
    }
    dir.tokload("merge part.share-1-of-2.json part.share-2-of-2.json --output-file all.json").shows(0);
    let all = json(&dir.path("all.json"));
    assert_eq!(
        (all["levels"][0]["counts"]["ok"].clone(), all["plan"]["keep"]["records"].clone()),
        (16.into(), false.into())
    );
    assert!(dir.names().iter().all(|name| name != "all.records"), "{:?}", dir.names());
}

#[test]
fn recorded_requests_and_data_sets_are_dealt_as_well() {
    let dir = Dir::new();
    let lines: String = (0..30)
        .map(|i| format!("{{\"timestamp\":{},\"input_length\":{},\"output_length\":3}}\n", i * 37, 5 + i % 7))
        .collect();
    fs::write(dir.path("trace.jsonl"), lines).unwrap();
    let prompts: String = (0..20).map(|i| format!("{{\"prompt\":\"say {i} words\"}}\n")).collect();
    fs::write(dir.path("prompts.jsonl"), prompts).unwrap();
    for options in ["--trace trace.jsonl", "--dataset-path prompts.jsonl --request-rate 20 --num-prompts 50"]
    {
        let (mut one, all) = dir.alone_and_merged(&format!("{options} --force"), 4);
        // What prompts of a file share is known where the file is.
        one["levels"][0].as_object_mut().unwrap().remove("reuse");
        assert_eq!(all["levels"][0].get("reuse"), None, "{options}");
        fs::remove_file(dir.path("all.json")).unwrap();
        assert_eq!(all["levels"][0]["bodies"], one["levels"][0]["bodies"]);
        assert_eq!(measured(all), measured(one), "{options}");
        fs::remove_file(dir.path("all.records")).unwrap();
    }
}

#[test]
fn a_share_says_what_it_is_and_keeps_to_its_part_of_a_cap() {
    let dir = Dir::new();
    let line =
        "simulate --ttft 1000 --request-rate 50 -c 5 --num-prompts 40 --share 2/3 --output-file part.json";
    let said = dir.tokload(line);
    let table = said.shows(0);
    assert!(table.contains("share 2 of 3") && table.contains("poisson 50/s cap 5, share 2 of 3"), "{table}");
    assert!(said.err.contains("share 2 of 3 has at most 2 of 5 requests in flight"), "{}", said.err);
    let part = json(&dir.path("part.share-2-of-3.json"));
    assert_eq!(part["plan"]["share"], serde_json::json!({"index": 2, "of": 3}));
    // Requests 1, 4, 7 ... 37.
    assert_eq!(
        (part["levels"][0]["counts"]["ok"].clone(), part["levels"][0]["in_flight"]["max"].clone()),
        (13.into(), 2.into())
    );
    let rules: Vec<&str> = part["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["rule"].as_str().unwrap())
        .collect();
    assert!(rules.contains(&"share_of_run"), "{rules:?}");
    // A third of the rate is what was asked of it.
    let of_level = part["levels"][0]["findings"].to_string();
    assert!(!of_level.contains("realised_rate_off") && of_level.contains("the cap of 2"), "{of_level}");
    let explained = dir.tokload("report part.share-2-of-3.json --explain");
    assert!(explained.code == 2 && explained.err.contains("this is share 2 of 3"), "{explained:?}");
    dir.tokload("simulate --fit part.share-2-of-3.json")
        .refuses(2, &["--fit", "share 2 of 3", "tokload merge"]);
}

#[test]
fn plans_that_cannot_be_shared_are_refused() {
    let dir = Dir::new();
    for (options, parts) in [
        ("--share 0/3", ["--share", "counted from 1"]),
        ("--share 4/3", ["--share", "no share 4 of 3"]),
        ("--share 2", ["--share", "2/4"]),
        ("--share 1/70000", ["--share", "at most 65536"]),
        ("-c 2 --share 1/3", ["--max-concurrency", "2 users cannot be dealt to 3 shares"]),
        ("--request-rate 5 -c 2 --share 1/3", ["--max-concurrency", "2 requests in flight"]),
        ("--num-prompts 2 --share 1/3", ["--num-prompts", "2 requests cannot be dealt"]),
        ("-c 4 --until-ci 5% --share 1/3", ["--share", "--duration"]),
    ] {
        dir.tokload(&format!("simulate {options}")).refuses(2, &parts);
    }
    dir.tokload("run --base-url http://127.0.0.1:9 --share 1/2").refuses(2, &["--share", "--seed 1"]);
    assert_eq!(dir.names(), [""; 0]);
}

#[test]
fn files_that_are_not_the_shares_of_one_run_are_refused() {
    let dir = Dir::new();
    let make = |name: &str, options: &str| {
        let code = dir
            .tokload(&format!(
                "{FIXED} --request-rate 20 --num-prompts 20 {options} --output-file {name}.json"
            ))
            .code;
        assert_eq!(code, 0);
    };
    for index in 1..=3 {
        make("a", &format!("--share {index}/3"));
    }
    make("whole", "");
    make("seed", "--seed 5 --share 2/3");
    make("four", "--share 2/4");
    make("rate", "--request-rate 21 --share 2/3".replace("--request-rate 21", "--num-warmups 1").as_str());
    let merge = |files: &str| dir.tokload(&format!("merge {files} --output-file all.json"));
    let [one, two, three] = [1, 2, 3].map(|index| format!("a.share-{index}-of-3.json"));
    merge(&format!("{one} {two}")).refuses(2, &["1 of 3 shares are missing (3)", "--allow-missing"]);
    merge(&format!("{one} {two} {three} {two}")).refuses(2, &["are both share 2"]);
    merge(&format!("{one} whole.json"))
        .refuses(2, &["whole.json is a whole run", "tokload compare", "--num-runs"]);
    merge(&format!("{one} seed.share-2-of-3.json {three}"))
        .refuses(2, &["plan.seed is 0 in one and 5 in the other", "same --seed"]);
    merge(&format!("{one} four.share-2-of-4.json")).refuses(2, &["the number of shares is 3 in one and 4"]);
    merge(&format!("{one} rate.share-2-of-3.json {three}"))
        .refuses(2, &["plan.levels[0].warmups is 2 in one and 1 in the other"]);
    merge("").refuses(2, &["files"]);
    merge(&format!("{one} {two} nowhere.json")).refuses(2, &["nowhere.json"]);
    merge(&format!("{one} {two} {three} --align sideways")).refuses(2, &["--align", "auto or start"]);
    // Damaged: cut off, of a later version, by another tokload, without its exact counts, without its records.
    let text = fs::read_to_string(dir.path(&two)).unwrap();
    let broken = |name: &str, text: &str| fs::write(dir.path(name), text).unwrap();
    broken("cut.json", &text[..text.len() / 2]);
    broken("later.json", &text.replacen("\"version\": 1", "\"version\": 99", 1));
    broken("other.json", &text.replacen("\"version\": \"", "\"version\": \"9.", 1));
    let mut without: Value = serde_json::from_str(&text).unwrap();
    without["levels"][0].as_object_mut().unwrap().remove("part").unwrap();
    broken("without.json", &without.to_string());
    let mut wrong: Value = serde_json::from_str(&text).unwrap();
    wrong["levels"][0]["part"]["tally"]["histograms"]["ttft"]["totals"]["n"] = 3.into();
    broken("wrong.json", &wrong.to_string());
    for (name, part) in [
        ("cut.json", "not a"),
        ("later.json", "use a newer tokload"),
        ("other.json", "the program is tokload"),
        ("without.json", "has no `part`"),
        ("wrong.json", "another number of values"),
    ] {
        let said = merge(&format!("{one} {name} {three}"));
        assert!(said.code == 2 && said.err.contains(name) && said.err.contains(part), "{name}: {said:?}");
    }
    let records = dir.path("a.share-2-of-3.records");
    let whole = fs::read(&records).unwrap();
    fs::write(&records, &whole[..whole.len() - 200]).unwrap();
    merge(&format!("{one} {two} {three}")).refuses(2, &["a.share-2-of-3.records", "cut off"]);
    fs::remove_file(&records).unwrap();
    merge(&format!("{one} {two} {three}")).refuses(2, &["a.share-2-of-3.json", "not beside it"]);
    // Nothing is left behind, and nothing that was there is replaced.
    assert!(dir.names().iter().all(|name| !name.starts_with("all")), "{:?}", dir.names());
    fs::write(&records, whole).unwrap();
    merge(&format!("{one} {two} {three}")).shows(0);
    merge(&format!("{one} {two} {three}")).refuses(2, &["all.json is there already", "--force"]);
    dir.tokload(&format!("merge all.json {two} --output-file more.json"))
        .refuses(2, &["all.json is merged already", "at once"]);
}

/// A process that was stopped has fewer levels, and its last one goes as far as it sent.
#[test]
fn what_an_interrupted_share_has_is_merged_and_the_rest_is_left_out() {
    let dir = Dir::new();
    for index in [1, 2] {
        let line =
            format!("{FIXED} --request-rate 10,20 --duration 60 --share {index}/2 --output-file part.json");
        dir.tokload(&line).shows(0);
    }
    let path = dir.path("part.share-2-of-2.json");
    let mut part = json(&path);
    part["levels"].as_array_mut().unwrap().truncate(1);
    part["interrupted"] = true.into();
    let level = &mut part["levels"][0];
    level["interrupted"] = true.into();
    let until = level["span"]["t0_ns"].as_u64().unwrap() + 30_000_000_000;
    level["span"]["t1_ns"] = until.into();
    let span = level["span"].clone();
    level["window"] = serde_json::json!({
        "start_ns": span["t0_ns"], "end_ns": span["t2_ns"], "whole_level": true
    });
    level["statistics"] = Value::Null;
    fs::write(&path, part.to_string()).unwrap();
    let said = dir.tokload("merge part.share-1-of-2.json part.share-2-of-2.json --output-file all.json");
    let in_words = said.shows(0).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(in_words.contains("was cut short in share 2 after 30.0 s of 60 s"), "{in_words}");
    let all = json(&dir.path("all.json"));
    assert_eq!((all["levels"].as_array().unwrap().len(), all["interrupted"].clone()), (1, true.into()));
    let level = &all["levels"][0];
    // The other went on, with half of the load: what it sent then is in no rate.
    let window = &level["window"];
    let [start, end] = ["start_ns", "end_ns"].map(|edge| window[edge].as_u64().unwrap());
    assert_eq!((&window["whole_level"], end), (&false.into(), until));
    let planned = level["counts"]["planned"].as_u64().unwrap() as f64;
    let rate = planned / ((end - start) as f64 / 1e9);
    assert!((rate / 10.0 - 1.0).abs() < 0.15, "{rate}");
    let notes = all["merged"]["notes"].to_string();
    assert!(notes.contains("the last 1 of 2 levels") && notes.contains("share 2 was interrupted"), "{notes}");
}

/// What one host measured is hidden in the sums: there it stands as its own file has it.
#[test]
fn each_share_has_a_row_with_the_numbers_of_its_own_file() {
    let dir = Dir::new();
    for index in [1, 2] {
        let line = format!("{FIXED} -c 4 --num-prompts 40 --share {index}/2 --output-file part.json");
        dir.tokload(&line).shows(0);
    }
    let path = dir.path("part.share-2-of-2.json");
    let mut second = json(&path);
    second["environment"]["host"] = "n2".into();
    second["levels"][0]["verdict"] = "degraded".into();
    second["levels"][0]["rates"]["window"]["out_tok_s"] = 12.5.into();
    fs::write(&path, second.to_string()).unwrap();
    let said = dir.tokload("merge part.share-1-of-2.json part.share-2-of-2.json --output-file all.json");
    let all = json(&dir.path("all.json"));
    assert_eq!(against_the_schema(&all), Ok(()));
    let own = &all["levels"][0]["shares"][1]["own"];
    assert_eq!((&own["ok"], &own["failed"]), (&20.into(), &0.into()));
    assert_eq!((&own["verdict"], &own["out_tok_s"]), (&"degraded".into(), &12.5.into()));
    let p99 = own["ttft_ms_p99"].as_f64().unwrap();
    assert!((p99 - 120.0).abs() < 0.2, "{own}");
    let rows: Vec<&str> = said.shows(0).lines().filter(|line| line.starts_with("share ")).collect();
    let row = rows.iter().find(|row| row.starts_with("share 2 on n2")).unwrap();
    assert_eq!(row.split_whitespace().collect::<Vec<_>>()[4..8], ["20", "0", "13.07", "12.50"], "{rows:?}");
    assert_eq!(dir.tokload("report all.json").numbers(), said.numbers());
    // One share alone has nothing beside it.
    assert!(!dir.tokload("report part.share-2-of-2.json").shows(0).contains("share 2 on n2"));
}

#[test]
fn a_missing_share_is_said_and_the_load_is_what_was_offered() {
    let dir = Dir::new();
    for index in [1, 2, 4] {
        let line =
            format!("{FIXED} --request-rate 40 --num-prompts 400 --share {index}/4 --output-file part.json");
        dir.tokload(&line).shows(0);
    }
    let files = "part.share-1-of-4.json part.share-2-of-4.json part.share-4-of-4.json";
    let said = dir.tokload(&format!("merge {files} --allow-missing --output-file all.json"));
    let table = said.shows(0).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(table.contains("merged of 3 of 4 shares") && table.contains("3 of 4 shares"), "{table}");
    let all = json(&dir.path("all.json"));
    assert_eq!(all["merged"]["missing"], serde_json::json!([3]));
    assert_eq!(all["levels"][0]["counts"]["planned"], 300);
    let offered = all["levels"][0]["rates"]["window"]["offered_s"].as_f64().unwrap();
    assert!((offered - 30.0).abs() < 5.0, "{offered}");
    let findings = all["findings"].to_string();
    assert!(
        findings.contains("shares_missing") && findings.contains("75 % of the planned load"),
        "{findings}"
    );
    // They offered what was theirs.
    assert!(table.contains("asked 30"), "{table}");
    let of_level = all["levels"][0]["findings"].to_string();
    assert!(!of_level.contains("realised_rate_off"), "{of_level}");
}

/// Two processes at once against a real socket, which began together by their clocks, or did not.
#[test]
fn measured_shares_stand_where_their_clocks_say_only_if_they_began_far_apart() {
    let (dir, mock) = (Dir::new(), mock(Faults::default()));
    let line = |index: u32, name: &str| {
        let options = "--request-rate 100 --arrival-pattern constant --num-prompts 40 --seed 3 --workers 1 --no-cpu-affinity \
                       --save-chunks";
        run(&url(&mock), &format!("{options} --share {index}/2 --output-file {name}.json"))
    };
    let [first, second] = [1, 2].map(|index| dir.start(&line(index, "part")));
    first.end().shows(0);
    second.end().shows(0);
    let files = "part.share-1-of-2.json part.share-2-of-2.json";
    // The machine may have started one of them late: by how much, its file is made to say.
    let [one, two] = [1, 2].map(|index| dir.path(&format!("part.share-{index}-of-2.json")));
    let t0 = |path: &Path| json(path)["levels"][0]["span"]["t0_ns"].as_u64().unwrap();
    let shift = |created: String| {
        let mut part = json(&two);
        part["created"] = created.into();
        fs::write(&two, part.to_string()).unwrap();
    };
    let begins_later = |ns: u64| {
        let first = WallTime::parse(json(&one)["created"].as_str().unwrap()).unwrap();
        shift(WallTime::from_unix_nanos(first.unix_nanos() + t0(&one) + ns - t0(&two)).to_string());
    };
    begins_later(99_000_000);
    dir.tokload(&format!("merge {files} --output-file all.json")).shows(0);
    let all = json(&dir.path("all.json"));
    let level = &all["levels"][0];
    assert_eq!(level["counts"]["ok"], 40);
    assert_eq!(level["self_check"]["shards"].as_array().unwrap().len(), 2);
    assert_eq!(level["self_check"]["shards"][1]["share"], 2);
    assert_eq!(
        (&level["shares"][1]["began_s"], &level["shares"][1]["placed_s"]),
        (&0.099.into(), &0.0.into())
    );
    assert!(level["shares"][1]["host"].is_object() && !all["findings"].to_string().contains("shares_apart"));
    assert!(dir.names().contains(&"all.chunks".to_owned()), "{:?}", dir.names());
    // The same files, one of them saying that it began a day later: then there was no common load.
    begins_later(86_400_000_000_000);
    dir.tokload(&format!("merge {files} --output-file far.json")).shows(0);
    let far = json(&dir.path("far.json"));
    let findings = far["findings"].to_string();
    assert!(findings.contains("shares_apart") && findings.contains("--align start"), "{findings}");
    assert_eq!(far["levels"][0]["shares"][1]["placed_s"], 86_400.0);
    let t2 = far["levels"][0]["span"]["t2_ns"].as_u64().unwrap();
    assert!(t2 > 86_400_000_000_000, "{t2}");
    dir.tokload(&format!("merge {files} --align start --output-file near.json")).shows(0);
    let near = json(&dir.path("near.json"));
    assert_eq!(near["levels"][0]["rates"], all["levels"][0]["rates"]);
    assert!(!near["findings"].to_string().contains("shares_apart"));
    shift("yesterday".to_owned());
    dir.tokload(&format!("merge {files} --output-file none.json")).refuses(2, &["'yesterday'"]);
}

/// Each process numbers replicas as it meets them: here both call another one the first.
#[test]
fn replicas_that_shares_have_numbered_differently_are_told_apart_by_their_names() {
    let mocks = ["left", "right"].map(|name| {
        let serving = tokload::model::Settings::fixed(5.0, 1.0);
        let served_by = tokload::mock::ServedBy::new(name).unwrap();
        let settings =
            tokload::mock::Settings { model: "m".to_owned(), served_by, serving, ..Default::default() };
        tokload::mock::Mock::start(settings).unwrap()
    });
    let dir = Dir::new();
    let started = [1, 2].map(|index| {
        let options = format!(
            "--base-url {} --replica-header x-served-by --request-rate 100 --arrival-pattern constant --num-prompts 30 \
             --seed 3 --workers 1 --no-cpu-affinity --share {index}/2 --output-file all.json",
            url(&mocks[1])
        );
        dir.start(&run(&url(&mocks[0]), &options))
    });
    started.into_iter().for_each(|one| assert_eq!(one.end().code, 0));
    let files = [1, 2].map(|index| format!("all.share-{index}-of-2.json"));
    let names = files.each_ref().map(|file| json(&dir.path(file))["levels"][0]["replicas"].clone());
    assert_eq!(names, [serde_json::json!(["left"]), serde_json::json!(["right"])]);
    dir.tokload(&format!("merge {} --align start --output-file all.json", files.join(" "))).shows(0);
    let all = json(&dir.path("all.json"));
    let level = &all["levels"][0];
    let name_of = |group: &Value| level["replicas"][group["place"].as_u64().unwrap() as usize].as_str();
    let groups = level["groups"].as_array().unwrap().iter().filter(|group| group["by"] == "replica");
    let of_replicas: Vec<(&str, u64)> =
        groups.map(|group| (name_of(group).unwrap(), group["counts"]["ok"].as_u64().unwrap())).collect();
    assert_eq!(of_replicas, [("left", 15), ("right", 15)]);
}

/// A server counts the requests of all shares: what it says is that of the merged level, and of no share alone.
#[test]
fn what_a_server_said_is_set_against_the_requests_of_all_shares() {
    let (dir, mock) = (Dir::new(), mock(Faults::default()));
    let line = |index: u32| {
        let options = "--request-rate 80 --arrival-pattern constant --num-prompts 80 --seed 3 --workers 1 \
                       --no-cpu-affinity --num-warmups 0 --start-at together";
        let line = run(&url(&mock), options).replace("--num-warmups 1", "");
        format!("{line} --share {index}/2 --output-file all.json")
    };
    let started = [1, 2].map(|index| dir.start(&line(index)));
    started.into_iter().for_each(|one| assert_eq!(one.end().code, 0));
    let [share, other, all] =
        ["all.share-1-of-2.json", "all.share-2-of-2.json", "all.json"].map(|name| json(&dir.path(name)));
    let told = |run: &Value| run["levels"][0]["telemetry"].clone();
    let servers = told(&all)["servers"].clone();
    // Both have asked it, and it is told of once: as by whoever heard it for longer.
    assert_eq!(servers.as_array().unwrap().len(), 1, "{servers}");
    let server = &servers[0];
    assert!([&share, &other].iter().any(|run| server == &told(run)["servers"][0]), "{server}");
    let exporters = all["telemetry"]["exporters"].as_array().unwrap();
    let names: Vec<&str> = exporters.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, [&format!("{}/metrics", url(&mock)), "client"]);
    // A request of the other share may end behind the last reading of the first.
    let [own, network] = [&share, &all].map(|run| told(run)["network"].clone());
    assert!((70.0..=80.0).contains(&network["server_n"].as_f64().unwrap()), "{server}");
    // Forty of ours are not what it counted, eighty are.
    assert_eq!((&own["client_n"], &own["difference_ms"]), (&40.into(), &Value::Null), "{own}");
    assert_eq!(network["client_n"], 80);
    assert!(network["difference_ms"].as_f64().is_some_and(|ms| ms.abs() < 5.0), "{network}");
    // The machine of one of them is not that of all: it bears its name, once for both of its processes.
    assert!(told(&all)["host"].is_null() && !told(&share)["host"].is_null());
    let hosts = told(&all)["hosts"].clone();
    assert_eq!((hosts.as_array().unwrap().len(), &hosts[0]["name"]), (1, &share["environment"]["host"]));
    let lines = told(&all)["lines"].clone();
    let courses = lines.as_array().into_iter().flatten().filter(|line| line["what"] == "cpu_busy");
    assert!(courses.into_iter().all(|line| line["of"] == hosts[0]["name"]), "{lines}");
}
