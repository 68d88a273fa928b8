//! What a file is that is no run file, so that it can be said what to do with it.
//!
//! It only looks: nothing here is read as a run, and what is not recognised is just not one.

use std::fmt;

use serde::de::IgnoredAny;
use serde_json::Value;

use super::schema::SCHEMA;

/// What was found in the place of a run file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// aiperf's result.
    Aiperf,
    /// Bytes that are no text; those of a run's records or event times, as a rule.
    Binary,
    /// JSON that breaks off in the line.
    CutOff {
        /// From 1.
        line: usize,
    },
    /// Nothing at all.
    Empty,
    /// JSON of something else.
    Json,
    /// Several values of JSON, one to a line, as of `--save-detailed`.
    Lines,
    /// Another document of ours.
    Ours {
        /// Its schema: `tokload.check`.
        schema: String,
    },
    /// Text that is no JSON.
    Text,
    /// The result of vLLM's client.
    Vllm,
}

impl Foreign {
    /// What `text` is, which is no run file.
    #[must_use]
    pub fn of(text: &str) -> Foreign {
        let trimmed = text.trim_start();
        if trimmed.is_empty() {
            return Foreign::Empty;
        }
        if !trimmed.starts_with(['{', '[']) {
            // A number, a word of JSON or a string is JSON all the same.
            return serde_json::from_str::<IgnoredAny>(trimmed).map_or(Foreign::Text, |_| Foreign::Json);
        }
        let mut values = serde_json::Deserializer::from_str(trimmed).into_iter::<Value>();
        match values.next() {
            Some(Ok(first)) => {
                let tool = of_tool(&first);
                // What follows need not be whole to be another line.
                let more = || trimmed.get(values.byte_offset()..).is_some_and(|rest| !rest.trim().is_empty());
                tool.unwrap_or_else(|| if more() { Foreign::Lines } else { Foreign::Json })
            }
            _ => match serde_json::from_str::<IgnoredAny>(text) {
                Err(error) if error.is_eof() => Foreign::CutOff { line: error.line() },
                _ => Foreign::Text,
            },
        }
    }
}

/// Documents that say whose they are.
fn of_tool(value: &Value) -> Option<Foreign> {
    let has = |key: &str| value.get(key).is_some();
    match value.get("schema").and_then(Value::as_str) {
        Some(schema) if schema.starts_with("tokload.") && schema != SCHEMA => {
            return Some(Foreign::Ours { schema: schema.chars().take(SCHEMA_CHARS_MAX).collect() });
        }
        _ => {}
    }
    let of_aiperf = has("aiperf_version") || has("time_to_first_token") || has("metrics") && has("metadata");
    if of_aiperf {
        return Some(Foreign::Aiperf);
    }
    (has("request_throughput") && has("completed")).then_some(Foreign::Vllm)
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let import = "make one of it with tokload import FILE --output-file NEW.json";
        match self {
            Foreign::Aiperf => write!(f, "it is a result of aiperf; {import}"),
            Foreign::Binary => f.write_str(
                "it is no text; of a run with .records and .chunks beside it name the .json that they belong to",
            ),
            Foreign::CutOff { line } => write!(
                f,
                "it is JSON that breaks off in line {line}; copy it again, or take the file that was written first"
            ),
            Foreign::Empty => f.write_str("it is empty; name the file that a run has saved"),
            Foreign::Json => f.write_str("it is JSON of something else; name the file that a run has saved"),
            Foreign::Lines => {
                f.write_str("it has a value to a line, as the .jsonl of --save-detailed; name the .json beside it")
            }
            Foreign::Ours { schema } => {
                write!(f, "it is a {schema} document; name the file that a run has saved")
            }
            Foreign::Text => f.write_str("it is no JSON; name the file that a run has saved"),
            Foreign::Vllm => write!(f, "it is a result of vLLM's client; {import}"),
        }
    }
}

const SCHEMA_CHARS_MAX: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_is_is_told() {
        for (text, what) in [
            ("", Foreign::Empty),
            (" \n", Foreign::Empty),
            ("hello", Foreign::Text),
            ("{hello", Foreign::Text),
            ("null\n", Foreign::Json),
            ("17", Foreign::Json),
            ("\"run\"", Foreign::Json),
            ("{}", Foreign::Json),
            ("[1, 2]", Foreign::Json),
            ("{\"a\": [1,\n 2", Foreign::CutOff { line: 2 }),
            ("{\"schema\": \"tokload.run\", \"ver", Foreign::CutOff { line: 1 }),
            ("{\"level\":0}\n{\"level\":1}\n", Foreign::Lines),
            ("{\"schema\": \"tokload.check\"}", Foreign::Ours { schema: "tokload.check".to_owned() }),
            ("{\"schema\": \"other\"}", Foreign::Json),
            ("{\"completed\": 3, \"request_throughput\": 1.0}", Foreign::Vllm),
            ("{\"completed\": 3, \"request_throughput\": 1.0}\n{\"completed\": 3}", Foreign::Vllm),
            ("{\"aiperf_version\": \"0.13\"}", Foreign::Aiperf),
            ("{\"metadata\": {}, \"metrics\": {}}\n{}", Foreign::Aiperf),
        ] {
            assert_eq!(Foreign::of(text), what, "{text}");
        }
    }
}
