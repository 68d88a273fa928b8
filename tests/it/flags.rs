//! Every option of the other tools' command lines: what becomes of it is in the table, and the page that shows the
//! table is true.
//!
//! `flags/*.txt` hold the options as one may write them, one a line, with their values behind them.

use std::fmt::Write as _;
use std::path::PathBuf;

use tokload::cli::aliases::{Tool, Verdict, converted, verdict, wrong};
use tokload::cli::args::{Asked, Command, RunArgs, parse};
use tokload::plan::Error;

/// A tool's list.
struct List {
    /// Its name.
    name: &'static str,
    /// How its command line is given to us, and whose it then is.
    command: (&'static [&'static str], Tool),
    text: &'static str,
}

const LISTS: [List; 5] = [
    List {
        name: "vLLM, `bench serve`",
        command: (&["bench", "serve"], Tool::Vllm),
        text: include_str!("flags/vllm.txt"),
    },
    List {
        name: "aiperf, `profile`",
        command: (&["profile"], Tool::Aiperf),
        text: include_str!("flags/aiperf.txt"),
    },
    List {
        name: "SGLang, `bench_serving`",
        command: (&["run"], Tool::Tokload),
        text: include_str!("flags/sglang.txt"),
    },
    List {
        name: "servebench, `run`",
        command: (&["run"], Tool::Tokload),
        text: include_str!("flags/servebench.txt"),
    },
    List {
        name: "guidellm, `benchmark run`",
        command: (&["run"], Tool::Tokload),
        text: include_str!("flags/guidellm.txt"),
    },
];

/// An option of another tool with the values that one may give it.
struct Flag {
    option: &'static str,
    values: Vec<&'static str>,
}

impl List {
    fn flags(&self) -> impl Iterator<Item = Flag> {
        let lines = self.text.lines().filter(|line| line.starts_with('-'));
        lines.map(|line| {
            let mut words = line.split(' ');
            Flag { option: words.next().unwrap(), values: words.collect() }
        })
    }

    fn verdict(&self, flag: &Flag) -> Option<Verdict> {
        verdict(self.command.1, flag.option)
    }

    /// What `flag` is read as, with a word behind it that only the whole reading of its values leaves in peace.
    fn read(&self, flag: &Flag) -> Result<RunArgs, Error> {
        let (command, _) = self.command;
        let words = [command, &[flag.option], &flag.values, &["--start-spread", "7"]].concat();
        match parse(words.iter().map(Into::into))? {
            Asked::Command { command: Command::Run(args), .. } => Ok(*args),
            other => panic!("{words:?}: {other:?}"),
        }
    }
}

