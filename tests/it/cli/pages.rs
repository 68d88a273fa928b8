//! Reports in files, pictures and cards: where they go, and what is refused.

use std::fs;

use super::Dir;

/// A saved run of two levels.
fn simulated(dir: &Dir, name: &str) {
    let line = format!(
        "simulate -c 1,4 --num-prompts 8 --random-output-len 8 --seed 1 --output-file {name}.json -q"
    );
    dir.tokload(&line).shows(0);
}

#[test]
fn a_report_takes_the_form_that_its_name_says() {
    let dir = Dir::new();
    simulated(&dir, "run");
    for (name, begins) in [
        ("r.html", "<!doctype html>"),
        ("r.md", "tokload "),
        ("r.csv", "level,label,part,requests,repeat,"),
        ("r.json", "{"),
        ("r.txt", "tokload "),
    ] {
        let said = dir.tokload(&format!("report run.json --output {name}"));
        assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (0, "", ""), "{name}");
        let text = fs::read_to_string(dir.path(name)).unwrap();
        assert!(text.starts_with(begins), "{name}: {text:.80}");
    }
    // What is asked for by --format stands above the name, and standard output takes every form.
    let said = dir.tokload("report run.json --format md");
    assert_eq!((said.code, said.out), (0, fs::read_to_string(dir.path("r.md")).unwrap()));
    dir.tokload("report run.json --format csv --output r.html").ends(0);
    assert!(fs::read_to_string(dir.path("r.html")).unwrap().starts_with("level,label"));
    // The same file by either name.
    dir.tokload("report run.json --export csv=e.csv").shows(0);
    assert_eq!(fs::read(dir.path("e.csv")).unwrap(), fs::read(dir.path("r.csv")).unwrap());
    // Nothing half-written is left.
    assert!(dir.names().iter().all(|name| !name.ends_with(".part")), "{:?}", dir.names());
}

#[test]
fn charts_and_cards_are_pictures() {
    let dir = Dir::new();
    simulated(&dir, "run");
    dir.tokload("report run.json --charts pictures").shows(0);
    let names: Vec<String> = fs::read_dir(dir.path("pictures"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(names.iter().any(|name| name == "ttft-load.svg"), "{names:?}");
    for name in &names {
        let bytes = fs::read(dir.path("pictures").join(name)).unwrap();
        match name.rsplit_once('.').unwrap().1 {
            "png" => assert!(
                bytes.starts_with(b"\x89PNG") && names.contains(&name.replace(".png", ".svg")),
                "{name}"
            ),
            _ => assert!(bytes.starts_with(b"<svg "), "{name}"),
        }
    }
    let said = dir.tokload("share run.json");
    assert!(said.code == 0 && said.out.contains("| 4 users |"), "{said:?}");
    assert_eq!(said.err, "saved run-card.svg and run-card.png\n");
    assert!(fs::read(dir.path("run-card.png")).unwrap().starts_with(b"\x89PNG"));
    let said = dir.tokload("share run.json --no-card");
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    dir.tokload("share run.json --no-card --card x").refuses(2, &["--card", "--no-card"]);
    dir.tokload("share nothing.json").refuses(2, &["nothing.json"]);
}

#[test]
fn several_runs_overlay_in_charts_only() {
    let dir = Dir::new();
    simulated(&dir, "a");
    simulated(&dir, "b");
    dir.tokload("report a.json b.json --output both.html").ends(0);
    let page = fs::read_to_string(dir.path("both.html")).unwrap();
    assert!(page.contains(">A: p50<") && page.contains(">B: p50<"));
    dir.tokload("report a.json b.json").refuses(2, &["several", "tokload compare"]);
    dir.tokload("report").refuses(2, &["tokload report", "has no run"]);
}

#[test]
fn what_cannot_be_written_is_said() {
    let dir = Dir::new();
    simulated(&dir, "run");
    dir.tokload("report run.json --output report").refuses(2, &["--output", ".html"]);
    dir.tokload("report run.json --format pdf").refuses(2, &["--format", "'pdf'", "markdown"]);
    dir.tokload("report run.json --format json --output ./run.json").refuses(2, &["--output", "is a run"]);
    dir.tokload("report run.json --explain --output r.md").refuses(2, &["--explain", "--output"]);
    dir.tokload("report run.json --metric-view vllm --format html")
        .refuses(2, &["--metric-view", "--format"]);
    fs::write(dir.path("taken"), "").unwrap();
    dir.tokload("report run.json --output taken/r.html").refuses(2, &["taken/r.html"]);
    dir.tokload("report run.json --charts taken").refuses(2, &["taken"]);
    assert_eq!(dir.names(), ["run.json", "run.records", "taken"]);
}
