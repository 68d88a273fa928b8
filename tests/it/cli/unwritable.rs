//! Places that cannot be written, and disks that are full: known before the run where that is possible, and else nothing of
//! what was measured is lost.

use std::fs;

use super::{Dir, Said, json};

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

/// The first program of `dir`, with `line`, behind what the shell does first. It has the number of the shell: `$$`.
fn behind(dir: &Dir, shell: &str, line: &str) -> Said {
    in_shell(dir, &format!("{shell}; exec \"$@\""), line)
}

/// The same by a `script` that runs it as `"$@"`.
fn in_shell(dir: &Dir, script: &str, line: &str) -> Said {
    dir.start_with(line, |command| {
        let binary = command.get_program().to_owned();
        let args: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
        let mut behind = std::process::Command::new("sh");
        behind.args(["-c", script, "sh"]).arg(binary).args(args);
        let (kept, state) = (command.get_current_dir().unwrap().to_owned(), dir.state.path());
        behind.current_dir(&kept).env("TOKLOAD_STATE_DIR", state).env("TMPDIR", kept);
        behind.stdin(std::process::Stdio::null());
        behind.stdout(fs::File::create(dir.prints.path().join("0.out")).unwrap());
        behind.stderr(fs::File::create(dir.prints.path().join("0.err")).unwrap());
        *command = behind;
    })
    .end()
}

/// The same where no file may have more than so many blocks of 512 bytes: what is written beyond fails as on a full disk.
fn limited(dir: &Dir, blocks: u32, line: &str) -> Said {
    // What it prints has no limit: that is no file on the disk.
    let script = format!(
        "{{ (trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"); echo $? > code; }} | cat; code=$(cat code); rm code; exit $code"
    );
    in_shell(dir, &script, line)
}

/// A file may have so many bytes that all but the lines fit.
#[test]
fn a_full_disk_takes_the_lines_and_nothing_else() {
    let dir = Dir::new();
    let said = limited(
        &dir,
        500,
        "simulate -q --max-concurrency 8 --num-prompts 1500 --random-output-len 2 --save-detailed --output-file run.json",
    );
    said.shows(5);
    assert!(said.out.contains("saved run.json"), "{said:?}");
    assert!(said.err.contains("run.jsonl") && said.err.contains("run.json and the .records"), "{said:?}");
    assert_eq!(dir.names(), ["run.json", "run.records"], "no lines that end somewhere");
    assert_eq!(json(&dir.path("run.json"))["levels"][0]["counts"]["ok"], 1500);
    assert_eq!(dir.tokload("report run.json").numbers(), said.numbers());
}

/// Records of 12 requests fit, and the beginning of the checkpoint; the run file does not, here or elsewhere.
#[test]
fn a_run_without_room_for_its_file_is_shown_whole_and_reported_from_what_there_is() {
    let dir = Dir::new();
    let line =
        SIMULATE.replace("--random-output-len 4", "--random-output-len 4 --save-detailed --export csv=x.csv");
    let said = limited(&dir, 40, &format!("{line} --output-file run.json"));
    let (table, file) = said.shows(5).split_once("\n{\n").expect("the text of the file is below the table");
    assert!(table.contains("TTFT ms") && !table.contains("saved run.json"), "{table}");
    let file: serde_json::Value = serde_json::from_str(&format!("{{\n{file}")).unwrap();
    assert_eq!(file["levels"][0]["counts"]["ok"], 12);
    for words in [
        "cannot write run.json",
        "the result follows on standard output, as JSON",
        "tokload report run.json tells what its checkpoint has",
        "run.jsonl, x.csv are not written: made of the saved run, which is not there",
    ] {
        assert!(said.err.contains(words), "{words}: {said:?}");
    }
    let names = dir.names();
    assert!(names.iter().any(|name| name == "run.records"), "{names:?}");
    assert!(!names.iter().any(|name| name.ends_with('~') || name.ends_with(".json")), "{names:?}");
    let report = dir.tokload("report run.json");
    let flowing = report.shows(0).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flowing.contains("the run was cut: process") && flowing.contains("2 users 12 0 "), "{report:?}");
    assert!(!flowing.contains("damaged") && !flowing.contains("not there"), "{report:?}");
    // Records of an earlier run under that name are none of this one's.
    fs::File::options()
        .write(true)
        .open(dir.path("run.records"))
        .unwrap()
        .set_modified(std::time::UNIX_EPOCH)
        .unwrap();
    let said = dir.tokload("report run.json").out;
    assert!(
        said.contains("12 requests") && said.contains("the file that they were written to is not there"),
        "{said}"
    );
}

/// The run file fits, the records do not.
#[test]
fn records_without_room_are_missing_by_name_and_number() {
    let dir = Dir::new();
    let line = "simulate -q --max-concurrency 8 --num-prompts 1500 --random-output-len 2 --save-detailed \
                --output-file run.json";
    let said = limited(&dir, 200, line);
    assert!(said.shows(5).contains("saved run.json"), "{said:?}");
    let names = dir.names();
    let [run, part] = &names[..] else { panic!("{names:?}") };
    assert!(run == "run.json" && part.starts_with("run.records.") && part.ends_with(".part"), "{names:?}");
    let kept = (fs::metadata(dir.path(part)).unwrap().len() - 16) / 128;
    let why = format!("they could not be written whole, {kept} of them are in {part}");
    assert!(said.err.contains("did not reach run.records") && said.err.contains(&why), "{said:?}");
    assert!(said.err.contains("run.jsonl is not written: it is made of the records"), "{said:?}");
    let report = dir.tokload("report run.json");
    assert_eq!(report.numbers(), said.numbers());
    let flowing = report.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flowing.contains(&format!("no records were kept: {why}")), "{flowing}");
    assert!((1..1500).contains(&kept), "{kept}");
}

/// A folder lies where the slice that is being filled is written.
#[test]
fn a_run_goes_on_without_a_checkpoint_that_cannot_be_kept() {
    let dir = Dir::new();
    let loud = SIMULATE.replace(" -q", "");
    let said = behind(&dir, "mkdir run.open.$$.part~", &format!("{loud} --output-file run.json"));
    assert!(said.shows(0).contains("saved run.json"), "{said:?}");
    assert!(said.err.contains("no checkpoint can be kept any more (Is a directory"), "{said:?}");
    let names: Vec<String> = dir.names().into_iter().filter(|name| !name.ends_with('~')).collect();
    assert_eq!(names, ["run.json", "run.records"]);
    assert_eq!(json(&dir.path("run.json"))["levels"][0]["counts"]["ok"], 12);
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