#[test]
fn every_option_of_the_other_tools_is_taken_or_refused_with_a_remedy() {
    let mut faults = Vec::new();
    for list in &LISTS {
        for flag in list.flags() {
            match list.verdict(&flag) {
                Some(Verdict::Refused(remedy)) if remedy.len() < 12 => {
                    faults.push(format!("{}: {} has the remedy '{remedy}'", list.name, flag.option));
                }
                Some(_) => {}
                None => faults.push(format!("{}: {} is unknown", list.name, flag.option)),
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn what_is_taken_takes_the_values_that_the_other_tool_gives_it() {
    let mut faults = Vec::new();
    for list in &LISTS {
        for flag in list.flags() {
            let read = list.read(&flag);
            let fault = match (list.verdict(&flag), &read) {
                (Some(Verdict::Refused(remedy)), Err(error)) => {
                    (error.remedy != remedy || error.subject != flag.option).then(|| error.to_string())
                }
                (Some(Verdict::Refused(_)), Ok(_)) => Some("is read".to_owned()),
                (_, Ok(args)) => {
                    (args.start_spread.as_deref() != Some("7")).then(|| "eats a word".to_owned())
                }
                (_, Err(error)) => Some(error.to_string()),
            };
            faults.extend(
                fault.map(|fault| format!("{}: {} {:?}: {fault}", list.name, flag.option, flag.values)),
            );
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Options that our own command line has, and another tool means otherwise. On that tool's own command line, where we
/// have one, they mean what they mean there.
const OTHERWISE: [(&str, &str, &str); 10] = [
    (
        "SGLang",
        "--output-file",
        "its file gets a line of JSON; here it is the run file (`--append-result` adds lines of vLLM's form)",
    ),
    (
        "SGLang",
        "--random-range-ratio",
        "the smallest share of the length, 1 for all alike; here, as in vLLM, a share either way, 0 for all alike",
    ),
    ("SGLang", "--seed", "42 by default; here a fresh one, which is printed"),
    (
        "guidellm",
        "--backend",
        "`kind=openai_http,target=URL`; here the API alone, and the server by `--base-url`",
    ),
    ("guidellm", "--label", "`key=value`; here a text (`--metadata` takes pairs)"),
    ("guidellm", "--seed", "`kind=static,value=N`; here the number alone"),
    (
        "guidellm",
        "--warmup",
        "a share or seconds that are cut off; here a number of requests that are sent before",
    ),
    ("servebench", "--config", "a file of its own keys; here a plan as `--print-config` writes it"),
    ("servebench", "-c", "its `--config`; here `--max-concurrency`"),
    (
        "servebench",
        "--trace",
        "a file of prompts without times; here one with times (`--dataset-path` takes prompts)",
    ),
];

fn counts(list: &List) -> String {
    let verdicts: Vec<Verdict> = list.flags().filter_map(|flag| list.verdict(&flag)).collect();
    let refused = verdicts.iter().filter(|verdict| matches!(verdict, Verdict::Refused(_))).count();
    format!("| {} | {} | {} | {refused} |", list.name, verdicts.len(), verdicts.len() - refused)
}

fn page() -> String {
    let mut page = "# What becomes of the options of other tools\n\n\
        A test writes this page from the table in `src/cli/aliases.rs` and the lists in `tests/it/flags`, and holds it \
        true.\n\n\
        `tokload bench serve ...` reads a command line as vLLM's client does, with its defaults, and `tokload profile \
        ...` as aiperf; options of the others are read by `tokload run`.\n\n\
        | command line | options | taken | refused |\n|---|---|---|---|\n"
        .to_owned();
    for list in &LISTS {
        page.push_str(&counts(list));
        page.push('\n');
    }
    page.push_str("\n## The same name, another meaning\n\nOn a command line of `tokload run`:\n\n");
    page.push_str("| tool | option | there and here |\n|---|---|---|\n");
    for (tool, option, sentence) in OTHERWISE {
        writeln!(page, "| {tool} | `{option}` | {sentence} |").unwrap();
    }
    for list in &LISTS {
        write!(page, "\n## {}\n\n| option | here |\n|---|---|\n", list.name).unwrap();
        for flag in list.flags() {
            let cell = fate(list, &flag).replace('|', "\\|");
            writeln!(page, "| `{}` | {cell} |", flag.option).unwrap();
        }
    }
    page
}

/// What becomes of an option, in words.
fn fate(list: &List, flag: &Flag) -> String {
    match list.verdict(flag).unwrap() {
        Verdict::Accepted => "taken; it is so anyway".to_owned(),
        Verdict::Mapped(name) if name == flag.option => "the same".to_owned(),
        Verdict::Mapped(name) => format!("`{name}`"),
        Verdict::Converted => {
            let value = flag.values.first().copied().unwrap_or_default();
            match converted(list.command.1, flag.option, value).unwrap() {
                Ok(words) if words.is_empty() => format!("by its value; `{value}` is so anyway"),
                Ok(words) => format!("by its value; `{value}` is `{words}`"),
                Err(why) => format!("by its value; `{value}` is refused: {why}"),
            }
        }
        Verdict::Refused(remedy) => {
            format!("refused: {}; {remedy}", wrong(list.command.1, flag.option).unwrap())
        }
    }
}

/// `TOKLOAD_REWRITE_FLAGS=1` writes the page anew, and the numbers in the README.
#[test]
fn the_page_and_the_readme_show_the_table() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let (place, readme) = (root.join("src/cli/FLAGS.md"), root.join("README.md"));
    let rewrites = std::env::var_os("TOKLOAD_REWRITE_FLAGS").is_some();
    if rewrites {
        std::fs::write(&place, page()).unwrap();
    }
    let text = std::fs::read_to_string(&readme).unwrap();
    let is_row = |line: &str, list: &List| line.starts_with(&format!("| {} |", list.name));
    let counted: Vec<String> = text
        .lines()
        .map(|line| LISTS.iter().find(|list| is_row(line, list)).map_or_else(|| line.to_owned(), counts))
        .collect();
    let counted = counted.join("\n") + "\n";
    if rewrites {
        std::fs::write(&readme, &counted).unwrap();
    }
    let again = "run TOKLOAD_REWRITE_FLAGS=1 cargo test --test it flags";
    assert!(LISTS.iter().all(|list| counted.contains(&counts(list))), "the README lacks a tool: {again}");
    assert_eq!(std::fs::read_to_string(&readme).unwrap(), counted, "the README counts otherwise: {again}");
    assert_eq!(std::fs::read_to_string(&place).unwrap(), page(), "the page is of another table: {again}");
}

#[test]
fn options_that_mean_something_else_elsewhere_are_ours() {
    for (tool, option, _) in OTHERWISE {
        assert!(matches!(verdict(Tool::Tokload, option), Some(Verdict::Mapped(_))), "{tool} {option}");
    }
}
