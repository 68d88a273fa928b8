//! Help: the same facts that the arguments are read by, laid out for reading.
//!
//! argh's own help is not used: it has no groups, and its usage line would name sixty options.

use argh::{FlagInfo, FlagInfoKind};

mod defaults;

use super::aliases::Tool;
use super::args::{Name, Placed};
use super::own_words;

/// `tokload --help`.
pub(super) fn of_program() -> String {
    let mut out =
        format!("tokload {}: a load generator for LLM inference servers\n", env!("CARGO_PKG_VERSION"));
    out.push_str("\nUsage: tokload COMMAND [options]\n\nCommands:\n");
    for name in Name::ALL {
        entry(&mut out, name.as_str(), name.info().description);
    }
    out.push_str("\n`tokload COMMAND --help` shows the options of a command with their defaults.\n");
    out.push_str(
        "`tokload bench serve ...` and `tokload profile ...` take the command lines of vLLM and aiperf.\n",
    );
    out.push_str(
        "Exit codes: 0 done, 1 a gate failed, 2 bad arguments, plan or file, 3 target unreachable,\n",
    );
    out.push_str("4 measurement invalid (with --strict), 5 our own fault, 130 interrupted.\n");
    out
}

/// `tokload COMMAND --help`; of the command line of another `tool` with that tool's name and defaults.
pub(super) fn of_command(name: Name, tool: Tool) -> String {
    let info = name.info();
    let (command, description) = match tool {
        Tool::Tokload => (name.as_str(), info.description),
        Tool::Aiperf => {
            ("profile", "Load a server, with the options, defaults and tables of aiperf profile.")
        }
        Tool::Vllm => {
            ("bench serve", "Load a server, with the options, defaults and tables of vllm bench serve.")
        }
    };
    let mut out = format!("{description}\n\nUsage: tokload {command}");
    for word in info.positionals {
        out.push_str(&format!(" {}", word.name.to_uppercase()));
    }
    out.push_str(" [options]\n");
    if !info.positionals.is_empty() {
        out.push('\n');
    }
    for word in info.positionals {
        entry(&mut out, &word.name.to_uppercase(), word.description);
    }
    let mut first = true;
    for Placed { flag, .. } in shown(name, tool) {
        match headings(name).find(|(option, _)| *option == flag.long) {
            Some((_, heading)) => out.push_str(&format!("\n{heading}:\n")),
            None if first => out.push_str("\nOptions:\n"),
            None => {}
        }
        first = false;
        let default = defaults::of(tool, flag.long);
        let text =
            default.map_or_else(|| flag.description.to_owned(), |own| defaults::put(flag.description, own));
        entry(&mut out, &own_words::spelled(tool, &usage(flag)), &own_words::spelled(tool, &text));
    }
    if tool != Tool::Tokload {
        out.push_str(
            "\nThe names of these options in that tool are taken as well; src/cli/FLAGS.md lists them.\n",
        );
    }
    out.push('\n');
    entry(&mut out, "-h, --help", "print this and end");
    out
}

/// The options that help lists. That answers are streamed has to be said to aiperf alone.
fn shown(name: Name, tool: Tool) -> impl Iterator<Item = Placed> {
    let all = name.flags().into_iter();
    all.filter(move |Placed { flag, .. }| {
        (!flag.hidden || tool == Tool::Aiperf && flag.long == "--streaming")
            && flag.long != "--help"
            && name.refusal(flag.long).is_none()
    })
}

/// `-c, --max-concurrency <n,...>`.
fn usage(flag: &FlagInfo<'_>) -> String {
    let short = flag.short.map_or_else(String::new, |short| format!("-{short}, "));
    match flag.kind {
        FlagInfoKind::Switch => format!("{short}{}", flag.long),
        FlagInfoKind::Option { arg_name } => format!("{short}{} <{arg_name}>", flag.long),
    }
}

/// A term with its description, wrapped beside it.
fn entry(out: &mut String, term: &str, description: &str) {
    out.push_str(&format!("  {term}"));
    let mut column = 2 + term.len();
    // A term that reaches into the description's column leaves it the following lines.
    if column + 2 > INDENT {
        out.push('\n');
        column = 0;
    }
    out.push_str(&" ".repeat(INDENT - column));
    column = INDENT;
    // argh doubles braces, as if its descriptions were formats.
    let description = description.replace("{{", "{").replace("}}", "}");
    for word in description.split_whitespace() {
        if column > INDENT && column + 1 + word.len() > WIDTH {
            out.push('\n');
            out.push_str(&" ".repeat(INDENT));
            column = INDENT;
        } else if column > INDENT {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += word.len();
    }
    out.push('\n');
}

/// The options that begin a group, with its heading.
fn headings(name: Name) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    let (own, of_plans): (&[_], &[_]) = match name {
        Name::FindCapacity => (&[("--vary", "The search")], &PLAN_HEADINGS),
        Name::Lint | Name::Run => (&[], &PLAN_HEADINGS),
        Name::Simulate => (&SIMULATE_HEADINGS, &PLAN_HEADINGS),
        Name::MockServer => (&MOCK_HEADINGS, &[]),
        Name::Check
        | Name::Compare
        | Name::Import
        | Name::Merge
        | Name::Share
        | Name::Quick
        | Name::Report
        | Name::Selftest => (&[], &[]),
    };
    own.iter().chain(of_plans)
}

