//! Names that guidellm alone has, and its `--data` where it describes synthetic data:
//! `prompt_tokens=512,prompt_tokens_stdev=128,...`.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use super::Action::{Convert, Refuse, Same};
use super::{Action, Converted, DATA, LATER, SAVED};

pub(super) static TABLE: &[(&[&str], Action)] = &[
    (&["--constraint"], Convert(constraint)),
    (&["--data"], Convert(data)),
    (&["--disable-console-interactive", "--disable-progress"], Same("--no-progress")),
    (
        &["--disable-console", "--disable-console-outputs"],
        Refuse("prints nothing at all", "use --quiet, and send the table of the result elsewhere by > FILE"),
    ),
    (&["--output-dir"], Same("--result-dir")),
    (&["--output"], Refuse("names files of guidellm's form", SAVED)),
    (&["--override", "--rampup"], Refuse(LATER, "give a comma list to --max-concurrency or --request-rate")),
    (
        &["--cooldown"],
        Refuse(
            "cuts requests off the end",
            "leave it out: a level counts what was planned in its window, whose beginning --steady-cut chooses",
        ),
    ),
    (
        &["--max-error-rate", "--max-errors", "--max-global-error-rate", "--stop-over-saturated"],
        Refuse(
            "ends a run early",
            "use --failed-request-threshold, a share of failures that ends the run with exit code 1, or Ctrl-C",
        ),
    ),
    (&["--processor"], Same("--tokenizer")),
    (
        &["--processor-args"],
        Refuse(
            "are about loading a tokenizer",
            "leave it out: --tokenizer reads a tokenizer.json as it stands",
        ),
    ),
    (
        &["--backend-args", "--backend-kwargs", "--backend-type"],
        Refuse(LATER, "give the API by --backend, fields of requests by --extra-body"),
    ),
    (&["--data-samples"], Convert(data_samples)),
    (
        &[
            "--data-args",
            "--data-column-mapper",
            "--data-finalizer",
            "--data-loader",
            "--data-preprocessor",
            "--data-sampler",
            "--request-formatter-kwargs",
        ],
        Refuse(
            "is about guidellm's own reading of data sets",
            "give a local file by --dataset-path, and the column of a CSV file by --dataset-column",
        ),
    ),
    (&["--metrics"], Refuse("chooses what is kept", "leave it out: one record per request is kept")),
    (
        &["--output-sampling", "--sample-requests"],
        Refuse("chooses which requests are kept", "leave it out: one record per request is kept"),
    ),
    (&["--request-type"], Refuse("names an API", "use --backend openai-chat or openai")),
];

/// `kind=max_requests,value=10`, where it says when a level ends.
fn constraint(text: &str) -> Converted {
    let mut kind = None;
    let mut value = None;
    for (key, text) in text.split(',').filter_map(|item| item.split_once('=')) {
        match key.trim() {
            "kind" => kind = Some(text.trim()),
            _ => value = Some(text.trim()),
        }
    }
    match (kind, value) {
        (Some("max_requests"), Some(n)) => Ok(vec![("--num-prompts", n.to_owned())]),
        (Some("max_duration"), Some(s)) => Ok(vec![("--duration", s.to_owned())]),
        (Some("max_errors" | "max_error_rate" | "max_global_error_rate"), _) => {
            Err((format!("'{text}' ends a run early"), "use --failed-request-threshold"))
        }
        _ => Err((format!("'{text}' is not supported yet"), "use --num-prompts or --duration")),
    }
}

/// -1 means all, which is so anyway.
fn data_samples(value: &str) -> Converted {
    match value {
        "-1" => Ok(Vec::new()),
        _ => Ok(vec![("--num-dataset-entries", value.to_owned())]),
    }
}

