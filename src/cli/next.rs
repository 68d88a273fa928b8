//! What a user would probably do next, in the words that were typed for this run: the server, its API and what is sent stay,
//! the load and what becomes of the result are others.

use super::aliases::Tool;
use super::args::{self, Asked, Command, Name};
use super::normalise::{Normal, normalise};
use super::run::order;
use super::simulate;
use crate::plan::Plan;
use crate::run_file::RunFile;
use crate::run_file::redact::REMOVED;
use crate::sys::clock::RunClock;

/// The commands behind `run`, which is in the file `saved`.
pub(super) fn commands(run: &RunFile, saved: Option<&str>, clock: &RunClock) -> Vec<String> {
    let mut next = Vec::new();
    if run.levels.iter().all(|level| level.counts.ok == 0) {
        // Nothing was measured that could be looked at again, and the same server under more load is no help.
        return next;
    }
    let plan = run.plan.read().ok();
    if let Some(saved) = saved.map(quoted) {
        let generates = plan.as_ref().is_none_or(|plan| plan.target.dialect.generates());
        let limits = if generates { "ttft:1000 tpot:100" } else { "e2e:100" };
        next.push(format!("tokload report {saved} --goodput {limits}"));
        if run.is_simulated() {
            // Of this run rather than of another one, where it can be read again.
            next.push(format!("tokload report {saved} --explain"));
            return next;
        }
    }
    next.extend(plan.and_then(|plan| again(run, &plan, clock)));
    next
}

/// The options of `typed`, the words after the program's name, that `keep` takes by their long names, as they are typed.
pub(super) fn kept(typed: &[String], keep: impl Fn(&str) -> bool) -> Vec<String> {
    Line::of(typed).map_or_else(Vec::new, |line| line.kept(keep))
}

/// The same server under another load.
fn again(run: &RunFile, plan: &Plan, clock: &RunClock) -> Option<String> {
    let line = Line::of(&run.environment.command_line)?;
    let mut words = line.kept(|option| !LOAD.contains(&option) && !RESULT.contains(&option));
    let is_typed = |words: &[String], option: &str| words.iter().any(|word| word == option);
    let command = if run.is_simulated() {
        words
            .extend(["--max-concurrency", "1,4,16,64", "--duration", "120s", "--explain"].map(str::to_owned));
        vec!["simulate"]
    } else if plan.workload.trace.is_some() {
        if !is_typed(&words, "--goodput") {
            words.extend(["--goodput", "ttft:1000", "tpot:100"].map(str::to_owned));
        }
        vec!["find-capacity"]
    } else {
        let load = if plan.levels.len() > 1 {
            let rate = bearable_rate(run.levels.iter().map(|level| level.rates.window.req_s));
            ["--request-rate".to_owned(), rate.to_string(), "--duration".to_owned(), "120s".to_owned()]
                .to_vec()
        } else {
            ["--max-concurrency", "1,2,4,8,16"].map(str::to_owned).to_vec()
        };
        words.extend(load);
        match line.tool {
            Tool::Vllm => vec!["bench", "serve"],
            Tool::Aiperf => vec!["profile"],
            Tool::Tokload => vec!["run"],
        }
    };
    let whole: Vec<String> = command.into_iter().map(str::to_owned).chain(words).collect();
    is_possible(&whole, clock).then(|| {
        let words: Vec<String> = whole.iter().map(quoted).collect();
        format!("tokload {}", words.join(" "))
    })
}

/// Whether these words would be taken: nobody is sent to a refusal.
fn is_possible(words: &[String], clock: &RunClock) -> bool {
    match args::parse(words.iter().map(Into::into)) {
        Ok(Asked::Command { command: Command::Run(args), tool, .. }) => order(&args, tool, clock).is_ok(),
        Ok(Asked::Command { command: Command::Simulate(words), .. }) => simulate::order(&words, None).is_ok(),
        Ok(Asked::Command { command: Command::FindCapacity(_), .. }) => true,
        _ => false,
    }
}

/// A command line as it was typed, under tokload's own names.
struct Line {
    name: Name,
    tool: Tool,
    /// Options with their values, `None` for a switch.
    options: Vec<(String, Option<String>)>,
}

impl Line {
    /// `None` for words that are no command line, and for options of another tool that its command takes only in its own
    /// spelling.
    fn of(typed: &[String]) -> Option<Line> {
        let Ok(Normal::Command { name, tool, args, .. }) = normalise(typed) else { return None };
        let flags = name.flags();
        let mut options = Vec::new();
        let mut words = args.into_iter().flatten();
        while let Some(word) = words.next() {
            let flag = flags.iter().find(|placed| placed.flag.long == word)?;
            let is_switch = matches!(flag.flag.kind, argh::FlagInfoKind::Switch);
            options.push((word, if is_switch { None } else { Some(words.next()?) }));
        }
        let line = Line { name, tool, options };
        (tool == Tool::Tokload || line.reads_the_same()).then_some(line)
    }

