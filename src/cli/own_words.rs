//! Advice in the words of the command line that was typed: an option by the name that its tool has for it.

use super::aliases::Tool;
use super::normalise;
use crate::run_file::RunFile;
use crate::run_file::schema::FindingBlock;

/// `text`, which names options as `run` has them, as somebody can type it who speaks `tool`'s command line.
pub(super) fn spelled(tool: Tool, text: &str) -> String {
    match tool {
        Tool::Tokload | Tool::Vllm => text.to_owned(),
        Tool::Aiperf => {
            // Whole answers are what it asks for where nothing is said.
            let text = text.replace("leave out --no-streaming", "give --streaming");
            text.split(' ').map(option).collect::<Vec<_>>().join(" ")
        }
    }
}

/// Puts the advice of a run's findings into the words of the command line `typed`.
pub(super) fn advise(run: &mut RunFile, typed: &[String]) {
    let Some(tool) = normalise::tool_of(typed).filter(|tool| *tool == Tool::Aiperf) else { return };
    let of_levels = run.levels.iter_mut().filter_map(|level| level.findings.as_mut());
    for finding in run.findings.iter_mut().chain(of_levels).flatten() {
        *finding = in_words(tool, finding.clone());
    }
}

/// A finding with its advice in the words of `tool`.
pub(super) fn in_words(tool: Tool, finding: FindingBlock) -> FindingBlock {
    FindingBlock { remedy: spelled(tool, &finding.remedy), ..finding }
}

/// A word, which may be an option with a mark behind it.
fn option(word: &str) -> String {
    let name = word.trim_end_matches([',', ';', ':', '.', ')']);
    AIPERF
        .iter()
        .find(|(own, _)| *own == name)
        .map_or_else(|| word.to_owned(), |(own, other)| format!("{other}{}", &word[own.len()..]))
}

/// tokload's names of options, with aiperf's.
pub(super) const AIPERF: [(&str, &str); 7] = [
    ("--duration", "--benchmark-duration"),
    ("--max-concurrency", "--concurrency"),
    ("--num-prompts", "--request-count"),
    ("--num-warmups", "--warmup-request-count"),
    ("--random-input-len", "--isl"),
    ("--random-output-len", "--osl"),
    ("--seed", "--random-seed"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::normalise::{Normal, normalise};

    #[test]
    fn advice_names_the_options_of_its_tool() {
        let of_aiperf = |text| spelled(Tool::Aiperf, text);
        assert_eq!(of_aiperf("leave out --no-streaming"), "give --streaming");
        assert_eq!(
            of_aiperf("give --num-prompts 200 or more, or a longer --duration"),
            "give --request-count 200 or more, or a longer --benchmark-duration"
        );
        assert_eq!(of_aiperf("leave out --num-warmups, now"), "leave out --warmup-request-count, now");
        assert_eq!(spelled(Tool::Vllm, "give --num-prompts 200"), "give --num-prompts 200");
    }

    #[test]
    fn each_name_is_understood_as_what_it_stands_for() {
        for (own, other) in AIPERF {
            let words = ["profile", other, "7"].map(str::to_owned);
            let Ok(Normal::Command { args, .. }) = normalise(&words) else { panic!("{other}") };
            assert_eq!(args[0][0], own, "{other}");
        }
    }
}
