//! Places that cannot be written, and disks that are full: known before the run where that is possible, and else nothing of
//! what was measured is lost.

use std::fs;

use super::{Dir, json};

const SIMULATE: &str = "simulate -q --max-concurrency 2 --num-prompts 12 --random-output-len 4";

#[test]
fn a_place_that_cannot_be_written_is_refused_before_anything_is_sent() {
    let dir = Dir::new();
    fs::write(dir.path("file"), "").unwrap();
    for place in [
        "--output-file file/run.json",
        "--output-file none/run.json",
        "--result-dir file/sub",
        "--result-dir /proc/none",
        "--export csv=file/levels.csv",
        "--export hgrm=/proc/none",
    ] {
        dir.tokload(&format!("{SIMULATE} {place}")).refuses(2, &[place.rsplit(['=', ' ']).next().unwrap()]);
    }
    dir.tokload(&format!("{SIMULATE} --output-file run.json --save-detailed --force")).shows(0);
    fs::remove_file(dir.path("run.jsonl")).unwrap();
    fs::create_dir(dir.path("run.jsonl")).unwrap();
    dir.tokload(&format!("{SIMULATE} --output-file run.json --save-detailed --force"))
        .refuses(2, &["run.jsonl"]);
    assert_eq!(dir.names(), ["file", "run.json", "run.jsonl", "run.records"]);
    for line in ["report run.json --output file/x.html", "report run.json --export csv=file/x.csv"] {
        dir.tokload(line).refuses(2, &["file/x."]);
    }
}

#[test]
fn what_nobody_can_be_told_does_not_end_a_run() {
    let dir = Dir::new();
    let unheard = |line: &str| {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let deaf = |command: &mut std::process::Command| {
            command.stderr(full);
        };
        dir.start_with(line, deaf).end().code
    };
    let loud = SIMULATE.replace(" -q", "");
    assert_eq!(unheard(&format!("{loud} --output-file run.json")), 0);
    assert_eq!(json(&dir.path("run.json"))["levels"][0]["counts"]["ok"], 12);
    assert_eq!(unheard("simulate --max-concurrency none"), 2);
}

/// A file may have so many bytes that all but the lines fit.
#[test]
fn a_full_disk_takes_the_lines_and_nothing_else() {
    let dir = Dir::new();
    let limited = |line: &str| {
        dir.start_with(line, |command| {
            let binary = command.get_program().to_owned();
            let args: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
            let mut limited = std::process::Command::new("sh");
            limited.args(["-c", "trap '' XFSZ; ulimit -f 500; exec \"$@\"", "sh"]).arg(binary).args(args);
            let (kept, state) = (command.get_current_dir().unwrap().to_owned(), dir.state.path());
            limited.current_dir(kept).env("TOKLOAD_STATE_DIR", state).stdin(std::process::Stdio::null());
            limited.stdout(fs::File::create(dir.prints.path().join("0.out")).unwrap());
            limited.stderr(fs::File::create(dir.prints.path().join("0.err")).unwrap());
            *command = limited;
        })
        .end()
    };
    let said = limited(
        "simulate -q --max-concurrency 8 --num-prompts 1500 --random-output-len 2 --save-detailed --output-file run.json",
    );
    said.shows(5);
    assert!(said.out.contains("saved run.json"), "{said:?}");
    assert!(said.err.contains("run.jsonl") && said.err.contains("run.json and the .records"), "{said:?}");
    assert_eq!(dir.names(), ["run.json", "run.records"], "no lines that end somewhere");
    assert_eq!(json(&dir.path("run.json"))["levels"][0]["counts"]["ok"], 1500);
    assert_eq!(dir.tokload("report run.json").numbers(), said.numbers());
}

#[test]
fn what_to_do_next_is_in_the_words_that_were_typed() {
    let dir = Dir::new();
    let next = |line: &str| {
        let said = dir.tokload(line);
        said.out.split_once("\nnext:\n").map(|(_, next)| next.trim().to_owned()).unwrap_or_default()
    };
    let simulated = next(&format!("{SIMULATE} --slots 2 --random-input-len 77 --no-save --seed 5"));
    assert_eq!(
        simulated,
        "tokload simulate --slots 2 --random-output-len 4 --random-input-len 77 --max-concurrency 1,4,16,64 --duration 120s \
         --explain"
    );
    let mock = super::mock(tokload::mock::Faults::default());
    let url = super::url(&mock);
    let run =
        |more: &str| next(&format!("run -q --base-url {url} --num-prompts 2 --random-output-len 2 {more}"));
    let said = run("--header X-Team=a --api-key hunter2 --no-streaming --no-save");
    assert_eq!(
        said,
        format!(
            "tokload run --base-url {url} --random-output-len 2 --header X-Team=a --api-key KEY --no-streaming \
             --max-concurrency 1,2,4,8,16"
        )
    );
    fs::write(
        dir.path("a.jsonl"),
        "{\"timestamp\": 0, \"input_length\": 3, \"output_length\": 2, \"hash_ids\": [1]}\n",
    )
    .unwrap();
    let said = run("--trace a.jsonl --trace-format mooncake --no-save").replace(&url, "URL");
    assert!(said.starts_with("tokload find-capacity --base-url URL"), "{said}");
    assert!(said.contains("--trace a.jsonl --trace-format mooncake --goodput ttft:1000 tpot:100"), "{said}");
    let vllm = next(&format!(
        "bench serve --base-url {url} --model m --num-prompts 2 --random-output-len 2 --metric-view tokload"
    ));
    assert!(vllm.contains("tokload bench serve --base-url") && vllm.contains("--model m"), "{vllm}");
}