    /// Whether its tool's command understands its options under tokload's names.
    fn reads_the_same(&self) -> bool {
        let command: &[&str] = match self.tool {
            Tool::Vllm => &["bench", "serve"],
            Tool::Aiperf => &["profile"],
            Tool::Tokload => &[self.name.as_str()],
        };
        let words: Vec<String> =
            command.iter().map(|word| (*word).to_owned()).chain(self.kept(|_| true)).collect();
        let of = |words: &[String]| match normalise(words) {
            Ok(Normal::Command { args, .. }) => args.into_iter().flatten().collect(),
            _ => Vec::new(),
        };
        let own: Vec<String> = self
            .options
            .iter()
            .flat_map(|(option, value)| std::iter::once(option).chain(value))
            .cloned()
            .collect();
        of(&words) == own
    }

    /// What `keep` takes. A secret was removed before, and stands as a word for one.
    fn kept(&self, keep: impl Fn(&str) -> bool) -> Vec<String> {
        let options = self.options.iter().filter(|(option, _)| keep(option));
        options
            .flat_map(|(option, value)| {
                let value = value.as_ref().map(|value| value.replace(REMOVED, "KEY"));
                std::iter::once(option.clone()).chain(value)
            })
            .collect()
    }
}

/// A word as a shell takes it.
pub(super) fn quoted(word: impl AsRef<str>) -> String {
    let word = word.as_ref();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// A rate that the server should bear, in two digits: four fifths of the most that it completed; 2 if that is nothing.
fn bearable_rate(completed_s: impl Iterator<Item = f64>) -> f64 {
    let most = completed_s.fold(0.0, f64::max) * 0.8;
    if most < 0.001 {
        return 2.0;
    }
    let digit = 10f64.powi(most.log10().floor() as i32 - 1);
    // Through text, so that no binary dust stands behind the digits.
    let rate = (most / digit).round() * digit;
    format!("{rate:.4}").parse().unwrap_or(2.0)
}

/// Options that say how much is sent and when.
const LOAD: [&str; 38] = [
    "--arrival-pattern",
    "--burstiness",
    "--bursts",
    "--concurrency-ramp-duration",
    "--duration",
    "--exact-count",
    "--find-capacity",
    "--fixed-schedule",
    "--hysteresis",
    "--max",
    "--max-concurrency",
    "--max-failures",
    "--max-length",
    "--max-sessions",
    "--max-time",
    "--no-exact-count",
    "--num-prompts",
    "--num-runs",
    "--pace",
    "--pace-interval",
    "--ramp-up-end-rps",
    "--ramp-up-start-rps",
    "--ramp-up-strategy",
    "--request-rate",
    "--request-rate-ramp-duration",
    "--request-rate-series",
    "--request-rate-series-repeat",
    "--resume",
    "--share",
    "--share-timeout",
    "--start",
    "--start-at",
    "--start-spread",
    "--target",
    "--tolerance",
    "--trace-speedup",
    "--until-ci",
    "--until-ci-max",
];

/// Options that say what becomes of the result, and the seed, which a run of its own draws anew.
const RESULT: [&str; 22] = [
    "--append-result",
    "--dry-run",
    "--explain",
    "--export",
    "--force",
    "--format",
    "--label",
    "--metadata",
    "--no-progress",
    "--no-records",
    "--no-save",
    "--output-file",
    "--print-config",
    "--quiet",
    "--result-dir",
    "--result-filename",
    "--save-chunks",
    "--save-detailed",
    "--save-result",
    "--seed",
    "--strict",
    "--vary",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn the_rate_to_try_next_is_what_the_server_should_bear() {
        let of = |completed: &[f64]| bearable_rate(completed.iter().copied()).to_string();
        assert_eq!(of(&[1.45, 5.79, 23.18]), "19");
        assert_eq!(
            (of(&[1.45]), of(&[0.0123]), of(&[62_780.0])),
            ("1.2".to_owned(), "0.0098".to_owned(), "50000".to_owned())
        );
        assert_eq!((of(&[]), of(&[0.0, 0.0])), ("2".to_owned(), "2".to_owned()));
    }

    #[test]
    fn options_are_kept_under_their_own_names_and_secrets_are_not() {
        let all = |line: &str| kept(&words(line), |_| true).join(" ");
        assert_eq!(all("run -c4 --url=http://a --api-key <removed> --goodput ttft:1 tpot:2 -q"), {
            "--max-concurrency 4 --base-url http://a --api-key KEY --goodput ttft:1 --goodput tpot:2 --quiet"
        });
        assert_eq!(all("run --nonsense"), "");
        let few = kept(&words("quick --insecure --max-time 20"), |option| option == "--insecure");
        assert_eq!(few, ["--insecure"]);
    }

    #[test]
    fn a_word_is_quoted_where_a_shell_would_part_it() {
        assert_eq!(["a:1,b/c_%", "a b", "", "it's"].map(quoted), ["a:1,b/c_%", "'a b'", "''", "'it'\\''s'"]);
    }

    #[test]
    fn what_is_left_out_is_sorted_and_an_option() {
        let known: Vec<&str> =
            Name::ALL.into_iter().flat_map(Name::flags).map(|placed| placed.flag.long).collect();
        for list in [&LOAD[..], &RESULT] {
            assert!(list.is_sorted());
            assert_eq!(list.iter().find(|option| !known.contains(*option)), None);
        }
    }
}
