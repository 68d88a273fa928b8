//! `--preset`: workloads by name, each a set of options that one could have typed.
//!
//! Names that other tools gave first mean what they mean there: chat, rag, code and agent are servebench's. The others
//! are named after where their numbers come from.

use super::args::RunArgs;
use crate::plan::{Error, nearest};

/// A workload by name.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// What it stands for, and where its numbers come from.
    pub about: &'static str,
    /// The options that it stands for, with their values.
    pub options: &'static [(&'static str, &'static str)],
}

/// All of them, in the order in which they are shown.
pub const ALL: [Preset; 11] = [
    Preset {
        name: "chat",
        about: "an assistant, all requests alike (servebench)",
        options: &[("--random-input-len", "128"), ("--random-output-len", "256")],
    },
    Preset {
        name: "rag",
        about: "questions about documents, all requests alike (servebench)",
        options: &[("--random-input-len", "2048"), ("--random-output-len", "128")],
    },
    Preset {
        name: "code",
        about: "writing code, all requests alike (servebench)",
        options: &[("--random-input-len", "512"), ("--random-output-len", "512")],
    },
    Preset {
        name: "agent",
        about: "an agent's steps, all requests alike (servebench)",
        options: &[("--random-input-len", "1024"), ("--random-output-len", "384")],
    },
    Preset {
        name: "sharegpt-chat",
        about: "short questions, long answers: the mean lengths of ShareGPT in the paper on vLLM (SOSP 2023); the \
                spread is ours",
        options: &[
            ("--random-input-len", "lognormal:mean=161,sigma=1,min=4,max=2048"),
            ("--random-output-len", "lognormal:mean=338,sigma=0.8,min=4,max=2048"),
        ],
    },
    Preset {
        name: "azure-chat",
        about: "a chat service: the median lengths of Azure's conversation trace of 2023 (Splitwise, ISCA 2024); the \
                spread is ours",
        options: &[
            ("--random-input-len", "lognormal:median=1020,sigma=0.8,min=4,max=8192"),
            ("--random-output-len", "lognormal:median=129,sigma=1,min=1,max=2048"),
        ],
    },
    Preset {
        name: "azure-code",
        about: "completion while typing: the median lengths of Azure's code trace of 2023 (Splitwise, ISCA 2024); the \
                spread is ours",
        options: &[
            ("--random-input-len", "lognormal:median=1500,sigma=0.8,min=4,max=8192"),
            ("--random-output-len", "lognormal:median=13,sigma=1.2,min=1,max=1024"),
        ],
    },
    Preset {
        name: "mooncake-chat",
        about: "long conversations: the mean lengths of Mooncake's conversation trace (FAST 2025); the spread is ours, \
                and its cached two fifths, each user's own past, are not there",
        options: &[
            ("--random-input-len", "lognormal:mean=12035,sigma=1,min=16,max=131072"),
            ("--random-output-len", "lognormal:mean=343,sigma=0.8,min=1,max=4096"),
        ],
    },
    Preset {
        name: "mooncake-agent",
        about: "agents with tools: the mean lengths of Mooncake's tool and agent trace (FAST 2025), three fifths of a \
                prompt shared as its cache ratio has it; the spread and the number of prefixes are ours",
        options: &[
            ("--num-prefix-prompts", "16"),
            ("--prefix-prompt-length", "5072"),
            ("--random-input-len", "lognormal:mean=3524,sigma=1,min=16,max=65536"),
            ("--random-output-len", "lognormal:mean=182,sigma=0.8,min=1,max=4096"),
        ],
    },
    Preset {
        name: "summarize",
        about: "long texts, short summaries: the mean lengths of LongBench in DistServe (OSDI 2024); the spread is ours",
        options: &[
            ("--random-input-len", "lognormal:mean=1738,sigma=0.5,min=64,max=8192"),
            ("--random-output-len", "lognormal:mean=91,sigma=0.8,min=4,max=512"),
        ],
    },
    Preset {
        name: "batch",
        about: "work for the night, all requests alike: 1024 tokens in and out, a usual point of public comparisons",
        options: &[("--random-input-len", "1024"), ("--random-output-len", "1024")],
    },
];