const SIMULATE_HEADINGS: [(&str, &str); 4] = [
    ("--find-capacity", "The simulation"),
    ("--model-preset", "The server"),
    ("--vary", "The search of --find-capacity"),
    ("--url-strategy", "How to ask"),
];

const PLAN_HEADINGS: [(&str, &str); 11] = [
    ("--base-url", "Whom to ask"),
    ("--max-concurrency", "How requests arrive"),
    ("--trace", "A recorded trace"),
    ("--dataset-name", "What to ask"),
    ("--request-cancellation-rate", "How users behave"),
    ("--goodput", "Limits"),
    ("--strict", "What the numbers are worth"),
    ("--workers", "The client"),
    ("--server-metrics", "What servers and GPUs say meanwhile"),
    ("--output-file", "The result"),
    ("--config", "The plan"),
];

/// The same of `mock-server`.
const MOCK_HEADINGS: [(&str, &str); 7] = [
    ("--host", "Where to listen"),
    ("--model", "What is answered"),
    ("--fault", "What goes wrong"),
    ("--tls", "TLS"),
    ("--workers", "The threads"),
    ("--truth-out", "The truth"),
    ("--model-preset", "When tokens come"),
];

const INDENT: usize = 30;
const WIDTH: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_lists_every_option_and_stays_within_its_width() {
        for name in Name::ALL {
            let help = of_command(name, Tool::Tokload);
            assert!(help.lines().all(|line| line.len() <= WIDTH), "{help}");
            for Placed { flag, .. } in shown(name, Tool::Tokload) {
                assert!(help.contains(flag.long), "{}", flag.long);
            }
        }
        assert!(of_program().lines().all(|line| line.len() <= WIDTH));
    }

    #[test]
    fn every_heading_stands_before_an_option() {
        let heads = |help: &str, heading: &str| help.contains(&format!("\n{heading}:\n"));
        let (run, simulate) =
            (of_command(Name::Run, Tool::Tokload), of_command(Name::Simulate, Tool::Tokload));
        let mock = of_command(Name::MockServer, Tool::Tokload);
        assert!(PLAN_HEADINGS.iter().all(|(_, heading)| heads(&run, heading)), "{run}");
        assert!(SIMULATE_HEADINGS.iter().all(|(_, heading)| heads(&simulate, heading)), "{simulate}");
        assert!(MOCK_HEADINGS.iter().all(|(_, heading)| heads(&mock, heading)), "{mock}");
    }

    #[test]
    fn simulate_shows_the_options_of_the_server_and_of_the_plan_but_not_whom_to_ask() {
        let help = of_command(Name::Simulate, Tool::Tokload);
        for option in ["--explain", "--slots", "--max-concurrency", "--goodput", "--output-file"] {
            assert!(
                help.contains(&format!("{option} ")) || help.contains(&format!("{option}\n")),
                "{option}"
            );
        }
        for option in ["--base-url", "--api-key", "--workers", "Whom to ask", "The client"] {
            assert!(!help.contains(option), "{option}");
        }
        assert_eq!(help.matches("--seed").count(), 1);
    }

    #[test]
    fn the_command_lines_of_other_tools_have_help_of_their_own() {
        let flat = |tool| of_command(Name::Run, tool).split_whitespace().collect::<Vec<_>>().join(" ");
        let (vllm, aiperf) = (flat(Tool::Vllm), flat(Tool::Aiperf));
        assert!(vllm.contains("Usage: tokload bench serve [options]"), "{vllm}");
        assert!(aiperf.contains("Usage: tokload profile [options]"), "{aiperf}");
        assert!(vllm.contains("--num-prompts <n> requests per level (default: 1000)"), "{vllm}");
        assert!(aiperf.contains("--request-count <n> requests per level (default: 10, or twice"), "{aiperf}");
        assert!(aiperf.contains("--streaming ask for streamed answers (default: off)"), "{aiperf}");
        for tool in [Tool::Vllm, Tool::Aiperf] {
            assert!(of_command(Name::Run, tool).lines().all(|line| line.len() <= WIDTH));
        }
    }
}
