//! What the command lines of other tools have by default where `run` has something else, for their help. What is said here
//! is what `plan_from_args` does for that tool.

use crate::cli::aliases::Tool;

/// What `option`, by tokload's name, is for `tool` where it is not given; `None` where that is as for `run`.
pub(super) fn of(tool: Tool, option: &str) -> Option<&'static str> {
    let table: &[(&str, &str)] = match tool {
        Tool::Tokload => &[],
        Tool::Aiperf => &AIPERF,
        Tool::Vllm => &VLLM,
    };
    table
        .iter()
        .chain(if tool == Tool::Tokload { &[] } else { &BOTH[..] })
        .find(|(name, _)| *name == option)
        .map(|(_, default)| *default)
}

/// `description` with `default` in the place of its own.
pub(super) fn put(description: &str, default: &str) -> String {
    let own = ["(default:", "(required"].iter().filter_map(|own| description.rfind(own)).max();
    let kept = own.map_or(description, |at| &description[..at]);
    format!("{} (default: {default})", kept.trim_end())
}

const BOTH: [(&str, &str); 6] = [
    ("--connect-timeout", "0"),
    ("--first-token-timeout", "0"),
    ("--goodput", "none"),
    ("--no-progress-timeout", "0"),
    ("--num-warmups", "0"),
    ("--request-timeout-seconds", "21600"),
];

const VLLM: [(&str, &str); 9] = [
    ("--backend", "openai, or what the URL's path says"),
    ("--base-url", "http://127.0.0.1:8000"),
    ("--compat", "vllm"),
    ("--ignore-eos", "on for random prompts, else off"),
    ("--metric-view", "vllm"),
    ("--num-prompts", "1000"),
    ("--random-input-len", "1024"),
    ("--random-output-len", "128, or what a data set says"),
    ("--seed", "0"),
];

const AIPERF: [(&str, &str); 9] = [
    ("--base-url", "http://localhost:8000"),
    ("--ignore-eos", "off"),
    ("--max-concurrency", "1 without a rate, else no limit"),
    ("--metric-view", "aiperf"),
    ("--no-streaming", "on"),
    ("--num-dataset-entries", "100, or as many as --request-count; all of a file"),
    ("--num-prompts", "10, or twice the --concurrency where that is more"),
    ("--random-input-len", "550"),
    ("--streaming", "off"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::{self, Asked, Command};
    use crate::cli::plan_from_args::{self, Surroundings};
    use crate::plan::Plan;

    fn plan(line: &str) -> Plan {
        let words = line.split_whitespace().map(Into::into);
        let Ok(Asked::Command { command: Command::Run(args), tool, .. }) = args::parse(words) else {
            panic!("{line}")
        };
        let around = Surroundings {
            tool,
            fresh_seed: 77,
            config: None,
            env: &|_| None,
            read: &|_| Err(std::io::ErrorKind::NotFound.into()),
        };
        plan_from_args::order(&args, &around).unwrap().plan
    }

    #[test]
    fn what_is_said_is_what_is_done() {
        for (tool, line) in [(Tool::Vllm, "bench serve --model m"), (Tool::Aiperf, "profile --model m")] {
            let plan = plan(line);
            let level = &plan.levels[0];
            for (option, done) in [
                ("--base-url", plan.target.endpoints[0].url.clone()),
                ("--num-warmups", level.warmups.to_string()),
                ("--num-prompts", level.stop.units.unwrap().to_string()),
                ("--random-input-len", plan.workload.input_words.to_string()),
                ("--request-timeout-seconds", plan.limits.total_s.to_string()),
                ("--first-token-timeout", plan.limits.first_s.to_string()),
                ("--no-progress-timeout", plan.limits.gap_s.to_string()),
                ("--connect-timeout", plan.limits.connect_s.to_string()),
            ] {
                let said = of(tool, option).unwrap();
                assert_eq!(said.split(',').next().unwrap(), done, "{line}: {option}");
            }
            assert!(plan.slo.is_empty());
        }
        let (vllm, aiperf) = (plan("bench serve --model m"), plan("profile --model m"));
        assert_eq!((vllm.seed, vllm.target.dialect.name()), (0, "openai"));
        assert_eq!(
            (vllm.workload.output_tokens.fixed(), vllm.workload.options.ignore_eos),
            (Some(128), true)
        );
        assert_eq!((aiperf.levels[0].load.users, aiperf.target.stream), (Some(1), false));
        assert!(!aiperf.workload.options.ignore_eos);
    }

    #[test]
    fn a_default_stands_in_the_place_of_the_own_one() {
        assert_eq!(put("the URL (required in a run)", "x"), "the URL (default: x)");
        assert_eq!(put("length (or not) (default: 64 (at most))", "128"), "length (or not) (default: 128)");
        assert_eq!(put("seed", "0"), "seed (default: 0)");
    }
}