/// The options of `args` with those of its preset where they leave room for them.
///
/// # Errors
/// A name that is none, and a preset beside a file that brings its own prompts.
pub fn apply(args: &RunArgs) -> Result<RunArgs, Error> {
    let mut args = args.clone();
    let Some(name) = args.preset.take() else { return Ok(args) };
    let preset = ALL.iter().find(|preset| preset.name == name).ok_or_else(|| {
        let near = nearest(&name, ALL.map(|preset| preset.name));
        let near = near.map_or_else(String::new, |near| format!("did you mean {near}? "));
        let names = ALL.map(|preset| preset.name).join(", ");
        Error::new(
            "--preset",
            format!("'{name}' is not one"),
            format!("{near}there are {names}; see --preset help"),
        )
    })?;
    for (option, given) in [
        ("--dataset-path", &args.dataset_path),
        ("--trace", &args.trace),
        ("--dataset-name", &args.dataset_name),
    ] {
        if given.as_deref().is_some_and(|given| !["random", "synthetic"].contains(&given)) {
            let wrong = "describes synthetic prompts, and others are asked for";
            return Err(Error::new("--preset", wrong, format!("leave out one of --preset and {option}")));
        }
    }
    // One's own prefix is no addition to that of the preset.
    let has_prefix = [&args.random_prefix_len, &args.num_prefix_prompts, &args.prefix_prompt_length]
        .into_iter()
        .any(Option::is_some);
    for (option, value) in preset.options {
        let place = match *option {
            "--num-prefix-prompts" if !has_prefix => &mut args.num_prefix_prompts,
            "--prefix-prompt-length" if !has_prefix => &mut args.prefix_prompt_length,
            "--random-input-len" => &mut args.random_input_len,
            "--random-output-len" => &mut args.random_output_len,
            _ => continue,
        };
        place.get_or_insert_with(|| (*value).to_owned());
    }
    Ok(args)
}

/// What `--preset help` prints.
pub(super) fn help() -> String {
    let mut out =
        "Presets: workloads by name. Options that are given win over those of a preset.\n".to_owned();
    for preset in ALL {
        let options: Vec<String> =
            preset.options.iter().map(|(option, value)| format!("{option} {value}")).collect();
        out.push_str(&format!("\n{}: {}\n  {}\n", preset.name, preset.about, options.join("\n  ")));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(preset: &str) -> RunArgs {
        RunArgs { preset: Some(preset.to_owned()), ..RunArgs::default() }
    }

    #[test]
    fn every_option_of_a_preset_has_its_place() {
        for preset in ALL {
            let applied = apply(&args(preset.name)).unwrap();
            let set = [
                ("--num-prefix-prompts", applied.num_prefix_prompts),
                ("--prefix-prompt-length", applied.prefix_prompt_length),
                ("--random-input-len", applied.random_input_len),
                ("--random-output-len", applied.random_output_len),
            ];
            let set: Vec<(&str, String)> =
                set.into_iter().filter_map(|(option, value)| Some((option, value?))).collect();
            let wanted: Vec<(&str, String)> =
                preset.options.iter().map(|(option, value)| (*option, (*value).to_owned())).collect();
            assert_eq!(set, wanted, "{}", preset.name);
        }
    }

    #[test]
    fn what_is_given_wins() {
        let given = RunArgs {
            random_output_len: Some("9".to_owned()),
            random_prefix_len: Some("7".to_owned()),
            ..args("mooncake-agent")
        };
        let applied = apply(&given).unwrap();
        assert_eq!(applied.random_output_len.as_deref(), Some("9"));
        assert!(applied.random_input_len.unwrap().starts_with("lognormal"));
        assert_eq!((applied.num_prefix_prompts, applied.prefix_prompt_length), (None, None));
    }

    #[test]
    fn names_that_are_none_and_prompts_from_elsewhere_are_refused() {
        assert!(apply(&args("chatt")).unwrap_err().remedy.starts_with("did you mean chat?"));
        let file = RunArgs { dataset_path: Some("a.jsonl".to_owned()), ..args("chat") };
        assert!(apply(&file).unwrap_err().remedy.contains("--dataset-path"));
        let random = RunArgs { dataset_name: Some("random".to_owned()), ..args("chat") };
        assert_eq!(apply(&random).unwrap().random_input_len.as_deref(), Some("128"));
    }

    #[test]
    fn help_spells_every_preset_out() {
        let help = help();
        for preset in ALL {
            assert!(help.contains(&format!("\n{}: ", preset.name)));
            assert!(
                preset.options.iter().all(|(option, value)| help.contains(&format!("{option} {value}\n")))
            );
        }
    }
}