/// The lengths that guidellm's text asks for, a list of `key=value` or a JSON object. A file is one of
/// ours; the name of a data set is neither, and is refused.
///
/// guidellm draws a length from a normal distribution, moves it to a bound that it is beyond (the mean and five
/// deviations, at least 1, unless said), and rounds to the nearest. With the mean lowered by one half our rounding up
/// is the same. It moves draws below 0 to the bound where we draw again: so a deviation of more than a quarter of the
/// mean, from which on such draws are more than one in 30 000, is refused.
pub(super) fn data(text: &str) -> Converted {
    let is_file = [".csv", ".json", ".jsonl", ".txt"].iter().any(|ending| text.ends_with(ending));
    if is_file {
        return Ok(vec![("--dataset-path", text.to_owned())]);
    }
    let mut keys = read(text).ok_or_else(|| (format!("'{text}' is not synthetic data"), DATA))?;
    let mut options = Vec::new();
    for (name, option) in [("prompt_tokens", "--random-input-len"), ("output_tokens", "--random-output-len")]
    {
        let mut take = |suffix: &str| keys.remove(&format!("{name}{suffix}"));
        let (mean, stddev) = (take(""), take("_stdev").filter(|stddev| *stddev > 0));
        let (min, max) = (take("_min"), take("_max"));
        match mean {
            Some(mean) => options.push((option, lengths(mean, stddev, (min, max))?)),
            None => return Err((format!("has no {name}"), "give prompt_tokens=N,output_tokens=N")),
        }
    }
    match keys.keys().next() {
        Some(key) => Err((format!("'{key}' is not supported yet"), DATA)),
        None => Ok(options),
    }
}

fn lengths(
    mean: u32,
    stddev: Option<u32>,
    bounds: (Option<u32>, Option<u32>),
) -> Result<String, (String, &'static str)> {
    let spread = stddev.unwrap_or(0).saturating_mul(5);
    let min = bounds.0.unwrap_or(mean.saturating_sub(spread).max(1));
    let max = bounds.1.unwrap_or(mean.saturating_add(spread));
    match stddev {
        _ if min == max => Ok(min.to_string()),
        None => Ok(format!("uniform:min={min},max={max}")),
        Some(stddev) if stddev.saturating_mul(4) > mean => Err((
            format!("a deviation of {stddev} around {mean} is treated differently from guidellm"),
            "give --random-input-len normal:mean=N,stddev=N, or a deviation of at most a quarter of the mean",
        )),
        Some(stddev) => {
            Ok(format!("normal:mean={},stddev={stddev},min={min},max={max}", f64::from(mean) - 0.5))
        }
    }
}

/// Keys with their whole numbers.
fn read(text: &str) -> Option<BTreeMap<String, u32>> {
    if text.trim_start().starts_with('{') {
        let object: Map<String, Json> = serde_json::from_str(text).ok()?;
        let number = |value: Json| u32::try_from(value.as_u64()?).ok();
        return object.into_iter().map(|(key, value)| Some((key, number(value)?))).collect();
    }
    let pair = |item: &str| {
        let (key, value) = item.split_once('=')?;
        Some((key.trim().to_owned(), value.trim().parse().ok()?))
    };
    text.split(',').map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_as(text: &str) -> [String; 2] {
        let options = data(text).unwrap_or_else(|error| panic!("{error:?}"));
        assert_eq!((options[0].0, options[1].0), ("--random-input-len", "--random-output-len"));
        [options[0].1.clone(), options[1].1.clone()]
    }

    #[test]
    fn fixed_uniform_and_normal_lengths_are_read_in_both_forms() {
        assert_eq!(read_as("prompt_tokens=512,output_tokens=128"), ["512", "128"]);
        assert_eq!(
            read_as(
                r#"{"prompt_tokens":512,"prompt_tokens_min":256,"output_tokens":9,"output_tokens_stdev":0}"#
            ),
            ["uniform:min=256,max=512", "9"]
        );
        assert_eq!(
            read_as(
                "prompt_tokens=512,prompt_tokens_stdev=128,prompt_tokens_max=800,output_tokens=9,output_tokens_stdev=2"
            ),
            ["normal:mean=511.5,stddev=128,min=1,max=800", "normal:mean=8.5,stddev=2,min=1,max=19"]
        );
    }

    #[test]
    fn data_sets_and_what_would_be_drawn_differently_are_refused() {
        for text in [
            "org/data",
            "prompt_tokens=512",
            "prompt_tokens=512,output_tokens=9,turns=3",
            "prompt_tokens=512,prompt_tokens_stdev=129,output_tokens=9",
            "prompt_tokens=-1,output_tokens=9",
        ] {
            assert!(data(text).is_err(), "{text}");
        }
    }
}
